//! Generates random schemas and values from one small vocabulary: a third-party validator must accept
//! the same values. `PROPTEST_CASES=100000` runs more cases.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use schema::{CompiledSchema, FormatMode};
use serde_json::{Map, Value, json};

const DRAFTS: [&str; 5] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

const NAMES: [&str; 4] = ["a", "b", "ab", ""];
const PATTERNS: [&str; 6] = ["a", "^a$", "^.?$", r"^\d*$", "b|^$", "(?!a)b"];
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Targets of references: by pointer, by anchor and by name.
const REFS: [&str; 9] = [
    "#",
    "#/$defs/x",
    "#/$defs/y",
    "#/$defs/z",
    "#/properties/a",
    "#mark",
    "#inner",
    "http://e/z",
    "z#/not",
];

fn name() -> impl Strategy<Value = String> {
    select(&NAMES[..]).prop_map(str::to_owned)
}

fn number() -> impl Strategy<Value = Value> {
    select(vec![
        json!(0),
        json!(1),
        json!(1.0),
        json!(-1),
        json!(1.5),
        json!(2),
        json!(3),
        json!(0.5),
    ])
}

fn leaf() -> impl Strategy<Value = Value> {
    let text = select(&["", "a", "b", "ab", "1", "é😀"][..]).prop_map(Value::from);
    prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number(), text]
}

fn value() -> BoxedStrategy<Value> {
    leaf()
        .prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::from),
                btree_map(name(), inner, 0..4).prop_map(|members| members.into_iter().collect()),
            ]
        })
        .boxed()
}

type Keyword = (String, Value);

fn keyword(
    name: &'static str,
    value: impl Strategy<Value = Value> + 'static,
) -> BoxedStrategy<Keyword> {
    value.prop_map(move |value| (name.to_owned(), value)).boxed()
}

fn counts() -> impl Strategy<Value = Keyword> {
    let names = [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "minContains",
        "maxContains",
    ];
    (select(names.to_vec()), 0_u64..4).prop_map(|(name, n)| (name.to_owned(), json!(n)))
}

fn limits() -> impl Strategy<Value = Keyword> {
    let names = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    (select(names.to_vec()), number()).prop_map(|(name, n)| (name.to_owned(), n))
}

fn plain_keyword() -> BoxedStrategy<Keyword> {
    let types = subsequence(&TYPES[..], 1..4).prop_map(|types| json!(types));
    let one_type = select(&TYPES[..]).prop_map(Value::from);
    let divisor = select(vec![json!(1), json!(2), json!(0.5), json!(1.5), json!(1.0)]);
    let names = || subsequence(&NAMES[..], 1..3).prop_map(|names| json!(names));
    prop_oneof![
        2 => keyword("type", prop_oneof![types, one_type]),
        1 => keyword("const", value()),
        1 => keyword("enum", vec(value(), 1..5).prop_map(distinct)),
        2 => limits(),
        1 => keyword("multipleOf", divisor),
        2 => counts(),
        1 => keyword("pattern", select(&PATTERNS[..]).prop_map(Value::from)),
        1 => keyword("uniqueItems", any::<bool>().prop_map(Value::from)),
        1 => keyword("required", names()),
        1 => keyword("dependentRequired", btree_map(name(), names(), 0..3).prop_map(|map| json!(map))),
    ]
    .boxed()
}

/// Removes duplicates: the metaschemas of some drafts require that `enum` has none.
fn distinct(options: Vec<Value>) -> Value {
    let mut kept: Vec<Value> = vec![];
    for option in options {
        if !kept.iter().any(|other| same(other, &option)) {
            kept.push(option);
        }
    }
    kept.into()
}

fn same(a: &Value, b: &Value) -> bool {
    let schema = CompiledSchema::compile(&json!({ "enum": [a] }), FormatMode::Ignored).unwrap();
    schema.is_valid(b)
}

fn applicator(inner: BoxedStrategy<Value>) -> BoxedStrategy<Keyword> {
    let one = [
        "not",
        "if",
        "then",
        "else",
        "items",
        "additionalItems",
        "additionalProperties",
        "contains",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    ];
    let several = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
    let named = ["properties", "dependentSchemas", "dependencies"];
    let patterned = btree_map(select(&PATTERNS[..]), inner.clone(), 0..3);
    prop_oneof![
        6 => (select(one.to_vec()), inner.clone()).prop_map(|(name, schema)| (name.to_owned(), schema)),
        4 => (select(several.to_vec()), vec(inner.clone(), 1..4))
            .prop_map(|(name, schemas)| (name.to_owned(), schemas.into())),
        3 => (select(named.to_vec()), btree_map(name(), inner, 0..3))
            .prop_map(|(name, schemas)| (name.to_owned(), json!(schemas))),
        1 => keyword("patternProperties", patterned.prop_map(|map| json!(map))),
        1 => (select(&["$ref", "$dynamicRef"][..]), select(&REFS[..]))
            .prop_map(|(name, target)| (name.to_owned(), json!(target))),
        // Only in subschemas of children: no draft defines a schema that contains itself at the same location.
        1 => select(&["items", "additionalProperties"][..])
            .prop_map(|name| (name.to_owned(), json!({"$recursiveRef": "#"}))),
    ]
    .boxed()
}

fn subschema() -> BoxedStrategy<Value> {
    let plain = vec(plain_keyword(), 0..3).prop_map(|keywords| keywords.into_iter().collect());
    let leaf = prop_oneof![6 => plain, 1 => any::<bool>().prop_map(Value::from)];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let keyword = prop_oneof![1 => plain_keyword(), 2 => applicator(inner)];
        vec(keyword, 0..4).prop_map(|keywords| keywords.into_iter().collect())
    })
    .boxed()
}

fn document() -> impl Strategy<Value = Value> {
    let keywords = vec(prop_oneof![1 => plain_keyword(), 3 => applicator(subschema())], 0..5);
    let draft = proptest::option::of(select(&DRAFTS[..]));
    let marks = select(vec!["$anchor", "$dynamicAnchor", "$recursiveAnchor", "$comment"]);
    let defs = (subschema(), subschema(), subschema(), marks.clone(), marks.clone(), marks);
    (keywords, draft, defs).prop_map(|(keywords, draft, (x, y, z, at_x, at_z, at_root))| {
        let mut root: Map<String, Value> = keywords.into_iter().collect();
        root.entry("properties").or_insert(json!({}))["a"] = json!({"minimum": 1});
        let mut z = z.as_object().cloned().unwrap_or_default();
        z.insert("$id".into(), json!("http://e/z"));
        z.insert("not".into(), json!({"const": "never"}));
        mark(&mut z, at_z, "mark");
        mark(&mut root, at_root, "mark");
        let mut x = x.as_object().cloned().unwrap_or_default();
        mark(&mut x, at_x, "inner");
        root.insert("$defs".into(), json!({ "x": x, "y": y, "z": z }));
        if let Some(draft) = draft {
            root.insert("$schema".into(), draft.into());
        }
        root.into()
    })
}

fn mark(schema: &mut Map<String, Value>, keyword: &str, name: &str) {
    let value = if keyword == "$recursiveAnchor" { json!(true) } else { json!(name) };
    schema.insert(keyword.to_owned(), value);
}

/// Removes the parts of the document that the other validator interprets differently.
fn undisputed(mut document: Value, has_circles: bool) -> Value {
    let text = document.to_string();
    let is_2019 = text.contains("2019-09");
    // Each keyword exists in one draft only; the other validator applies them in both.
    remove(&mut document, if is_2019 { "$dynamicRef" } else { "$recursiveRef" });
    if text.contains("draft-04") {
        // In draft 4 this is a flag. The other validator rejects or ignores a number; ours reads it as in later drafts.
        remove(&mut document, "exclusiveMinimum");
        remove(&mut document, "exclusiveMaximum");
    }
    if text.contains("\"unevaluated") {
        // No draft has both keywords.
        remove(&mut document, "dependencies");
    }
    if is_2019 && text.contains("\"contains\"") {
        // In that draft, `contains` does not mark items as evaluated.
        remove(&mut document, "unevaluatedItems");
    }
    if has_circles {
        // If a schema contains itself at the same location, no draft defines what it has evaluated, nor
        // the result if it is valid exactly when it is invalid.
        for keyword in ["unevaluatedItems", "unevaluatedProperties", "not", "oneOf", "if"] {
            remove(&mut document, keyword);
        }
    } else {
        straighten(&mut document);
    }
    document
}

/// Removes references that form a cycle, unless the cycle descends into the value.
fn straighten(document: &mut Value) {
    let mut allowed = vec!["#/properties/a", "z#/not"];
    for (name, names) in [
        ("z", ["#/$defs/z", "http://e/z"]),
        ("y", ["#/$defs/y"; 2]),
        ("x", ["#/$defs/x", "#inner"]),
    ] {
        keep_refs(&mut document["$defs"][name], &allowed);
        allowed.extend(names);
    }
    let defs = document["$defs"].take();
    keep_refs(document, &allowed);
    document["$defs"] = defs;
}

fn keep_refs(schema: &mut Value, allowed: &[&str]) {
    match schema {
        Value::Object(members) => members.retain(|keyword, value| match keyword.as_str() {
            "$ref" | "$dynamicRef" => value.as_str().is_none_or(|target| allowed.contains(&target)),
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas"
            | "dependencies" => {
                keep_refs_inside(value, allowed);
                true
            }
            _ => true,
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
    }
}

/// Does the same for the schema, the list of schemas or the named schemas in a keyword.
fn keep_refs_inside(value: &mut Value, allowed: &[&str]) {
    keep_refs(value, allowed);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| keep_refs(item, allowed)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| keep_refs(member, allowed))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn remove(schema: &mut Value, keyword: &str) {
    match schema {
        Value::Object(members) => {
            members.remove(keyword);
            members.values_mut().for_each(|value| remove(value, keyword));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove(item, keyword)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

proptest! {
    #[test]
    fn another_validator_agrees(document in document(), has_circles in any::<bool>(), values in vec(value(), 1..6)) {
        let document = undisputed(document, has_circles);
        let Ok(other) = jsonschema::options().offline().should_validate_formats(false).build(&document)
        else {
            return Ok(());
        };
        let ours = match CompiledSchema::compile(&document, FormatMode::Ignored) {
            Ok(ours) => ours,
            // The other validator does not check references in keywords without effect, such as an `if` alone.
            Err(defect) if defect.what.starts_with("refers to") => return Ok(()),
            Err(defect) => return Err(TestCaseError::fail(format!("{defect}: {document}"))),
        };
        for value in values {
            let fits = ours.is_valid(&value);
            prop_assert_eq!(fits, other.is_valid(&value), "{} against {}", value, document);
            for n_max in [1, 3, 100] {
                let misfits = ours.misfits(&value, n_max);
                prop_assert_eq!(misfits.is_empty(), fits, "{} against {}", value, document);
                prop_assert!(misfits.len() <= n_max);
                prop_assert!(misfits.iter().all(|misfit| value.pointer(&misfit.path).is_some()));
            }
        }
    }
}
