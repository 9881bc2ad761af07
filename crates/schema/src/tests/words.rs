use super::compiled;
use crate::{CompiledSchema, FormatMode, MisfitKind, SchemaMisfit};
use serde_json::{Value, json};

#[track_caller]
fn check(schema: &Value, value: &Value, expected: &[(&str, &str)]) {
    let misfits = CompiledSchema::compile(schema, FormatMode::Checked).unwrap().misfits(value, 10);
    let told: Vec<_> =
        misfits.iter().map(|misfit| (misfit.path.as_str(), misfit.kind.to_string())).collect();
    let told: Vec<_> = told.iter().map(|(path, kind)| (*path, kind.as_str())).collect();
    assert_eq!(told, expected, "{value} against {schema}");
}

#[test]
fn every_misfit_has_its_words_and_none_tells_the_value() {
    let cases = [
        (json!(false), json!(1), "no value is allowed here"),
        (json!({"type": "number"}), json!("s"), r#"value is not of type "number""#),
        (
            json!({"type": ["string", "null"]}),
            json!(1),
            r#"value is not of types "null", "string""#,
        ),
        (json!({"const": {"a": 1}}), json!(1), r#"value is not {"a":1}"#),
        (json!({"enum": [1]}), json!(2), "value is not 1"),
        (json!({"enum": [1, "a", null]}), json!(2), r#"value is not one of 1, "a" or null"#),
        (json!({"enum": []}), json!(2), "no value is allowed here"),
        (json!({"minimum": 1.5}), json!(1), "value is less than the minimum of 1.5"),
        (json!({"maximum": 1}), json!(2), "value is greater than the maximum of 1"),
        (json!({"exclusiveMinimum": 1}), json!(1), "value is not greater than 1"),
        (json!({"exclusiveMaximum": 1}), json!(1), "value is not less than 1"),
        (json!({"multipleOf": 2}), json!(1), "value is not a multiple of 2"),
        (json!({"minLength": 1}), json!(""), "value is shorter than 1 character"),
        (json!({"maxLength": 2}), json!("abc"), "value is longer than 2 characters"),
        (json!({"minItems": 1}), json!([]), "value has fewer than 1 item"),
        (json!({"maxItems": 0}), json!([1]), "value has more than 0 items"),
        (json!({"minProperties": 1}), json!({}), "value has fewer than 1 property"),
        (json!({"maxProperties": 0}), json!({"a": 1}), "value has more than 0 properties"),
        (json!({"pattern": "^a$"}), json!("b"), r#"value does not match "^a$""#),
        (json!({"format": "date"}), json!("b"), r#"value is not a "date""#),
    ];
    for (schema, value, expected) in cases {
        check(&schema, &value, &[("", expected)]);
    }
}

#[test]
fn so_has_every_misfit_of_members_items_and_alternatives() {
    let cases = [
        (json!({"uniqueItems": true}), json!([1, 1]), "value has the same item twice"),
        (json!({"required": ["a\"b"]}), json!({}), r#""a\"b" is a required property"#),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            json!({"a": 1}),
            r#""b" is a required property"#,
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            "the name 'ab' is not allowed: value is longer than 1 character",
        ),
        (json!({"contains": {"const": 1}}), json!([]), "value has fewer than 1 item as asked for"),
        (
            json!({"contains": true, "maxContains": 1}),
            json!([1, 2]),
            "value has more than 1 item of a kind that is limited",
        ),
        (
            json!({"anyOf": [false]}),
            json!(1),
            "value is not valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        (
            json!({"oneOf": [false]}),
            json!(1),
            "value is not valid under any of the schemas listed in the 'oneOf' keyword",
        ),
        (
            json!({"oneOf": [true, true]}),
            json!(1),
            "value is valid under more than one of the schemas listed in the 'oneOf' keyword",
        ),
        (json!({"not": true}), json!(1), "value is what the 'not' keyword rules out"),
        (
            json!({"additionalProperties": false}),
            json!({"a": 1}),
            "Additional properties are not allowed ('a' was unexpected)",
        ),
        (
            json!({"unevaluatedProperties": false}),
            json!({"a": 1, "b": 1}),
            "Unevaluated properties are not allowed ('a', 'b' were unexpected)",
        ),
        (
            json!({"prefixItems": [true], "items": false}),
            json!([1, 2]),
            "Additional items are not allowed after 1 item",
        ),
        (
            json!({"unevaluatedItems": false}),
            json!([1, 2]),
            "Unevaluated items are not allowed (2 unexpected)",
        ),
        (
            json!({"$ref": "http://json-schema.org/draft-07/schema"}),
            json!(1),
            "value is not a JSON Schema",
        ),
    ];
    for (schema, value, expected) in cases {
        check(&schema, &value, &[("", expected)]);
    }
}

#[test]
fn what_should_not_be_there_comes_before_what_is_missing_and_that_before_what_is_wrong() {
    let schema = json!({
        "properties": {"a": {"type": "null"}, "b": true}, "required": ["b"], "additionalProperties": false
    });
    let expected = [
        ("", "Additional properties are not allowed ('c' was unexpected)"),
        ("", r#""b" is a required property"#),
        ("/a", r#"value is not of type "null""#),
    ];
    check(&schema, &json!({"a": 1, "c": 1}), &expected);
}

#[test]
fn places_are_pointers() {
    let schema =
        json!({"additionalProperties": {"items": {"additionalProperties": {"type": "null"}}}});
    let value = json!({"a/b": [{}, {"~": 1}], "": [{"": 2}]});
    let wrong = r#"value is not of type "null""#;
    check(&schema, &value, &[("//0/", wrong), ("/a~1b/1/~0", wrong)]);
}

#[test]
fn no_more_is_told_than_was_asked_for() {
    let compiled = compiled(&json!({"items": {"type": "null"}}));
    let value = json!(vec![1; 100]);
    for (n_max, n_told) in [(0, 1), (1, 1), (7, 7), (1_000, 100)] {
        assert_eq!(compiled.misfits(&value, n_max).len(), n_told);
    }
}

#[test]
fn long_lists_are_cut() {
    let options: Vec<_> = (0..100).collect();
    let [misfit] = &compiled(&json!({"enum": options})).misfits(&json!("a"), 5)[..] else {
        panic!()
    };
    assert!(misfit.kind.to_string().ends_with("10, 11 or 88 more"), "{}", misfit.kind);
    let many: Value = (0..100).map(|n| (format!("{n:02}"), json!(1))).collect();
    let [misfit] = &compiled(&json!({"additionalProperties": false})).misfits(&many, 5)[..] else {
        panic!()
    };
    assert!(
        misfit.kind.to_string().ends_with("'19' and 80 more were unexpected)"),
        "{}",
        misfit.kind
    );
}

#[test]
fn alternatives_say_what_is_wrong_by_each() {
    let schema = json!({"anyOf": [{"type": "null"}, {"properties": {"a": {"minimum": 1}}, "required": ["b"]}]});
    let misfits = compiled(&schema).misfits(&json!({"a": 0}), 5);
    let [SchemaMisfit { path, kind: MisfitKind::AnyOf { context } }] = &misfits[..] else {
        panic!("{misfits:?}")
    };
    let told: Vec<Vec<_>> = context
        .iter()
        .map(|branch| {
            branch.iter().map(|misfit| format!("{} {}", misfit.path, misfit.kind)).collect()
        })
        .collect();
    let expected = [
        vec![r#" value is not of type "null""#],
        vec![r#" "b" is a required property"#, "/a value is less than the minimum of 1"],
    ];
    assert_eq!(
        (path.as_str(), told),
        ("", expected.map(|branch| branch.into_iter().map(str::to_owned).collect()).to_vec())
    );
}
