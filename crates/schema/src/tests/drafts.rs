use super::check;
use serde_json::{Value, json};

const FOUR: &str = "http://json-schema.org/draft-04/schema#";
const SIX: &str = "http://json-schema.org/draft-06/schema#";
const SEVEN: &str = "http://json-schema.org/draft-07/schema#";
const OF_2019: &str = "https://json-schema.org/draft/2019-09/schema";
const OF_2020: &str = "https://json-schema.org/draft/2020-12/schema";

fn of(draft: &str, mut schema: Value) -> Value {
    schema["$schema"] = draft.into();
    schema
}

#[test]
fn in_draft_4_limits_are_left_out_by_a_flag_and_floats_are_no_integers() {
    let schema = json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 3});
    check(&of(FOUR, schema), &[json!(2), json!(3)], &[json!(1), json!(4)]);
    let schema = json!({"maximum": 3, "exclusiveMaximum": true, "exclusiveMinimum": false});
    check(&of(FOUR, schema), &[json!(2)], &[json!(3)]);
    let whole = json!({"type": "integer"});
    check(&of(FOUR, whole.clone()), &[json!(1), json!(1e30)], &[json!(1.0), json!(1.5)]);
    check(&of(SIX, whole), &[json!(1.0), json!(1e30)], &[json!(1.5)]);
}

#[test]
fn each_draft_knows_its_keywords_and_takes_others_for_remarks() {
    let since_six = json!({"const": 1});
    check(&of(FOUR, since_six.clone()), &[json!(2)], &[]);
    check(&of(SIX, since_six), &[json!(1.0)], &[json!(2)]);
    let since_seven = json!({"if": {"minimum": 5}, "then": {"multipleOf": 5}, "else": false});
    check(&of(SIX, since_seven.clone()), &[json!(1), json!(6)], &[]);
    check(&of(SEVEN, since_seven), &[json!(10), json!("a")], &[json!(1), json!(6)]);
    let since_2019 = json!({"dependentRequired": {"a": ["b"]}});
    check(&of(SEVEN, since_2019.clone()), &[json!({"a": 1})], &[]);
    check(&of(OF_2019, since_2019), &[json!({"a": 1, "b": 1}), json!({})], &[json!({"a": 1})]);
    let since_2020 = json!({"prefixItems": [{"type": "null"}]});
    check(&of(OF_2019, since_2020.clone()), &[json!([1])], &[]);
    check(&of(OF_2020, since_2020), &[json!([null, 1]), json!([])], &[json!([1])]);
    let until_2019 = json!({"items": [{"type": "null"}], "additionalItems": {"type": "number"}});
    check(&of(OF_2019, until_2019), &[json!([null, 1])], &[json!([1]), json!([null, null])]);
}

#[test]
fn an_unknown_draft_or_none_is_the_latest() {
    for schema in [json!({}), of("https://example.org/mine", json!({}))] {
        let mut schema = schema;
        schema["prefixItems"] = json!([{"type": "null"}]);
        check(&schema, &[json!([null])], &[json!([1])]);
    }
}

#[test]
fn dependencies_count_in_every_draft() {
    let schema = json!({"dependencies": {"a": ["b"], "c": {"maxProperties": 1}}});
    for draft in [FOUR, SIX, SEVEN, OF_2019, OF_2020] {
        let fitting = [json!({"a": 1, "b": 1}), json!({"c": 1}), json!(1)];
        check(&of(draft, schema.clone()), &fitting, &[json!({"a": 1}), json!({"c": 1, "b": 1})]);
    }
}

#[test]
fn beside_a_reference_nothing_counts_until_draft_7() {
    let schema = json!({"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a", "maxLength": 1});
    check(&of(SEVEN, schema.clone()), &[json!("ab")], &[json!(1)]);
    check(&of(OF_2019, schema), &[json!("a")], &[json!("ab"), json!(1)]);
}

#[test]
fn contained_items_are_counted() {
    let schema = json!({"contains": {"const": 1}, "minContains": 2, "maxContains": 3});
    check(&schema, &[json!([1, 1]), json!([0, 1, 1, 1])], &[json!([1]), json!([1, 1, 1, 1])]);
    check(&of(SEVEN, schema), &[json!([1])], &[json!([])]);
    check(&json!({"contains": false, "minContains": 0}), &[json!([]), json!([1])], &[]);
    check(&json!({"minContains": 9}), &[json!([])], &[]);
}

#[test]
fn what_no_rule_spoke_of_is_unevaluated() {
    let schema = json!({
        "properties": {"a": true},
        "allOf": [{"patternProperties": {"^b": true}}],
        "anyOf": [{"required": ["c"], "properties": {"c": true}}, {"properties": {"d": {"const": 1}}}],
        "if": {"required": ["e"]}, "then": {"properties": {"e": true}},
        "dependentSchemas": {"a": {"properties": {"f": true}}},
        "unevaluatedProperties": false,
    });
    let fitting = [
        json!({"a": 1, "b1": 1, "c": 1, "d": 1, "e": 1, "f": 1}),
        json!({"d": 1}),
        json!({"c": 1}),
    ];
    let others = [json!({"f": 1}), json!({"c": 1, "d": 2}), json!({"x": 1})];
    check(&schema, &fitting, &others);
    let cousins = json!({"allOf": [{"properties": {"a": true}}, {"unevaluatedProperties": false}]});
    check(&cousins, &[json!({})], &[json!({"a": 1})]);
    let ruled_out =
        json!({"not": {"not": {"properties": {"a": true}}}, "unevaluatedProperties": false});
    check(&ruled_out, &[json!({})], &[json!({"a": 1})]);
    let typed = json!({"properties": {"a": true}, "unevaluatedProperties": {"type": "null"}});
    check(&typed, &[json!({"a": 1, "b": null})], &[json!({"b": 1})]);
}

#[test]
fn items_are_unevaluated_too() {
    let schema = json!({
        "prefixItems": [true], "contains": {"type": "string"}, "unevaluatedItems": {"type": "null"}
    });
    check(&schema, &[json!([1, "a", null, "b"])], &[json!([1, "a", 2])]);
    let earlier = json!({"contains": {"const": 1}, "unevaluatedItems": false});
    check(&of(OF_2019, earlier), &[], &[json!([1])]);
    let all = json!({"anyOf": [{"items": {"type": "number"}}, true], "unevaluatedItems": false});
    check(&all, &[json!([1, 2])], &[json!(["a"])]);
    let nested = json!({"allOf": [{"unevaluatedItems": true}], "unevaluatedItems": false});
    check(&nested, &[json!([1, 2])], &[]);
}

#[test]
fn members_are_named_patterned_or_additional() {
    let schema = json!({
        "properties": {"a": {"type": "null"}}, "patternProperties": {"^.b$": {"minimum": 1}},
        "additionalProperties": {"type": "string"}, "propertyNames": {"maxLength": 2},
    });
    let fitting = [json!({"a": null, "xb": 1, "c": "c"}), json!({"ab": "text"}), json!(7)];
    let others = [json!({"a": 1}), json!({"xb": 0}), json!({"c": 1}), json!({"long": "c"})];
    check(&schema, &fitting, &others);
}

#[test]
fn alternatives_want_one_all_or_exactly_one() {
    let two = json!([{"minimum": 2}, {"multipleOf": 3}]);
    check(&json!({"allOf": two}), &[json!(3)], &[json!(2), json!(0)]);
    check(&json!({"anyOf": two}), &[json!(2), json!(3), json!(0)], &[json!(1)]);
    check(&json!({"oneOf": two}), &[json!(2), json!(0)], &[json!(3), json!(1)]);
    check(&json!({"not": {"anyOf": two}}), &[json!(1)], &[json!(2)]);
}

#[test]
fn numbers_beyond_floats_are_told_apart() {
    let one_more = 9_007_199_254_740_993_u64;
    check(
        &json!({"const": one_more}),
        &[json!(one_more)],
        &[json!(one_more - 1), json!(9_007_199_254_740_992.0)],
    );
    check(&json!({"maximum": one_more - 1}), &[json!(one_more - 1)], &[json!(one_more)]);
    check(
        &json!({"enum": [1, "a", {"b": [2.0]}]}),
        &[json!(1.0), json!("a"), json!({"b": [2]})],
        &[json!(true), json!("b")],
    );
}

#[test]
fn lengths_are_characters() {
    check(
        &json!({"minLength": 2, "maxLength": 2.0}),
        &[json!("é😀"), json!(1)],
        &[json!("😀"), json!("abc")],
    );
    check(&json!({"maxLength": u64::MAX}), &[json!("")], &[]);
    check(&json!({"minLength": 1e30}), &[], &[json!("a")]);
}
