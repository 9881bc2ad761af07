//! Generates TypeScript for tools as execbox does, including its irregularities: clients compare texts.
//!
//! Members of an object are sorted by name, because a parsed schema has no other order.

mod rich;

use super::names::is_identifier;
use serde_json::Value;

pub(super) use rich::rich;

/// A schema nested deeper than this is `unknown` from there on, which keeps the text readable.
const DEPTH_MAX: usize = 16;

/// What the text describes of one tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolSignature<'a> {
    pub(super) safe_name: &'a str,
    pub(super) description: Option<&'a str>,
    pub(super) input: Option<&'a Value>,
    pub(super) output: Option<&'a Value>,
}

/// The text that execbox itself would write.
pub(super) fn execbox(namespace: &str, tools: &[ToolSignature<'_>]) -> String {
    let members = tools.iter().map(|tool| {
        let comment = tool.description.map(|text| format!("/**\n * {text}\n */\n"));
        let [input, output] = [tool.input, tool.output]
            .map(|schema| schema.map_or("unknown".into(), |s| plain(s, 0)));
        function(comment, tool.safe_name, &input, &output)
    });
    declared(namespace, members.collect())
}

fn function(comment: Option<String>, safe_name: &str, input: &str, output: &str) -> String {
    let comment = comment.unwrap_or_default();
    format!("{comment}function {safe_name}(input: {input}): Promise<{output}>;")
}

fn declared(namespace: &str, members: Vec<String>) -> String {
    if members.is_empty() {
        return format!("declare namespace {namespace} {{}}");
    }
    format!("declare namespace {namespace} {{\n{}\n}}", indented(&members.join("\n\n"), 2))
}

/// Indents every line, empty ones too.
fn indented(text: &str, n_spaces: usize) -> String {
    let margin = " ".repeat(n_spaces);
    text.split('\n').map(|line| format!("{margin}{line}")).collect::<Vec<_>>().join("\n")
}

/// A member's name, quoted where TypeScript requires it.
fn key(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|other| other == name))
}

/// `T[]` where `T` is one word.
fn array_of(item: &str) -> String {
    match item.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        true => format!("{item}[]"),
        false => format!("Array<{item}>"),
    }
}

fn plain(schema: &Value, depth: usize) -> String {
    let is_combined =
        ["allOf", "anyOf", "oneOf", "$ref"].iter().any(|word| schema.get(word).is_some());
    if is_combined || depth >= DEPTH_MAX {
        return "unknown".to_owned();
    }
    match schema["type"].as_str() {
        Some("string") => "string".to_owned(),
        Some("number" | "integer") => "number".to_owned(),
        Some("boolean") => "boolean".to_owned(),
        Some("null") => "null".to_owned(),
        Some("array") => {
            let items = schema.get("items").filter(|items| items.is_object());
            array_of(&items.map_or("unknown".into(), |items| plain(items, depth + 1)))
        }
        Some("object") => plain_object(schema, depth),
        Some(_) | None => "unknown".to_owned(),
    }
}

fn plain_object(schema: &Value, depth: usize) -> String {
    let Some(members) = schema["properties"].as_object().filter(|members| !members.is_empty())
    else {
        return "Record<string, unknown>".to_owned();
    };
    let lines = members.iter().map(|(name, member)| {
        let mark = if is_required(schema, name) { "" } else { "?" };
        let line = format!("{}{mark}: {};", key(name), plain(member, depth + 1));
        indented(&line, 2 * (depth + 1))
    });
    format!("{{\n{}\n{}}}", lines.collect::<Vec<_>>().join("\n"), "  ".repeat(depth))
}
