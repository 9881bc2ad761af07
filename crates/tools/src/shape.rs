//! Fingerprint of what a tool takes, does and reaches. It does not change when only descriptions do, so that a
//! user who approved the tool is asked again only if there is something new to approve.

use crate::{SharedSchema, ToolSpec};
use lifecycle::ToolRevision;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Keywords of a schema that only people read.
const WORDS: [&str; 8] = [
    "title",
    "description",
    "examples",
    "example",
    "deprecated",
    "$comment",
    "externalDocs",
    "x-order",
];

/// Keywords whose members have arbitrary names, not keywords of JSON Schema.
const NAMED: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// The fingerprint of a tool whose calls go to `target`.
pub(crate) fn shape(spec: &ToolSpec, target: &str) -> ToolRevision {
    let input = spec.input.as_ref().map(SharedSchema::accepted).unwrap_or_default();
    let about = spec.about.as_deref().unwrap_or_default();
    let (read_only, asks) = (spec.read_only, spec.asks);
    // With their lengths, so that moving text from one part to the next changes the result.
    let parts = [target, about].map(|part| format!("{} {part}", part.len())).concat();
    ToolRevision::from_text(&format!("{parts} {read_only} {asks} {input:02x?}"))
}

/// The fingerprint of what a schema accepts, without the schemas that it refers to.
pub(crate) fn accepted(schema: &Value) -> [u8; 32] {
    let mut hash = Sha256::new();
    feed(&mut hash, schema, false);
    hash.finalize().into()
}

fn feed(hash: &mut Sha256, value: &Value, is_named: bool) {
    match value {
        Value::Object(members) => {
            let counts = |key: &str| is_named || !WORDS.contains(&key);
            let mut members: Vec<_> = members.iter().filter(|(key, _)| counts(key)).collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            hash.update(format!("{{{}", members.len()));
            for (key, value) in members {
                hash.update(format!("{} {key}", key.len()));
                feed(hash, value, !is_named && NAMED.contains(&key.as_str()));
            }
        }
        Value::Array(items) => {
            hash.update(format!("[{}", items.len()));
            items.iter().for_each(|item| feed(hash, item, false));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let text = value.to_string();
            hash.update(format!("={} {text}", text.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchemaDefinitions;
    use serde_json::json;
    use std::sync::Arc;

    fn spec(schema: &Value) -> ToolSpec {
        ToolSpec { input: Some(SharedSchema::new(schema)), ..ToolSpec::new("a") }
    }

    #[test]
    fn words_do_not_count_and_what_is_let_through_does() {
        let before = json!({"type": "object", "properties": {
            "title": {"type": "string", "description": "Its name."}}});
        let reworded = json!({"description": "Makes one.", "properties": {
            "title": {"type": "string", "description": "What it is called."}}, "type": "object"});
        let mut told = spec(&reworded);
        told.description = "Something else.".into();
        assert_eq!(shape(&spec(&before), "https://a"), shape(&told, "https://a"));
        let wider = json!({"type": "object", "properties": {
            "title": {"type": "string"}, "description": {"type": "string"}}});
        let others = [
            shape(&spec(&wider), "https://a"),
            shape(&spec(&before), "https://b"),
            shape(&ToolSpec { read_only: true, ..spec(&before) }, "https://a"),
            shape(&ToolSpec { asks: true, ..spec(&before) }, "https://a"),
            shape(&ToolSpec { about: Some("DELETE /a".into()), ..spec(&before) }, "https://a"),
            shape(&ToolSpec::new("a"), "https://a"),
        ];
        for (at, other) in others.iter().enumerate() {
            assert_ne!(*other, shape(&spec(&before), "https://a"), "{at}");
        }
    }

    #[test]
    fn a_definition_counts_for_those_who_reach_it() {
        let spec = |name: &str, leaf: Value| {
            let schemas = [
                ("A", json!({"properties": {"b": {"$ref": "#/$defs/B"}}})),
                ("B", json!({"properties": {"a": {"$ref": "#/$defs/A"}, "leaf": leaf}})),
                ("C", json!({"type": "string"})),
            ];
            let shared = schemas.iter().map(|(name, schema)| ((*name).to_owned(), schema));
            let shared = Arc::new(SchemaDefinitions::new(shared));
            let input = json!({"$ref": format!("#/$defs/{name}")});
            let input = Some(SharedSchema::sharing(&input, &shared));
            shape(&ToolSpec { input, ..ToolSpec::new("a") }, "")
        };
        let (text, anything) = (json!({"type": "string"}), json!(true));
        assert_eq!(spec("A", text.clone()), spec("A", text.clone()));
        assert_ne!(spec("A", text.clone()), spec("A", anything.clone()));
        assert_eq!(spec("C", text), spec("C", anything));
    }
}
