//! A form on a terminal: its fields one after the other, each checked as it is typed. The server checks the rest of the
//! schema.

use crate::print::tamed;
use serde_json::{Map, Value};

/// Most fields that are asked for here: a longer form is filled in on the page or from a file.
const FIELDS_MAX: usize = 50;

/// A field of the form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FormField {
    name: String,
    about: String,
    kind: FieldKind,
    default: Option<Value>,
    is_required: bool,
}

/// The kind of input of a field.
#[derive(Debug, Clone, PartialEq)]
enum FieldKind {
    Text,
    Number,
    Integer,
    Boolean,
    OneOf(Vec<Value>),
    SomeOf(Vec<Value>),
    Json,
}

/// Returns the fields of a schema; `None` where nothing is asked for. An error where the form is too long for a terminal.
pub(super) fn fields(schema: &Value) -> Result<Vec<FormField>, String> {
    let Some(properties) = schema["properties"].as_object() else { return Ok(vec![]) };
    if properties.len() > FIELDS_MAX {
        return Err(format!("it has {} fields, too many to type here", properties.len()));
    }
    let required = schema["required"].as_array();
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|other| other == name));
    Ok(properties
        .iter()
        .map(|(name, field)| FormField {
            name: name.clone(),
            about: field["description"].as_str().or(field["title"].as_str()).unwrap_or("").into(),
            kind: kind(field),
            default: field.get("default").cloned(),
            is_required: is_required(name),
        })
        .collect())
}

fn kind(field: &Value) -> FieldKind {
    if let Some(choices) = choices(field) {
        return FieldKind::OneOf(choices);
    }
    match field["type"].as_str() {
        Some("string") => FieldKind::Text,
        Some("number") => FieldKind::Number,
        Some("integer") => FieldKind::Integer,
        Some("boolean") => FieldKind::Boolean,
        Some("array") => choices(&field["items"]).map_or(FieldKind::Json, FieldKind::SomeOf),
        Some(_) | None => FieldKind::Json,
    }
}

fn choices(field: &Value) -> Option<Vec<Value>> {
    if let Some(choices) = field["enum"].as_array() {
        return Some(choices.clone());
    }
    let listed = field["oneOf"].as_array().or(field["anyOf"].as_array())?;
    listed.iter().map(|choice| choice.get("const").cloned()).collect()
}

impl FormField {
    /// The name of the member in the answer.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The prompt of the field.
    pub(super) fn prompt(&self) -> String {
        let mut text = tamed(&self.name).replace('\n', " ");
        if !self.about.is_empty() {
            text.push_str(&format!(" – {}", tamed(&self.about).replace('\n', " ")));
        }
        let list =
            |choices: &[Value]| choices.iter().map(format_value).collect::<Vec<_>>().join(" | ");
        let hint = match &self.kind {
            FieldKind::Text => "text".to_owned(),
            FieldKind::Number => "number".to_owned(),
            FieldKind::Integer => "whole number".to_owned(),
            FieldKind::Boolean => "y/n".to_owned(),
            FieldKind::OneOf(choices) => list(choices),
            FieldKind::SomeOf(choices) => format!("some of {}, with commas", list(choices)),
            FieldKind::Json => "JSON".to_owned(),
        };
        let optional = if self.is_required { "" } else { ", may be empty" };
        text.push_str(&format!(" ({hint}{optional})"));
        if let Some(default) = &self.default {
            text.push_str(&format!(" [{}]", format_value(default)));
        }
        text + ": "
    }

    /// Parses the typed value; `None` leaves the field out.
    pub(super) fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if typed.is_empty() {
            return match (&self.default, self.is_required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, true) => Err("this must be filled in".into()),
                (None, false) => Ok(None),
            };
        }
        self.value(typed).map(Some)
    }

    fn value(&self, typed: &str) -> Result<Value, String> {
        match &self.kind {
            FieldKind::Text => Ok(Value::from(typed)),
            FieldKind::Number => match serde_json::from_str::<Value>(typed) {
                Ok(value) if value.is_number() => Ok(value),
                Ok(_) | Err(_) => Err("this must be a number".into()),
            },
            FieldKind::Integer => typed
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| "this must be a whole number".into()),
            FieldKind::Boolean => match typed.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Value::Bool(true)),
                "n" | "no" | "false" => Ok(Value::Bool(false)),
                _ => Err("this must be y or n".into()),
            },
            FieldKind::OneOf(choices) => chosen(choices, typed),
            FieldKind::SomeOf(choices) => {
                let some = typed.split(',').map(|one| chosen(choices, one.trim()));
                some.collect::<Result<Vec<_>, _>>().map(Value::from)
            }
            FieldKind::Json => serde_json::from_str(typed).map_err(|_| "this must be JSON".into()),
        }
    }
}

fn chosen(choices: &[Value], typed: &str) -> Result<Value, String> {
    let found = choices.iter().find(|choice| format_value(choice) == typed);
    found.cloned().ok_or_else(|| "this must be one of those above".into())
}

fn format_value(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    tamed(&text).replace('\n', " ")
}

/// The values entered so far.
#[derive(Debug, Default)]
pub(super) struct FormValues(Map<String, Value>);

impl FormValues {
    pub(super) fn put(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// The content of an answer.
    pub(super) fn content(self) -> String {
        Value::Object(self.0).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn only(schema: Value) -> FormField {
        let form = json!({ "properties": { "it": schema }, "required": ["it"] });
        fields(&form).unwrap().remove(0)
    }

    #[track_caller]
    fn check(schema: Value, typed: &str, expected: Result<Value, &str>) {
        let read = only(schema).read(typed);
        assert_eq!(read, expected.map(Some).map_err(str::to_owned), "{typed}");
    }

    #[test]
    fn every_kind_of_field_is_read() {
        check(json!({ "type": "string" }), " Ann B \n", Ok(json!("Ann B")));
        check(json!({ "type": "number" }), "1.5", Ok(json!(1.5)));
        check(json!({ "type": "number" }), "x", Err("this must be a number"));
        check(json!({ "type": "integer" }), "-3", Ok(json!(-3)));
        check(json!({ "type": "integer" }), "1.5", Err("this must be a whole number"));
        check(json!({ "type": "boolean" }), "Yes", Ok(json!(true)));
        check(json!({ "type": "boolean" }), "maybe", Err("this must be y or n"));
        check(json!({ "enum": ["a", 2] }), "2", Ok(json!(2)));
        check(json!({ "oneOf": [{ "const": "a", "title": "A" }] }), "a", Ok(json!("a")));
        check(json!({ "enum": ["a"] }), "b", Err("this must be one of those above"));
        let some = json!({ "type": "array", "items": { "enum": ["a", "b"] } });
        check(some, "b, a", Ok(json!(["b", "a"])));
        check(json!({ "type": "object" }), "{\"a\":1}", Ok(json!({ "a": 1 })));
        check(json!({}), "{", Err("this must be JSON"));
        check(json!({ "type": "string" }), "\n", Err("this must be filled in"));
        check(json!({ "type": "integer", "default": 7 }), "", Ok(json!(7)));
    }

    #[test]
    fn a_field_says_what_it_wants_and_cannot_steer_the_terminal() {
        let schema =
            json!({ "type": "integer", "description": "how\n\u{1b}[2Jmany", "default": 2 });
        let form = json!({ "properties": { "n": schema } });
        let prompt = fields(&form).unwrap()[0].prompt();
        assert_eq!(prompt, "n – how \\u{1b}[2Jmany (whole number, may be empty) [2]: ");
        assert_eq!(fields(&json!({ "type": "object", "properties": {} })), Ok(vec![]));
        let many: Map<_, _> = (0..51).map(|n| (n.to_string(), json!({}))).collect();
        let refused = fields(&json!({ "properties": many }));
        assert_eq!(refused, Err("it has 51 fields, too many to type here".into()));
    }
}
