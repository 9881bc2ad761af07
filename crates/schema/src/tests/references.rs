use super::{check, compiled};
use crate::{CompiledSchema, FormatMode};
use serde_json::json;
use std::slice::from_ref;

#[test]
fn references_go_by_pointer_anchor_and_name() {
    let schema = json!({
        "$id": "http://example.org/root.json",
        "$defs": {
            "a/b": {"type": "null"},
            "c%": {"type": "null"},
            "d": {"$anchor": "mark", "type": "null"},
            "e": {"$id": "folder/e.json", "type": "null", "$defs": {"f": {"$anchor": "mark", "const": 2}}},
        },
        "prefixItems": [
            {"$ref": "#/$defs/a~1b"},
            {"$ref": "#/$defs/c%25"},
            {"$ref": "#mark"},
            {"$ref": "folder/e.json"},
            {"$ref": "/folder/e.json#mark"},
            {"$ref": "http://example.org/root.json#/prefixItems/0"},
        ],
    });
    let fitting = json!([null, null, null, null, 2, null]);
    check(&schema, &[fitting.clone(), json!([])], &[]);
    for idx in 0..6 {
        let mut value = fitting.clone();
        value[idx] = json!("wrong");
        check(&schema, &[], &[value]);
    }
}

#[test]
fn earlier_drafts_name_schemas_in_their_own_way() {
    let four = json!({
        "$schema": "http://json-schema.org/draft-04/schema#", "id": "http://example.org/",
        "definitions": {"a": {"id": "#mark", "type": "null"}, "b": {"id": "b.json", "enum": [2]}},
        "items": [{"$ref": "#mark"}, {"$ref": "b.json"}],
    });
    check(&four, &[json!([null, 2])], &[json!([1]), json!([null, 1])]);
    let seven = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"a": {"$id": "#mark", "type": "null"}}, "items": {"$ref": "#mark"},
    });
    check(&seven, &[json!([null])], &[json!([1])]);
}

#[test]
fn names_in_constants_name_nothing() {
    let schema = json!({
        "$defs": {"a": {"enum": [{"$id": "x.json", "type": "null"}]}, "b": {"$id": "x.json", "type": "string"}},
        "$ref": "x.json",
    });
    check(&schema, &[json!("a")], &[json!(null)]);
}

#[test]
fn a_reference_may_lead_where_no_schema_is_expected() {
    let schema = json!({"unknown": {"a": [{"type": "null"}]}, "$ref": "#/unknown/a/0"});
    check(&schema, &[json!(null)], &[json!(1)]);
}

#[test]
fn a_dynamic_reference_finds_the_outermost_anchor() {
    let list = json!({
        "$id": "list", "$defs": {"any": {"$dynamicAnchor": "item"}}, "items": {"$dynamicRef": "#item"}
    });
    let schema = json!({
        "$id": "http://example.org/root", "$ref": "list",
        "$defs": {"texts": {"$dynamicAnchor": "item", "type": "string"}, "list": list},
    });
    check(&schema, &[json!(["a"])], &[json!([1])]);
    check(&list, &[json!(["a"]), json!([1])], &[]);
}

#[test]
fn a_recursive_reference_finds_the_outermost_root() {
    let tree = json!({
        "$id": "tree", "$recursiveAnchor": true,
        "properties": {"inner": {"$recursiveRef": "#"}},
    });
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2019-09/schema", "$id": "http://example.org/strict",
        "$recursiveAnchor": true, "$ref": "tree", "unevaluatedProperties": false, "$defs": {"tree": tree},
    });
    let (sound, misspelt) = (json!({"inner": {"inner": {}}}), json!({"inner": {"iner": {}}}));
    check(&schema, from_ref(&sound), from_ref(&misspelt));
    schema["$recursiveAnchor"] = json!(false);
    check(&schema, &[sound, misspelt], &[json!({"iner": {}})]);
}

#[test]
fn nothing_outside_the_document_is_looked_for() {
    for url in
        ["https://example.com/s.json", "http://127.0.0.1/s", "file:///etc/passwd", "other", "#x"]
    {
        let defect = CompiledSchema::compile(&json!({"items": {"$ref": url}}), FormatMode::Ignored)
            .unwrap_err();
        let expected =
            format!("/items/$ref of the schema refers to {url}, which is not in the schema");
        assert_eq!(defect.to_string(), expected);
    }
}

#[test]
fn a_reference_to_a_metaschema_asks_for_a_schema() {
    for draft in ["draft-07/schema#", "draft/2020-12/schema"] {
        let schema = json!({"$ref": format!("http://json-schema.org/{draft}")});
        let fitting =
            [json!({"type": "null"}), json!(true), json!({"$ref": "anywhere"}), json!({"x": 1})];
        let others = [json!(1), json!({"type": 1}), json!({"not": {"minLength": -1}})];
        check(&schema, &fitting, &others);
    }
}

#[test]
fn a_schema_that_leads_back_to_itself_ends() {
    let circles = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"type": "string"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"if": {"$ref": "#"}, "then": {"$ref": "#"}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}, "unevaluatedProperties": {"$ref": "#"}}),
        json!({"$dynamicRef": "#x", "$dynamicAnchor": "x"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"propertyNames": {"$ref": "#"}}),
    ];
    for circle in circles {
        let compiled = compiled(&circle);
        let value = json!({"a": {"a": 1}});
        assert_eq!(compiled.misfits(&value, 9).is_empty(), compiled.is_valid(&value), "{circle}");
    }
}
