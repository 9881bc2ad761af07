//! Renders JSON Schemas as TypeScript on one line each, which a model reads to write a call. The result is
//! always compact: long lists are truncated, distant definitions are `unknown`, and each definition is
//! written once.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};

/// Limit of alternatives of one type; the rest of a longer enumeration is a comment.
const ALTERNATIVES_MAX: usize = 40;

/// Limit of members of one object, required ones first.
const MEMBERS_MAX: usize = 60;

/// A type nested deeper than this is `unknown` from there on.
const DEPTH_MAX: usize = 12;

/// Limit of definitions in one description. Those nearest to the tool come first.
const DEFINITIONS_MAX: usize = 48;

/// Limit of the text of all types in one description: some two thousand tokens.
const BYTES_MAX: usize = 8 << 10;

/// Longest literal that is written.
const LITERAL_CHARS_MAX: usize = 120;

/// Types with the definitions that they refer to.
#[derive(Debug, Default)]
pub struct TypeDefinitions<'a> {
    named: BTreeMap<String, &'a Value>,
    unwritten: VecDeque<String>,
    definitions: BTreeMap<String, String>,
    n_bytes: usize,
}

impl<'a> TypeDefinitions<'a> {
    /// Renders the type of `schema`. References are resolved in `schema` itself; their targets are written
    /// by [`TypeDefinitions::write_named`].
    pub fn write(&mut self, schema: &'a Value) -> String {
        TypeScriptWriter { root: schema, types: self }.write(schema, 0)
    }

    /// Every definition that was written, by name.
    pub fn into_definitions(self) -> BTreeMap<String, String> {
        self.definitions
    }

    /// Writes the definitions that were referred to since the last call; references are resolved in `root`.
    pub fn write_named(&mut self, root: &'a Value) {
        while let Some(name) = self.unwritten.pop_front() {
            let schema = self.named[&name];
            let text = match self.n_bytes > BYTES_MAX {
                true => "unknown".to_owned(),
                false => TypeScriptWriter { root, types: self }.write_all(schema, 0),
            };
            // A type `A` that is defined as `A` has no meaning.
            let text = if text == name { "unknown".to_owned() } else { text };
            self.definitions.insert(name, text);
        }
    }
}

struct TypeScriptWriter<'w, 'a> {
    root: &'a Value,
    types: &'w mut TypeDefinitions<'a>,
}

impl<'a> TypeScriptWriter<'_, 'a> {
    fn write(&mut self, schema: &'a Value, depth: usize) -> String {
        if depth >= DEPTH_MAX || self.types.n_bytes > BYTES_MAX {
            return "unknown".to_owned();
        }
        self.write_all(schema, depth)
    }

    fn write_all(&mut self, schema: &'a Value, depth: usize) -> String {
        let text = match schema {
            Value::Bool(false) => "never".to_owned(),
            Value::Object(members) => self.write_schema(members, depth),
            Value::Bool(true)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => "unknown".to_owned(),
        };
        if depth == 0 || !text.starts_with(['{', '(']) {
            self.types.n_bytes += text.len(); // what is inside was counted already
        }
        text
    }

    fn write_schema(&mut self, schema: &'a Map<String, Value>, depth: usize) -> String {
        let text = self.write_kind(schema, depth);
        match schema.get("nullable") == Some(&Value::Bool(true)) {
            true => joined(vec![text, "null".to_owned()], " | "),
            false => text,
        }
    }

    fn write_kind(&mut self, schema: &'a Map<String, Value>, depth: usize) -> String {
        if let Some(Value::String(reference)) = schema.get("$ref") {
            return self.write_reference(reference);
        }
        if let Some(constant) = schema.get("const") {
            return literal(constant);
        }
        if let Some(Value::Array(options)) = schema.get("enum") {
            return alternatives(options);
        }
        for word in ["oneOf", "anyOf"] {
            if let Some(Value::Array(parts)) = schema.get(word).filter(|parts| !is_empty(parts)) {
                return self.write_union(schema, parts, depth);
            }
        }
        if let Some(Value::Array(parts)) = schema.get("allOf").filter(|parts| !is_empty(parts)) {
            return self.write_both(schema, parts, depth);
        }
        match schema.get("type") {
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                joined(kinds.map(|kind| self.write_type(kind, schema, depth)).collect(), " | ")
            }
            Some(Value::String(kind)) => self.write_type(kind, schema, depth),
            _ if ["properties", "additionalProperties"].iter().any(|w| schema.contains_key(*w)) => {
                self.write_object(schema, depth)
            }
            _ if schema.contains_key("items") => self.write_array(schema, depth),
            _ => "unknown".to_owned(),
        }
    }

    fn write_type(&mut self, kind: &str, schema: &'a Map<String, Value>, depth: usize) -> String {
        match kind {
            "string" | "boolean" | "null" => kind.to_owned(),
            "number" | "integer" => "number".to_owned(),
            "array" => self.write_array(schema, depth),
            "object" => self.write_object(schema, depth),
            _ => "unknown".to_owned(),
        }
    }

    /// A union; the schema's other members apply to each alternative.
    fn write_union(
        &mut self,
        schema: &'a Map<String, Value>,
        parts: &'a [Value],
        depth: usize,
    ) -> String {
        let shown = parts.iter().take(ALTERNATIVES_MAX);
        let union = joined(shown.map(|part| self.write(part, depth + 1)).collect(), " | ");
        match schema.contains_key("properties") {
            // Alternatives that consist of `required` only are no types.
            true if union == "unknown" => self.write_object(schema, depth),
            true => joined(vec![self.write_object(schema, depth), union], " & "),
            false => union,
        }
    }

    fn write_both(
        &mut self,
        schema: &'a Map<String, Value>,
        parts: &'a [Value],
        depth: usize,
    ) -> String {
        let shown = parts.iter().take(ALTERNATIVES_MAX);
        let mut parts: Vec<_> = shown.map(|part| self.write(part, depth + 1)).collect();
        if schema.contains_key("properties") {
            parts.push(self.write_object(schema, depth));
        }
        parts.retain(|part| part != "unknown");
        match parts.len() {
            0 => "unknown".to_owned(),
            1 => parts.remove(0),
            _ => format!("({})", joined(parts, " & ")),
        }
    }

    fn write_array(&mut self, schema: &'a Map<String, Value>, depth: usize) -> String {
        let tuple = schema.get("prefixItems").or_else(|| schema.get("items"));
        if let Some(Value::Array(items)) = tuple {
            let items = items.iter().take(ALTERNATIVES_MAX);
            let items: Vec<_> = items.map(|item| self.write(item, depth + 1)).collect();
            let rest = match schema.get("prefixItems").and(schema.get("items")) {
                Some(Value::Bool(false)) | None => String::new(),
                Some(rest) => format!(", ...{}", array_of(&self.write(rest, depth + 1))),
            };
            return format!("[{}{rest}]", items.join(", "));
        }
        let item = schema.get("items").map(|items| self.write(items, depth + 1));
        array_of(&item.unwrap_or_else(|| "unknown".to_owned()))
    }

    fn write_object(&mut self, schema: &'a Map<String, Value>, depth: usize) -> String {
        let others = schema.get("additionalProperties");
        let empty = Map::new();
        let members = match schema.get("properties") {
            Some(Value::Object(members)) => members,
            _ => &empty,
        };
        let mut parts = self.write_members(schema, members, depth);
        match others {
            Some(Value::Bool(false)) => {}
            Some(others @ Value::Object(_)) => {
                parts.push(format!("[k: string]: {};", self.write(others, depth + 1)));
            }
            None | Some(_) if members.is_empty() => parts.push("[k: string]: unknown;".to_owned()),
            None | Some(_) => {}
        }
        if parts.is_empty() { "{ }".to_owned() } else { format!("{{ {} }}", parts.join(" ")) }
    }

    /// Required members first, then as many others as the limit allows.
    fn write_members(
        &mut self,
        schema: &'a Map<String, Value>,
        members: &Map<String, Value>,
        depth: usize,
    ) -> Vec<String> {
        let is_required = |name: &str| match schema.get("required") {
            Some(Value::Array(names)) => names.iter().any(|other| other == name),
            _ => false,
        };
        let Some(Value::Object(known)) = schema.get("properties") else { return vec![] };
        let (required, optional): (Vec<_>, Vec<_>) =
            known.iter().partition(|(name, _)| is_required(name));
        let shown = match members.len() > MEMBERS_MAX {
            true => required.into_iter().chain(optional).collect::<Vec<_>>(),
            false => known.iter().collect(),
        };
        let mut parts = vec![];
        for (name, member) in shown.into_iter().take(MEMBERS_MAX) {
            let mark = if is_required(name) { "" } else { "?" };
            parts.push(format!("{}{mark}: {};", key(name), self.write(member, depth + 1)));
        }
        if members.len() > MEMBERS_MAX {
            parts.push(format!("/* {} more */", members.len() - MEMBERS_MAX));
        }
        parts
    }

    /// Returns a name, and records that its definition must be written.
    fn write_reference(&mut self, reference: &str) -> String {
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(target) = target else { return "unknown".to_owned() };
        let wanted = type_name(reference.rsplit(['/', '#']).next().unwrap_or_default());
        let mut name = wanted.clone();
        let mut n = 1;
        loop {
            match self.types.named.get(&name) {
                Some(known) if std::ptr::eq(*known, target) || *known == target => return name,
                Some(_) => {
                    n += 1;
                    name = format!("{wanted}{n}");
                }
                None => break,
            }
        }
        if self.types.named.len() >= DEFINITIONS_MAX {
            return "unknown".to_owned();
        }
        self.types.named.insert(name.clone(), target);
        self.types.unwritten.push_back(name.clone());
        name
    }
}

fn is_empty(parts: &Value) -> bool {
    parts.as_array().is_some_and(Vec::is_empty)
}

fn alternatives(options: &[Value]) -> String {
    let shown = options.iter().take(ALTERNATIVES_MAX).map(literal).collect();
    let text = joined(shown, " | ");
    match options.len().saturating_sub(ALTERNATIVES_MAX) {
        0 => text,
        n_more => format!("{text} /* {n_more} more */"),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => "unknown".to_owned(),
        Value::String(text) if text.chars().count() > LITERAL_CHARS_MAX => "string".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// Joins the parts without duplicates. A union with `unknown` is `unknown`.
fn joined(parts: Vec<String>, separator: &str) -> String {
    let mut once: Vec<String> = vec![];
    for part in parts {
        if !once.contains(&part) {
            once.push(part);
        }
    }
    if once.is_empty() || (separator == " | " && once.iter().any(|part| part == "unknown")) {
        return "unknown".to_owned();
    }
    let is_union = |part: &str| separator == " & " && is_alternative(part);
    let parts =
        once.into_iter().map(|part| if is_union(&part) { format!("({part})") } else { part });
    parts.collect::<Vec<_>>().join(separator)
}

/// Whether ` | ` occurs outside all brackets.
fn is_alternative(text: &str) -> bool {
    let mut depth = 0_i32;
    text.char_indices().any(|(at, c)| {
        depth += match c {
            '{' | '(' | '[' => 1,
            '}' | ')' | ']' => -1,
            _ => 0,
        };
        depth == 0 && text[at..].starts_with(" | ")
    })
}

fn array_of(item: &str) -> String {
    match is_alternative(item) {
        true => format!("({item})[]"),
        false => format!("{item}[]"),
    }
}

/// A member's name, quoted if TypeScript requires it.
fn key(name: &str) -> String {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    let is_plain =
        name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit());
    if is_plain { name.to_owned() } else { Value::from(name).to_string() }
}

/// A valid TypeScript type name.
fn type_name(text: &str) -> String {
    let mut name: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    name
}

#[cfg(test)]
mod tests;
