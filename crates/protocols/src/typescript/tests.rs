use super::*;
use serde_json::json;

fn definitions<'a>(root: &'a Value) -> (String, BTreeMap<String, String>) {
    let mut types = Types::<'a>::default();
    let text = types.write(root);
    types.write_named(root);
    (text, types.into_definitions())
}

#[track_caller]
fn check(schema: &Value, expected: &str) {
    assert_eq!(definitions(schema).0, expected);
}

#[test]
fn types_are_written_as_clients_know_them() {
    let object = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "number"}, "d-e": {"type": "integer"}},
        "required": ["a"],
    });
    check(&object, r#"{ a: string; b?: number; "d-e"?: number; }"#);
    check(&json!({"type": "array", "items": {"type": "string"}}), "string[]");
    check(&json!({"enum": ["a", "b", null, 1]}), r#""a" | "b" | null | 1"#);
    check(&json!({"type": "string", "nullable": true}), "string | null");
    check(&json!({"type": ["string", "null"]}), "string | null");
    check(&json!({"type": "array", "items": {"type": ["string", "null"]}}), "(string | null)[]");
    check(&json!({"type": "object"}), "{ [k: string]: unknown; }");
    check(&json!({"additionalProperties": {"type": "number"}}), "{ [k: string]: number; }");
    check(&json!({"type": "object", "additionalProperties": false}), "{ }");
    check(&json!({}), "unknown");
    check(&json!(false), "never");
    check(&json!({"const": "k"}), r#""k""#);
    check(&json!({"prefixItems": [{"type": "string"}, {}], "type": "array"}), "[string, unknown]");
    check(
        &json!({"prefixItems": [{"type": "string"}], "items": {"type": "number"}, "type": "array"}),
        "[string, ...number[]]",
    );
    check(&json!({"anyOf": [{"type": "string"}, {"type": "number"}]}), "string | number");
    check(
        &json!({"type": "array", "items": {"properties": {"x": {"type": ["string", "null"]}}}}),
        "{ x?: string | null; }[]",
    );
}

#[test]
fn references_have_names_and_definitions_of_their_own() {
    let schema = json!({
        "allOf": [{"$ref": "#/$defs/A"}, {"properties": {"z": {"type": "string"}}}],
        "$defs": {"A": {"properties": {"kids": {"items": {"$ref": "#/$defs/A"}, "type": "array"}}}},
    });
    let (text, definitions) = definitions(&schema);
    assert_eq!(text, "(A & { z?: string; })");
    assert_eq!(definitions, BTreeMap::from([("A".to_owned(), "{ kids?: A[]; }".to_owned())]));
}

#[test]
fn circles_end() {
    for circle in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/a"}}}),
    ] {
        definitions(&circle);
    }
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    check(&deep, &format!("unknown{}", "[]".repeat(DEPTH_MAX)));
}

#[test]
fn a_megabyte_stays_compact() {
    let many: Map<_, _> = (0..2_000)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/Type{}", (n + 1) % 2_000)});
            let mut members = Map::from_iter([("next".to_owned(), next)]);
            for m in 0..20 {
                members.insert(format!("member_number_{m}"), json!({"type": "string"}));
            }
            (format!("Type{n}"), json!({"type": "object", "properties": members}))
        })
        .collect();
    let schema = json!({
        "properties": (0..500).map(|n| (format!("p{n}"), json!({"$ref": format!("#/$defs/Type{n}")})))
            .collect::<Map<_, _>>(),
        "$defs": many,
    });
    assert!(schema.to_string().len() > 1_000_000);
    let (text, definitions) = definitions(&schema);
    let n_bytes = text.len() + definitions.values().map(String::len).sum::<usize>();
    assert!(n_bytes < 3 * BYTES_MAX, "{n_bytes}");
    assert!(text.starts_with("{ p0?: Type0; p1?: Type1; "), "{text}");
    assert!(definitions["Type0"].starts_with("{ member_number_0?: string;"));
}

#[test]
fn long_enumerations_are_cut() {
    let names: Vec<_> = (0..100).map(|n| format!("name{n}")).collect();
    let (text, _) = definitions(&json!({"enum": names}));
    assert!(text.ends_with(r#"| "name39" /* 60 more */"#), "{text}");
}

#[test]
fn what_cannot_be_a_name_is_made_one() {
    let schema = json!({"$ref": "#/$defs/a.b~1c", "$defs": {"a.b/c": {"type": "string"}}});
    let (text, definitions) = definitions(&schema);
    assert_eq!((text.as_str(), definitions["a_b_1c"].as_str()), ("a_b_1c", "string"));
}
