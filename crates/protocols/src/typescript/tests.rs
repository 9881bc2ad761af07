use super::*;
use serde_json::json;

fn definitions<'a>(root: &'a Value) -> (String, BTreeMap<String, String>) {
    let mut types = TypeDefinitions::<'a>::default();
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

#[test]
fn each_word_of_a_schema_has_its_type() {
    let text = json!({"type": "string"});
    let cases = [
        (json!({"type": "boolean"}), "boolean"),
        (json!({"type": "null"}), "null"),
        (json!({"type": "shoe"}), "unknown"),
        (json!({"nullable": true, "type": "string"}), "string | null"),
        (json!({"nullable": false, "type": "string"}), "string"),
        (json!({"oneOf": [], "type": "string"}), "string"),
        (json!({"anyOf": [], "allOf": [], "type": "string"}), "string"),
        (json!({"oneOf": [text, {"type": "number"}]}), "string | number"),
        (json!({"items": text}), "string[]"),
        (json!({"type": "array"}), "unknown[]"),
        (json!({"items": [text, true]}), "[string, unknown]"),
        (json!({"prefixItems": [text], "items": false}), "[string]"),
        (json!({"prefixItems": [text], "items": {"enum": [1, 2]}}), "[string, ...(1 | 2)[]]"),
        (
            json!({"properties": {"a": text}, "additionalProperties": text}),
            "{ a?: string; [k: string]: string; }",
        ),
        (json!({"properties": {"a": text}, "additionalProperties": true}), "{ a?: string; }"),
        (json!({"properties": 7, "type": "object"}), "{ [k: string]: unknown; }"),
        (json!({"additionalProperties": true}), "{ [k: string]: unknown; }"),
        (json!([1]), "unknown"),
    ];
    for (schema, expected) in cases {
        check(&schema, expected);
    }
}

#[test]
fn alternatives_are_written_once_and_parts_that_say_nothing_are_left_out() {
    let (text, number) = (json!({"type": "string"}), json!({"type": "number"}));
    let object = json!({"properties": {"a": text}});
    let cases = [
        (json!({"anyOf": [text, text]}), "string"),
        (json!({"anyOf": [text, true]}), "unknown"),
        (
            json!({"anyOf": [text, number], "properties": {"a": text}}),
            "{ a?: string; } & (string | number)",
        ),
        (json!({"allOf": [true]}), "unknown"),
        (json!({"allOf": [true, text]}), "string"),
        (json!({"allOf": [object, {"enum": [1, 2]}]}), "({ a?: string; } & (1 | 2))"),
        (
            json!({"allOf": [{"properties": {"b": number}}], "properties": {"a": text}}),
            "({ b?: number; } & { a?: string; })",
        ),
        (json!({"items": {"anyOf": [text, number]}}), "(string | number)[]"),
        (json!({"items": {"allOf": [object, {"enum": [1, 2]}]}}), "({ a?: string; } & (1 | 2))[]"),
    ];
    for (schema, expected) in cases {
        check(&schema, expected);
    }
}

#[test]
fn names_are_quoted_where_they_must_be_and_definitions_told_apart() {
    let schema =
        json!({"properties": {"a1": true, "1a": true, "$": true, "_b": true, "ä": true, "": true}});
    check(
        &schema,
        r#"{ ""?: unknown; $?: unknown; "1a"?: unknown; _b?: unknown; a1?: unknown; "ä"?: unknown; }"#,
    );
    let schema = json!({
        "items": [{"$ref": "#/a/T"}, {"$ref": "#/b/T"}, {"$ref": "#/c/T"}, {"$ref": "#/d/T"}, {"$ref": "#/d/1"}],
        "a": {"T": {"type": "string"}}, "b": {"T": {"type": "number"}}, "c": {"T": {"type": "null"}},
        "d": {"T": {"type": "string"}, "1": {"type": "boolean"}},
    });
    let (text, definitions) = definitions(&schema);
    assert_eq!(text, "[T, T2, T3, T, _1]");
    let expected = [("T", "string"), ("T2", "number"), ("T3", "null"), ("_1", "boolean")];
    let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(definitions, BTreeMap::from(expected));
    check(&json!({"$ref": "elsewhere"}), "unknown");
    check(&json!({"$ref": "#/nowhere"}), "unknown");
}

#[test]
fn a_definition_of_nothing_but_itself_is_unknown() {
    let schema = json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}});
    let (text, definitions) = definitions(&schema);
    assert_eq!((text.as_str(), definitions["A"].as_str()), ("A", "unknown"));
}

#[test]
fn lists_are_cut_at_their_limits_and_not_before() {
    let members = |n: usize| -> Map<String, Value> {
        (0..n).map(|n| (format!("m{n:03}"), json!({"type": "null"}))).collect()
    };
    let written = |n| definitions(&json!({"properties": members(n), "required": ["m099"]})).0;
    let all = written(MEMBERS_MAX);
    assert!(all.starts_with("{ m000?: null;") && all.ends_with("m059?: null; }"), "{all}");
    let cut = written(100);
    assert!(cut.starts_with("{ m099: null; m000?: null;"), "{cut}");
    assert!(cut.ends_with("m058?: null; /* 40 more */ }"), "{cut}");
    let numbers: Vec<_> = (0..ALTERNATIVES_MAX).collect();
    let (text, _) = definitions(&json!({"enum": numbers}));
    assert!(text.ends_with("| 39"), "{text}");
    let literal = |n: usize| definitions(&json!({"const": "x".repeat(n)})).0;
    assert_eq!(literal(LITERAL_CHARS_MAX).len(), LITERAL_CHARS_MAX + 2);
    assert_eq!(literal(LITERAL_CHARS_MAX + 1), "string");
    check(&json!({"const": [1]}), "unknown");
}

#[test]
fn a_nested_type_is_written_to_its_depth() {
    let nested = |depth: usize, wrap: fn(Value) -> Value| {
        (0..depth).fold(json!({"type": "string"}), |inner, _| wrap(inner))
    };
    let wraps: [fn(Value) -> Value; 6] = [
        |inner| json!({"anyOf": [inner]}),
        |inner| json!({"allOf": [inner]}),
        |inner| json!({"items": inner}),
        |inner| json!({"items": [inner]}),
        |inner| json!({"properties": {"a": inner}}),
        |inner| json!({"additionalProperties": inner}),
    ];
    for wrap in wraps {
        let (at_limit, beyond) = (nested(DEPTH_MAX - 1, wrap), nested(DEPTH_MAX, wrap));
        assert!(definitions(&at_limit).0.contains("string"), "{at_limit}");
        let text = definitions(&beyond).0.replace("[k: string]", "");
        assert!(text.contains("unknown") && !text.contains("string"), "{text}");
    }
    let rest = |inner| json!({"prefixItems": [], "items": inner});
    assert_eq!(definitions(&nested(2, rest)).0, "[, ...[, ...string[]][]]");
    assert!(!definitions(&nested(DEPTH_MAX, rest)).0.contains("string"));
}

#[test]
fn definitions_end_at_their_number() {
    let names: Vec<_> = (0..DEFINITIONS_MAX + 5).map(|n| format!("T{n:02}")).collect();
    let defs: Map<_, _> = names.iter().map(|name| (name.clone(), json!({"const": name}))).collect();
    let refs: Map<_, _> = names
        .iter()
        .map(|name| (name.clone(), json!({"$ref": format!("#/$defs/{name}")})))
        .collect();
    let schema = json!({"properties": refs, "$defs": defs});
    let (text, definitions) = definitions(&schema);
    assert_eq!(definitions.len(), DEFINITIONS_MAX);
    assert!(text.contains("T47?: T47;") && text.contains("T48?: unknown;"), "{text}");
}
