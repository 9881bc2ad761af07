//! Generates TypeScript that preserves the schema's alternatives, literals, references and descriptions.

use super::{
    DEPTH_MAX, ToolSignature, array_of, declared, function, indented, is_required, key, quoted,
};
use crate::execbox::names::sanitize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A longer list of alternatives is not expanded; the text names their type instead.
const ALTERNATIVES_MAX: usize = 64;

/// Longest text of one tool: a schema that repeats itself must not fill the prompt it ends up in.
const TOOL_BYTES_MAX: usize = 32 << 10;

/// The text that preserves the content of a schema.
pub(in crate::execbox) fn rich(namespace: &str, tools: &[ToolSignature<'_>]) -> String {
    declared(namespace, tools.iter().flat_map(members).collect())
}

/// The types that a tool's schemas refer to, and the tool.
fn members(tool: &ToolSignature<'_>) -> Vec<String> {
    let mut aliases = BTreeMap::new();
    let [input, output] = [("Input", tool.input), ("Output", tool.output)].map(|(side, schema)| {
        let Some(root) = schema else { return "unknown".to_owned() };
        let prefix = format!("{}{side}", capitalised(tool.safe_name));
        let mut speller = TypeWriter { root, prefix, aliases: &mut aliases, n_bytes: 0 };
        speller.spell(root, 0)
    });
    let mut members: Vec<_> =
        aliases.into_iter().map(|(name, text)| format!("type {name} = {text};")).collect();
    let comment = tool.description.map(comment);
    members.push(function(comment, tool.safe_name, &input, &output));
    members
}

/// A comment that its text cannot end.
fn comment(text: &str) -> String {
    let lines = text.trim().lines().map(|line| {
        let line = line.trim_end().replace("*/", "*\\/");
        if line.is_empty() { " *\n".to_owned() } else { format!(" * {line}\n") }
    });
    format!("/**\n{} */\n", lines.collect::<String>())
}

fn capitalised(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Writes one schema; its references become named types.
struct TypeWriter<'a> {
    root: &'a Value,
    prefix: String,
    aliases: &'a mut BTreeMap<String, String>,
    n_bytes: usize,
}

impl TypeWriter<'_> {
    fn spell(&mut self, schema: &Value, depth: usize) -> String {
        if depth >= DEPTH_MAX || self.n_bytes > TOOL_BYTES_MAX {
            return "unknown".to_owned();
        }
        let text = self.spell_any(schema, depth);
        self.n_bytes += text.len();
        text
    }

    fn spell_any(&mut self, schema: &Value, depth: usize) -> String {
        if schema == &Value::Bool(false) {
            return "never".to_owned();
        }
        if let Some(reference) = schema["$ref"].as_str() {
            return self.spell_reference(reference, depth);
        }
        if let Some(constant) = schema.get("const") {
            return literal(constant);
        }
        if let Some(options) = short_alternatives(schema, "enum") {
            return joined(options.iter().map(literal).collect(), " | ");
        }
        for (word, separator) in [("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")] {
            if let Some(parts) = short_alternatives(schema, word) {
                let parts = parts.iter().map(|part| self.spell(part, depth + 1)).collect();
                return joined(parts, separator);
            }
        }
        if let Some(kinds) = short_alternatives(schema, "type") {
            let kinds = kinds.iter().filter_map(Value::as_str);
            let parts = kinds.map(|kind| self.spell_kind(kind, schema, depth)).collect();
            return joined(parts, " | ");
        }
        let kind = schema["type"].as_str();
        let kind = kind.or_else(|| schema.get("properties").map(|_| "object"));
        let text = kind.map_or("unknown".to_owned(), |kind| self.spell_kind(kind, schema, depth));
        match schema["nullable"] == Value::Bool(true) {
            true => joined(vec![text, "null".to_owned()], " | "),
            false => text,
        }
    }

    fn spell_kind(&mut self, kind: &str, schema: &Value, depth: usize) -> String {
        match kind {
            "string" | "boolean" | "null" => kind.to_owned(),
            "number" | "integer" => "number".to_owned(),
            "array" => self.spell_array(schema, depth),
            "object" => self.spell_object(schema, depth),
            _ => "unknown".to_owned(),
        }
    }

    fn spell_array(&mut self, schema: &Value, depth: usize) -> String {
        if let Some(items) = short_alternatives(schema, "prefixItems")
            .or_else(|| short_alternatives(schema, "items"))
        {
            let items: Vec<_> = items.iter().map(|item| self.spell(item, depth + 1)).collect();
            return format!("[{}]", items.join(", "));
        }
        let items = schema.get("items").map(|items| self.spell(items, depth + 1));
        array_of(&items.unwrap_or_else(|| "unknown".to_owned()))
    }

    fn spell_object(&mut self, schema: &Value, depth: usize) -> String {
        let Some(members) = schema["properties"].as_object().filter(|members| !members.is_empty())
        else {
            let others = schema.get("additionalProperties").filter(|others| others.is_object());
            let others = others.map_or("unknown".to_owned(), |one| self.spell(one, depth + 1));
            return format!("Record<string, {others}>");
        };
        let mut lines = vec![];
        for (name, member) in members {
            let mark = if is_required(schema, name) { "" } else { "?" };
            let comment = member["description"].as_str().map(comment).unwrap_or_default();
            let text = self.spell(member, depth + 1);
            lines.push(indented(&format!("{comment}{}{mark}: {text};", key(name)), 2));
        }
        format!("{{\n{}\n}}", lines.join("\n"))
    }

    /// A reference inside the schema becomes a named type, also a recursive one.
    fn spell_reference(&mut self, reference: &str, depth: usize) -> String {
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(target) = target else { return "unknown".to_owned() };
        let last = reference.rsplit(['/', '#']).next().unwrap_or_default();
        let name = match last {
            "" => self.prefix.clone(),
            last => format!("{}_{}", self.prefix, sanitize(last)),
        };
        if !self.aliases.contains_key(&name) {
            // Named before it is written, so that it can refer to itself.
            self.aliases.insert(name.clone(), "unknown".to_owned());
            let text = self.spell(target, depth + 1);
            // `type A = A` is invalid.
            let text = if text == name { "unknown".to_owned() } else { text };
            self.aliases.insert(name.clone(), text);
        }
        name
    }
}

/// Returns the alternatives, if they are few enough to read.
fn short_alternatives<'a>(schema: &'a Value, word: &str) -> Option<&'a [Value]> {
    let list = schema.get(word)?.as_array()?;
    (1..=ALTERNATIVES_MAX).contains(&list.len()).then_some(list.as_slice())
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, value)| format!("{}: {}", key(name), literal(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join("; "))
        }
    }
}

/// Joins distinct parts, in parentheses where operators would otherwise mix.
fn joined(parts: Vec<String>, separator: &str) -> String {
    let mut once: Vec<String> = vec![];
    for part in parts {
        if !once.contains(&part) {
            once.push(part);
        }
    }
    let is_single = once.len() == 1;
    let is_mixed = |part: &str| part.contains(" | ") || part.contains(" & ");
    let parts = once.into_iter().map(|part| match is_mixed(&part) && !is_single {
        true => format!("({part})"),
        false => part,
    });
    parts.collect::<Vec<_>>().join(separator)
}
