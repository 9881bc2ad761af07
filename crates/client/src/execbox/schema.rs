//! One compiled JSON Schema, and what it says about a value in the words that execbox's clients know.

use ::schema::{Formats, Kind, Misfit, Types};
use lifecycle::Json;
use serde_json::{Number, Value};

/// How many issues one failure names: enough to repair a call, few enough to read.
const ISSUES_MAX: usize = 20;

/// Longest single issue: a pattern or a name of megabytes must not fill the guest.
const ISSUE_CHARS_MAX: usize = 300;

/// Issues of alternatives lie inside those of the whole; this deep nobody reads them.
const ALTERNATIVES_DEPTH_MAX: usize = 4;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Schema(::schema::Schema);

impl Schema {
    /// Compiles a schema. References outside it are errors: a schema must never make us fetch anything.
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        let compiled = ::schema::Schema::compile(schema, Formats::Ignored);
        compiled.map(Self).map_err(|defect| shortened(defect.to_string()))
    }

    /// Nothing, or what is wrong: `data/a must be number, data/b must be number`.
    pub(super) fn check(&self, json: &Json) -> Result<(), String> {
        let Some(misfits) = self.0.misfits_in(json.text(), ISSUES_MAX) else {
            return Err("data must be JSON".to_owned());
        };
        let mut issues = vec![];
        for misfit in &misfits {
            say(misfit, ALTERNATIVES_DEPTH_MAX, &mut issues);
        }
        issues.truncate(ISSUES_MAX);
        if issues.is_empty() { Ok(()) } else { Err(issues.join(", ")) }
    }
}

fn say(misfit: &Misfit, depth: usize, issues: &mut Vec<String>) {
    if let Kind::AnyOf { context } | Kind::OneOfNone { context } = &misfit.kind
        && depth > 0
    {
        for inner in context.iter().flatten().take(ISSUES_MAX) {
            say(inner, depth - 1, issues);
        }
    }
    // One issue for each that is too many, as there is one for each that is missing.
    let n_times = if let Kind::AdditionalProperties { unexpected } = &misfit.kind {
        unexpected.len().min(ISSUES_MAX)
    } else {
        1
    };
    let issue = shortened(format!("data{} {}", misfit.path, wording(&misfit.kind)));
    issues.extend(std::iter::repeat_n(issue, n_times));
}

fn wording(kind: &Kind) -> String {
    let most = |limit: u64, of| format!("must NOT have more than {limit} {of}");
    let least = |limit: u64, of| format!("must NOT have fewer than {limit} {of}");
    match kind {
        Kind::AdditionalProperties { .. } => "must NOT have additional properties".to_owned(),
        Kind::Required { property } => format!("must have required property '{property}'"),
        Kind::Type { expected } => format!("must be {}", type_names(*expected)),
        Kind::Enum { .. } => "must be equal to one of the allowed values".to_owned(),
        Kind::Const { .. } => "must be equal to constant".to_owned(),
        Kind::Minimum { limit } => format!("must be >= {}", number(limit)),
        Kind::Maximum { limit } => format!("must be <= {}", number(limit)),
        Kind::ExclusiveMinimum { limit } => format!("must be > {}", number(limit)),
        Kind::ExclusiveMaximum { limit } => format!("must be < {}", number(limit)),
        Kind::MultipleOf { divisor } => format!("must be multiple of {}", number(divisor)),
        Kind::MinLength { limit } => least(*limit, "characters"),
        Kind::MaxLength { limit } => most(*limit, "characters"),
        Kind::MinItems { limit } => least(*limit, "items"),
        Kind::MaxItems { limit } => most(*limit, "items"),
        Kind::AdditionalItems { limit } => most(*limit as u64, "items"),
        Kind::MinProperties { limit } => least(*limit, "properties"),
        Kind::MaxProperties { limit } => most(*limit, "properties"),
        Kind::Pattern { pattern } => format!("must match pattern \"{pattern}\""),
        Kind::UniqueItems => "must NOT have duplicate items".to_owned(),
        Kind::Contains { least } => format!("must contain at least {least} valid item(s)"),
        Kind::MaxContains { most } => format!("must contain no more than {most} valid item(s)"),
        Kind::Not => "must NOT be valid".to_owned(),
        Kind::AnyOf { .. } => "must match a schema in anyOf".to_owned(),
        Kind::OneOfNone { .. } | Kind::OneOfSeveral => {
            "must match exactly one schema in oneOf".to_owned()
        }
        Kind::PropertyNames { .. } => "property name must be valid".to_owned(),
        Kind::UnevaluatedProperties { .. } => "must NOT have unevaluated properties".to_owned(),
        Kind::UnevaluatedItems { .. } => "must NOT have unevaluated items".to_owned(),
        Kind::Never => "boolean schema is false".to_owned(),
        Kind::Format { .. } | Kind::Metaschema | Kind::TooLong { .. } | Kind::TooDeep { .. } => {
            kind.to_string()
        }
    }
}

fn type_names(types: Types) -> String {
    types.names().collect::<Vec<_>>().join(",")
}

/// A number as JavaScript writes it: without a fraction that is nothing.
fn number(number: &Number) -> String {
    number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string())
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(ISSUE_CHARS_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
