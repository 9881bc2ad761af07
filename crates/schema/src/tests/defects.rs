use crate::{CompiledSchema, FormatMode};
use serde_json::{Value, json};

#[track_caller]
fn check(schema: &Value, expected: &str) {
    let told =
        CompiledSchema::compile(schema, FormatMode::Ignored).map_err(|defect| defect.to_string());
    assert_eq!(told.err().as_deref(), Some(expected), "{schema}");
}

#[test]
fn keywords_have_their_shapes() {
    let cases = [
        ("type", json!(7), "must be the name of a type, or an array of such"),
        ("type", json!("text"), "must be the name of a type, or an array of such"),
        ("type", json!([]), "must be the name of a type, or an array of such"),
        ("type", json!(["string", null]), "must be the name of a type, or an array of such"),
        ("enum", json!("a"), "must be an array"),
        ("required", json!("a"), "must be an array of strings"),
        ("required", json!([1]), "must be an array of strings"),
        ("maxLength", json!(-1), "must be a whole number, zero or more"),
        ("minItems", json!(1.5), "must be a whole number, zero or more"),
        ("minimum", json!("1"), "must be a number"),
        ("exclusiveMinimum", json!(true), "must be a number"),
        ("multipleOf", json!(0), "must be a number above zero"),
        ("uniqueItems", json!(1), "must be true or false"),
        ("format", json!(1), "must be a string"),
        ("$ref", json!(1), "must be a string"),
        ("$id", json!(1), "must be a string"),
        ("$schema", json!(1), "must be a string"),
        ("properties", json!([]), "must be an object"),
        ("patternProperties", json!(1), "must be an object"),
        ("dependentRequired", json!({"a": 1}), "must be an array of strings"),
        ("$defs", json!([]), "must be an object"),
        ("allOf", json!({}), "must be an array"),
        ("anyOf", json!([]), "must have a schema"),
        ("items", json!([{}]), "must be a schema: an array of them is called prefixItems"),
        ("not", json!(1), "must be an object, true or false"),
        ("additionalProperties", json!(null), "must be an object, true or false"),
    ];
    for (keyword, value, what) in cases {
        check(&json!({keyword: value}), &format!("/{keyword} of the schema {what}"));
    }
    check(&json!("text"), "the schema must be an object, true or false");
}

#[test]
fn defects_are_found_wherever_they_are() {
    let wrong = json!({"minLength": "1"});
    let what = "minLength of the schema must be a whole number, zero or more";
    check(&json!({"properties": {"a/b~": wrong}}), &format!("/properties/a~1b~0/{what}"));
    check(&json!({"$defs": {"unused": {"not": wrong}}}), &format!("/$defs/unused/not/{what}"));
    check(&json!({"oneOf": [true, {"items": wrong}]}), &format!("/oneOf/1/items/{what}"));
    check(&json!({"x": wrong, "$ref": "#/x"}), &format!("/x/{what}"));
    assert!(
        CompiledSchema::compile(&json!({"x": wrong, "const": wrong}), FormatMode::Ignored).is_ok()
    );
}

#[test]
fn patterns_must_compile() {
    for schema in [json!({"pattern": "("}), json!({"patternProperties": {"[b-a]": true}})] {
        let defect = CompiledSchema::compile(&schema, FormatMode::Ignored).unwrap_err();
        assert!(defect.what.starts_with("is no pattern: "), "{defect}");
    }
}

#[test]
fn remarks_may_be_anything() {
    let schema = json!({"title": 1, "description": null, "default": [], "format": "shoe-size", "x-mine": {"type": 1}});
    assert!(CompiledSchema::compile(&schema, FormatMode::Checked).is_ok());
}
