//! Names and types as execbox generates them, and the cases in which we deviate.

use client::execbox::{ProvidedTool, ToolProvider, sanitize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns one part of the record. Other parts contain strings that only JavaScript can represent.
fn recorded(part: &str) -> Value {
    let file = include_str!("../../../../tests/conformance/execbox/units.json");
    let parts: BTreeMap<String, Box<RawValue>> = serde_json::from_str(file).unwrap();
    serde_json::from_str(parts[part].get()).unwrap()
}

fn tool(name: &str) -> ProvidedTool {
    ProvidedTool::new(name, |input, _| async { Ok(Some(input)) })
}

fn resolved(tools: Vec<ProvidedTool>) -> Arc<client::execbox::ResolvedProvider> {
    tools.into_iter().fold(ToolProvider::new("ns"), ToolProvider::tool).resolve().unwrap()
}

#[test]
fn names_are_sanitised_as_recorded() {
    for case in recorded("sanitizeToolName").as_array().unwrap() {
        let input = case["input"].as_str().unwrap();
        assert_eq!(sanitize(input), case["value"].as_str().unwrap(), "{input:?}");
    }
}

#[test]
fn namespaces_are_accepted_and_refused_as_recorded() {
    for case in recorded("namespaceNames").as_array().unwrap() {
        let input = case["input"].as_str().unwrap();
        let resolved = ToolProvider::new(input).resolve();
        let seen = match &resolved {
            Ok(provider) => json!({"input": input, "value": provider.namespace()}),
            Err(error) => json!({"input": input, "throws": error.to_string()}),
        };
        assert_eq!(&seen, case);
    }
}

#[test]
fn names_that_meet_are_numbered_as_recorded() {
    // The order matters, and decoding the file would sort the names.
    let provider = resolved(["a-b", "a.b", "a_b", "a_b__2", "a b"].map(tool).into());
    assert_eq!(json!(provider.original_to_safe_name()), recorded("collisions"));
    for (original, safe) in provider.original_to_safe_name() {
        assert_eq!(provider.safe_to_original_name()[safe], original);
    }
}

/// Returns the tools whose schemas produced the recorded texts.
fn schemas(case: &str) -> Vec<ProvidedTool> {
    let input = |name: &str, schema: Value| tool(name).input_schema(schema);
    match case {
        "none" => vec![],
        "noSchema" => vec![tool("t")],
        "description" => vec![tool("t").description("One line")],
        "multilineDescription" => vec![tool("t").description("First\nSecond */ injected")],
        "scalars" => [("s", "string"), ("n", "number"), ("i", "integer"), ("b", "boolean"), ("z", "null")]
            .map(|(name, kind)| input(name, json!({"type": kind})))
            .into(),
        "object" => vec![input(
            "t",
            json!({"type": "object", "required": ["a"], "properties": {
                "a": {"type": "string"}, "b": {"type": "number"}, "c-d": {"type": "boolean"}
            }}),
        )],
        "nested" => vec![
            input(
                "t",
                json!({"type": "object", "properties": {"f": {
                    "type": "object", "required": ["g"],
                    "properties": {"g": {"type": "array", "items": {"type": "string"}}},
                }}}),
            )
            .output_schema(json!({"type": "object", "properties": {"r": {
                "type": "array",
                "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
            }}})),
        ],
        "arrays" => vec![
            input("a", json!({"type": "array"})),
            input("b", json!({"type": "array", "items": {"type": "number"}})),
            input("c", json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}})),
            input("d", json!({"type": "array", "items": {"type": "object"}})),
            input("e", json!({"type": "array", "items": {"anyOf": [{"type": "string"}]}})),
        ],
        "unsupported" => vec![
            input("oneOf", json!({"oneOf": [{"type": "string"}]})),
            input("anyOf", json!({"anyOf": [{"type": "string"}]})),
            input("allOf", json!({"allOf": [{"type": "string"}]})),
            input("ref", json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}})),
            input("list", json!({"type": ["string", "null"]})),
            input("enumOnly", json!({"enum": ["a"]})),
            input("enumString", json!({"type": "string", "enum": ["a"]})),
            input("constOnly", json!({"const": 1})),
            input("emptyObject", json!({"type": "object", "properties": {}})),
            input("additional", json!({"type": "object", "additionalProperties": {"type": "string"}})),
            input("empty", json!({})),
        ],
        other => panic!("no schemas are known for {other}"),
    }
}

#[test]
fn types_are_written_as_recorded() {
    for (case, expected) in recorded("types").as_object().unwrap() {
        let text = resolved(schemas(case));
        assert_eq!(text.types_execbox(), expected.as_str().unwrap(), "{case}");
    }
}

#[track_caller]
fn check_rich(schema: Value, expected: &str) {
    let provider = resolved(vec![tool("t").input_schema(schema)]);
    let head = "declare namespace ns {\n  function t(input: ";
    let text =
        provider.types().strip_prefix(head).unwrap_or_else(|| panic!("{}", provider.types()));
    assert_eq!(text.strip_suffix("): Promise<unknown>;\n}").unwrap(), expected);
}

#[test]
fn rich_types_keep_alternatives_and_literals() {
    check_rich(json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "string | null");
    check_rich(
        json!({"oneOf": [{"const": "a"}, {"const": 1}, {"const": null}]}),
        r#""a" | 1 | null"#,
    );
    check_rich(json!({"enum": ["a", "it's \"b\"", 2, false]}), r#""a" | "it's \"b\"" | 2 | false"#);
    check_rich(json!({"type": ["string", "integer"]}), "string | number");
    check_rich(json!({"type": "array", "items": {"enum": [1, 2]}}), "Array<1 | 2>");
    check_rich(
        json!({"type": "array", "prefixItems": [{"type": "string"}, {}]}),
        "[string, unknown]",
    );
    check_rich(
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        "Record<string, string>",
    );
    check_rich(
        json!({"allOf": [{"type": "object"}, {"anyOf": [{"type": "null"}, {"type": "string"}]}]}),
        "Record<string, unknown> & (null | string)",
    );
    check_rich(json!({"const": {"a b": [1]}}), r#"{ "a b": [1] }"#);
    check_rich(json!(false), "never");
}

#[test]
fn rich_types_name_what_is_referred_to() {
    let tree = json!({"type": "object", "required": ["of"], "properties": {
        "of": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
    }});
    let schema = json!({"$ref": "#/$defs/tree", "$defs": {"tree": tree}});
    let provider = resolved(vec![tool("t").input_schema(schema)]);
    let expected = "declare namespace ns {\n  type TInput_tree = {\n    of: TInput_tree[];\n  };\n  \n  function t(input: TInput_tree): Promise<unknown>;\n}";
    assert_eq!(provider.types(), expected);
}

#[test]
fn a_description_cannot_end_its_comment() {
    let provider = resolved(vec![tool("t").description("First\nSecond */ injected")]);
    let expected = "declare namespace ns {\n  /**\n   * First\n   * Second *\\/ injected\n   */\n  function t(input: unknown): Promise<unknown>;\n}";
    assert_eq!(provider.types(), expected);
}

#[test]
fn members_carry_their_descriptions() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string", "description": "who */"}}});
    check_rich(schema, "{\n    /**\n     * who *\\/\n     */\n    a?: string;\n  }");
}

#[test]
fn a_schema_that_repeats_itself_stays_short() {
    let mut schema = json!({"type": "string"});
    for _ in 0..100 {
        schema =
            json!({"type": "object", "properties": {"a": schema.clone(), "b": {"const": "x"}}});
    }
    let provider = resolved(vec![tool("t").input_schema(schema)]);
    assert!(provider.types().len() < 64 << 10 && provider.types_execbox().len() < 64 << 10);
}
