//! Files among the arguments of a call. A program passes a file as a `ToolFile`; a tool whose schema wants base64 at that
//! place gets the text.

use crate::SharedSchema;
use crate::schema::SchemaIssue;
use lifecycle::Json;
use serde_json::Value;

/// The tag of a file in the text of arguments.
const TAG: &str = "\"ToolFile\"";

/// Maximum number of alternatives of one schema that are checked: real schemas have a few.
const ALTERNATIVES_MAX: usize = 64;

/// The hint for a program that passes a file where a tool takes text.
const HINT: &str = "A file is no text: pass its `data` (base64) or its `text()`.";

/// The arguments with the text of each file that `schema` wants as base64; `None` if they stay as they are.
pub(crate) fn placed(schema: &SharedSchema, args: &Json) -> Option<Json> {
    // Few arguments hold a file, and schemas are large.
    if !args.as_text().contains(TAG) {
        return None;
    }
    let mut value: Value = serde_json::from_str(args.as_text()).ok()?;
    let root = schema.whole();
    place(&mut value, &[&root], &root).then(|| Json::from_value(&value).ok())?
}

/// The hint for schema issues at places where the program passed a file.
pub(crate) fn hint(issues: &[SchemaIssue], args: &Json) -> Option<&'static str> {
    if !args.as_text().contains(TAG) {
        return None;
    }
    let value: Value = serde_json::from_str(args.as_text()).ok()?;
    let is_file = |issue: &SchemaIssue| value.pointer(&issue.path).is_some_and(is_tool_file);
    issues.iter().any(is_file).then_some(HINT)
}

/// A file that a program passes on: a `ToolFile`, or a block of MCP with bytes.
pub(crate) fn is_file(value: &Value) -> bool {
    let is = |name: &str, expected: &str| value.get(name).and_then(Value::as_str) == Some(expected);
    let has_text = |name: &str| value.get(name).is_some_and(Value::is_string);
    let is_block = (is("type", "image") || is("type", "audio")) && has_text("mimeType");
    has_text("data") && (is("_tag", "ToolFile") || is("encoding", "base64") || is_block)
}

fn is_tool_file(value: &Value) -> bool {
    is_file(value) && value["_tag"] == "ToolFile"
}

/// Replaces the files in `value` that one of `schemas` wants as text, and none of them as an object; whether there were any.
fn place(value: &mut Value, schemas: &[&Value], root: &Value) -> bool {
    let alternatives = alternatives(schemas, root);
    if is_tool_file(value) {
        let encoding = alternatives.iter().find_map(|schema| encoding(schema));
        let Some(encoding) = encoding.filter(|_| !alternatives.iter().any(|it| takes_object(it)))
        else {
            return false;
        };
        *value = encoding.of_base64(value["data"].as_str().unwrap_or_default()).into();
        return true;
    }
    match value {
        Value::Object(members) => {
            let mut is_changed = false;
            for (name, member) in members {
                let schemas: Vec<_> =
                    alternatives.iter().filter_map(|schema| member_schema(schema, name)).collect();
                is_changed |= !schemas.is_empty() && place(member, &schemas, root);
            }
            is_changed
        }
        Value::Array(items) => {
            let mut is_changed = false;
            for (item_idx, item) in items.iter_mut().enumerate() {
                let schemas: Vec<_> =
                    alternatives.iter().filter_map(|it| item_schema(it, item_idx)).collect();
                is_changed |= !schemas.is_empty() && place(item, &schemas, root);
            }
            is_changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn member_schema<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let own = schema.get("properties").and_then(|properties| properties.get(name));
    own.or_else(|| schema.get("additionalProperties"))
}

fn item_schema(schema: &Value, item_idx: usize) -> Option<&Value> {
    let own = schema.get("prefixItems").and_then(|items| items.get(item_idx));
    own.or_else(|| schema.get("items"))
}

/// The schemas themselves and all that they refer to or are composed of.
fn alternatives<'s>(schemas: &[&'s Value], root: &'s Value) -> Vec<&'s Value> {
    let mut found: Vec<&Value> = vec![];
    let mut unseen: Vec<&Value> = schemas.to_vec();
    while let Some(schema) = unseen.pop() {
        let is_known = found.iter().any(|known| std::ptr::eq(*known, schema));
        if is_known || found.len() == ALTERNATIVES_MAX {
            continue;
        }
        found.push(schema);
        let reference = schema.get("$ref").and_then(Value::as_str);
        unseen.extend(reference.and_then(|to| root.pointer(to.strip_prefix('#')?)));
        for keyword in ["anyOf", "oneOf", "allOf"] {
            unseen.extend(schema.get(keyword).and_then(Value::as_array).into_iter().flatten());
        }
    }
    found
}

fn takes_object(schema: &Value) -> bool {
    has_type(schema, "object") || schema.get("properties").is_some()
}

fn has_type(schema: &Value, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(|it| it == name),
        Some(it) => it == name,
        None => false,
    }
}

/// How a schema wants bytes as text.
#[derive(Clone, Copy)]
enum BytesEncoding {
    Base64,
    Base64Url,
}

impl BytesEncoding {
    fn of_base64(self, data: &str) -> String {
        match self {
            Self::Base64 => data.to_owned(),
            Self::Base64Url => data.trim_end_matches('=').replace('+', "-").replace('/', "_"),
        }
    }
}

fn encoding(schema: &Value) -> Option<BytesEncoding> {
    if schema.get("type").is_some() && !has_type(schema, "string") {
        return None;
    }
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    match (text("contentEncoding"), text("format")) {
        (Some("base64"), _) | (None, Some("byte" | "binary" | "base64")) => {
            Some(BytesEncoding::Base64)
        }
        (Some("base64url"), _) | (None, Some("base64url")) => Some(BytesEncoding::Base64Url),
        (Some(_), _) | (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: &Value, args: &Value, expected: &Value) {
        let args = Json::from_value(args).unwrap();
        let placed = placed(&SharedSchema::new(schema), &args).unwrap_or(args);
        assert_eq!(serde_json::from_str::<Value>(placed.as_text()).unwrap(), *expected, "{schema}");
    }

    fn file() -> Value {
        json!({"_tag": "ToolFile", "mimeType": "image/png", "encoding": "base64", "data": "+/8=", "byteLength": 2})
    }

    #[test]
    fn a_file_is_text_where_a_schema_wants_base64_and_stays_a_file_elsewhere() {
        let base64 = json!({"type": "string", "contentEncoding": "base64"});
        let cases = [
            (base64.clone(), json!("+/8=")),
            (json!({"type": "string", "format": "byte"}), json!("+/8=")),
            (json!({"type": ["string", "null"], "format": "binary"}), json!("+/8=")),
            (json!({"type": "string", "contentEncoding": "base64url"}), json!("-_8")),
            (json!({"anyOf": [{"type": "null"}, base64]}), json!("+/8=")),
            (json!({"allOf": [{"type": "string"}, {"contentEncoding": "base64"}]}), json!("+/8=")),
            (json!({"$ref": "#/$defs/bytes"}), json!("+/8=")),
            (json!({"type": "string"}), file()),
            (json!({"type": "string", "contentEncoding": "quoted-printable"}), file()),
            (json!({"anyOf": [{"type": "object"}, base64]}), file()),
            (json!({"anyOf": [{"properties": {}}, base64]}), file()),
            (json!({"type": "object"}), file()),
            (json!(true), file()),
            (json!({"$ref": "#/$defs/circle"}), file()),
            (json!({"$ref": "#/nowhere"}), file()),
        ];
        for (place, expected) in cases {
            let schema = json!({
                "$defs": {"bytes": base64, "circle": {"$ref": "#/$defs/circle"}},
                "properties": {"a": place, "list": {"items": place}, "pair": {"prefixItems": [true, place]}},
                "additionalProperties": {"additionalProperties": place},
            });
            let args = |at: Value| json!({"a": at, "list": [1, at], "pair": [file(), at], "more": {"x": at}, "n": 1});
            check(&schema, &args(file()), &args(expected));
        }
    }

    #[test]
    fn what_only_looks_like_a_file_stays() {
        let schema = json!({"properties": {"a": {"type": "string", "contentEncoding": "base64"}}});
        for value in [
            json!({"_tag": "ToolFile"}),
            json!({"_tag": "ToolFile", "data": 5}),
            json!({"encoding": "base64", "data": "aGk="}),
            json!("\"ToolFile\""),
        ] {
            check(&schema, &json!({"a": value}), &json!({"a": value}));
        }
        check(&json!(true), &file(), &file());
    }

    #[test]
    fn a_file_in_the_place_of_text_has_a_hint() {
        let issue = |path: &str| SchemaIssue { path: path.to_owned(), message: String::new() };
        let args = Json::from_value(&json!({"a": file(), "b": 1})).unwrap();
        assert_eq!(hint(&[issue("/b"), issue("/a")], &args), Some(HINT));
        assert_eq!(hint(&[issue("/b"), issue("")], &args), None);
    }
}
