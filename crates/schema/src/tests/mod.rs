//! Verdicts of schemas of every draft, and their wording.

mod bounds;
mod defects;
mod drafts;
mod references;
mod words;

use crate::{CompiledSchema, FormatMode};
use serde_json::Value;

fn compiled(schema: &Value) -> CompiledSchema {
    match CompiledSchema::compile(schema, FormatMode::Ignored) {
        Ok(compiled) => compiled,
        Err(defect) => panic!("{defect}: {schema}"),
    }
}

/// Checks the verdict on values that fit and on values that do not.
#[track_caller]
fn check(schema: &Value, fitting: &[Value], others: &[Value]) {
    let compiled = compiled(schema);
    for (values, expected) in [(fitting, true), (others, false)] {
        for value in values {
            assert_eq!(compiled.is_valid(value), expected, "{value} against {schema}");
            let misfits = compiled.misfits(value, 10);
            assert_eq!(misfits.is_empty(), expected, "{value} against {schema}");
        }
    }
}
