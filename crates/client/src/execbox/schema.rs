//! One compiled JSON Schema, and what it says about a value in the words that execbox's clients know.

use super::readable::{self, NESTING_MAX, Readable};
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use lifecycle::Json;
use serde_json::Value;

/// How many issues one failure names: enough to repair a call, few enough to read.
const ISSUES_MAX: usize = 20;

/// Longest single issue: a pattern or a name of megabytes must not fill the guest.
const ISSUE_CHARS_MAX: usize = 300;

/// Issues of alternatives lie inside those of the whole; this deep nobody reads them.
const ALTERNATIVES_DEPTH_MAX: usize = 4;

/// A pattern that backtracks more often than this is given up: arguments come from hostile programs.
const BACKTRACKS_MAX: usize = 100_000;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Schema(Validator);

impl Schema {
    /// Compiles a schema. References outside it are errors: a schema must never make us fetch anything.
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS_MAX);
        let validator = jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(patterns)
            .build(schema);
        validator.map(Self).map_err(|error| shortened(error.to_string()))
    }

    /// Nothing, or what is wrong: `data/a must be number, data/b must be number`.
    pub(super) fn check(&self, json: &Json) -> Result<(), String> {
        let Some(Readable { value, is_tamed }) = readable::read(json.text()) else {
            return Err("data must be JSON".to_owned());
        };
        if self.0.is_valid(&value) {
            return Ok(());
        }
        // Where nesting was cut, what is missing is missing because we cut it.
        let is_ours = |error: &ValidationError<'_>| {
            is_tamed && error.instance_path().as_str().matches('/').count() + 1 >= NESTING_MAX
        };
        let errors = self.0.iter_errors(&value).filter(|error| !is_ours(error));
        let mut issues = vec![];
        for error in errors.take(ISSUES_MAX) {
            say(&error, ALTERNATIVES_DEPTH_MAX, &mut issues);
        }
        issues.truncate(ISSUES_MAX);
        if issues.is_empty() { Ok(()) } else { Err(issues.join(", ")) }
    }
}

fn say(error: &ValidationError<'_>, depth: usize, issues: &mut Vec<String>) {
    if let Kind::AnyOf { context } | Kind::OneOfNotValid { context } = error.kind()
        && depth > 0
    {
        for inner in context.iter().flatten().take(ISSUES_MAX) {
            say(inner, depth - 1, issues);
        }
    }
    let place = error.instance_path();
    // One issue for each that is too many, as there is one for each that is missing.
    let n_times = if let Kind::AdditionalProperties { unexpected } = error.kind() {
        unexpected.len().min(ISSUES_MAX)
    } else {
        1
    };
    let issue = shortened(format!("data{place} {}", wording(error)));
    issues.extend(std::iter::repeat_n(issue, n_times));
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the list is the library's; it has words for all"
)]
fn wording(error: &ValidationError<'_>) -> String {
    let most = |limit: &dyn std::fmt::Display, of| format!("must NOT have more than {limit} {of}");
    let least =
        |limit: &dyn std::fmt::Display, of| format!("must NOT have fewer than {limit} {of}");
    match error.kind() {
        Kind::AdditionalProperties { .. } => "must NOT have additional properties".to_owned(),
        Kind::Required { property } => {
            format!("must have required property '{}'", property.as_str().unwrap_or_default())
        }
        Kind::Type { kind } => format!("must be {}", type_names(kind)),
        Kind::Enum { .. } => "must be equal to one of the allowed values".to_owned(),
        Kind::Constant { .. } => "must be equal to constant".to_owned(),
        Kind::Minimum { limit } => format!("must be >= {}", number(limit)),
        Kind::Maximum { limit } => format!("must be <= {}", number(limit)),
        Kind::ExclusiveMinimum { limit } => format!("must be > {}", number(limit)),
        Kind::ExclusiveMaximum { limit } => format!("must be < {}", number(limit)),
        Kind::MultipleOf { multiple_of } => format!("must be multiple of {multiple_of}"),
        Kind::MinLength { limit } => least(limit, "characters"),
        Kind::MaxLength { limit } => most(limit, "characters"),
        Kind::MinItems { limit } => least(limit, "items"),
        Kind::MaxItems { limit } => most(limit, "items"),
        Kind::AdditionalItems { limit } => most(limit, "items"),
        Kind::MinProperties { limit } => least(limit, "properties"),
        Kind::MaxProperties { limit } => most(limit, "properties"),
        Kind::Pattern { pattern } => format!("must match pattern \"{pattern}\""),
        Kind::UniqueItems => "must NOT have duplicate items".to_owned(),
        Kind::Contains => "must contain at least 1 valid item(s)".to_owned(),
        Kind::Not { .. } => "must NOT be valid".to_owned(),
        Kind::AnyOf { .. } => "must match a schema in anyOf".to_owned(),
        Kind::OneOfNotValid { .. } | Kind::OneOfMultipleValid { .. } => {
            "must match exactly one schema in oneOf".to_owned()
        }
        Kind::PropertyNames { .. } => "property name must be valid".to_owned(),
        Kind::UnevaluatedProperties { .. } => "must NOT have unevaluated properties".to_owned(),
        Kind::UnevaluatedItems { .. } => "must NOT have unevaluated items".to_owned(),
        Kind::FalseSchema => "boolean schema is false".to_owned(),
        // Masked: the value itself may be large or secret.
        _ => error.masked().to_string(),
    }
}

fn type_names(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => {
            let names: Vec<_> = several.iter().map(|kind| kind.to_string()).collect();
            names.join(",")
        }
    }
}

/// A number as JavaScript writes it: without a fraction that is nothing.
fn number(value: &Value) -> String {
    value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string())
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(ISSUE_CHARS_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
