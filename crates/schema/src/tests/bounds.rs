use super::compiled;
use crate::check::{DEPTH_MAX, MISFITS_MAX, STEPS_MAX, SchemaCheck};
use crate::readable::NESTING_MAX;
use crate::{MisfitKind, SchemaMisfit};
use serde_json::{Map, Value, json};

/// Half of the stack of a runtime thread.
const STACK_BYTES: usize = 1 << 20;

fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).unwrap();
    thread.join().unwrap();
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({"v": 1}), |inner, _| json!({"next": [inner]}))
}

fn given_up(kind: MisfitKind) -> Vec<SchemaMisfit> {
    vec![SchemaMisfit { path: String::new(), kind }]
}

#[test]
fn deep_values_and_schemas_that_contain_themselves_fit_on_a_small_stack() {
    on_a_small_stack(|| {
        let schema = json!({
            "$ref": "#/$defs/a", "$defs": {
                "a": {"anyOf": [{"$ref": "#/$defs/b"}]},
                "b": {
                    "properties": {"next": {"oneOf": [{"type": "null"}, {"items": {"$ref": "#"}}]}},
                    "unevaluatedProperties": {"type": "number"},
                },
            }
        });
        let compiled = compiled(&schema);
        assert!(compiled.is_valid(&nested(NESTING_MAX / 2)));
        let broken = json!({"next": [{"next": [{"v": "text"}]}]});
        assert_eq!(compiled.misfits(&broken, 5).len(), 1);
    });
}

#[test]
fn schemas_inside_each_other_without_end_are_given_up() {
    on_a_small_stack(|| {
        let n_defs = 5_000;
        let link = |n: usize| {
            (format!("d{n}"), json!({"anyOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]}))
        };
        let mut defs: Map<String, Value> = (0..n_defs).map(link).collect();
        defs.insert(format!("d{n_defs}"), json!({"type": "null"}));
        let compiled = compiled(&json!({"$ref": "#/$defs/d0", "$defs": defs}));
        assert!(!compiled.is_valid(&json!(null)));
        let expected = given_up(MisfitKind::TooDeep { depth_max: DEPTH_MAX });
        assert_eq!(compiled.misfits(&json!(null), 5), expected);
    });
}

#[test]
fn alternatives_that_multiply_are_given_up() {
    let link = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        (format!("d{n}"), json!({"not": {"anyOf": [next, next]}}))
    };
    let mut defs: Map<String, Value> = (0..60).map(link).collect();
    defs.insert("d60".into(), json!(false));
    let compiled = compiled(&json!({"$ref": "#/$defs/d0", "$defs": defs}));
    let mut check = SchemaCheck::new(&compiled, 5);
    check.n_steps_left = 100_000;
    let expected = given_up(MisfitKind::TooLong { steps_max: STEPS_MAX });
    assert_eq!(check.run(&json!(1)), Err(expected));
}

#[test]
fn patterns_that_explode_again_and_again_are_given_up() {
    let compiled = compiled(&json!({"items": {"pattern": r"^(a|aa|b)+\1c?$"}}));
    let text = format!("{}bac", "a".repeat(100));
    let value = json!(vec![text; 100_000]);
    assert!(!compiled.is_valid(&value));
    // A pattern that explodes only once is reported as any other misfit.
    assert_eq!(compiled.misfits(&json!([value[0], 1]), 5).len(), 1);
}

#[test]
fn a_large_value_is_checked_to_its_end() {
    let item = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    let schema =
        json!({"type": "array", "uniqueItems": true, "items": {"anyOf": [item, {"type": "null"}]}});
    let value: Value = (0..100_000).map(|n| json!({"n": n})).collect();
    assert!(compiled(&schema).is_valid(&value));
}

#[test]
fn alternatives_of_alternatives_do_not_fill_the_memory() {
    let link = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        (format!("d{n}"), json!({"anyOf": [next, next, next]}))
    };
    let mut defs: Map<String, Value> = (0..11).map(link).collect();
    defs.insert("d11".into(), json!({"type": "null"}));
    let compiled = compiled(&json!({"$ref": "#/$defs/d0", "$defs": defs}));
    let [misfit] = &compiled.misfits(&json!(1), 5)[..] else { panic!() };
    let n_told = n_told(misfit);
    assert!((1_000..=MISFITS_MAX + 100).contains(&n_told), "{n_told}");
}

fn n_told(misfit: &SchemaMisfit) -> usize {
    let MisfitKind::AnyOf { context } = &misfit.kind else { return 1 };
    1 + context.iter().flatten().map(n_told).sum::<usize>()
}
