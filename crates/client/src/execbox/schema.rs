//! A compiled JSON Schema whose error messages have the format that execbox's clients know.

use ::schema::{FormatMode, JsonTypes, MisfitKind, SchemaMisfit};
use lifecycle::Json;
use serde_json::{Number, Value};

/// How many issues one failure names: enough to repair a call, few enough to read.
const ISSUES_MAX: usize = 20;

/// Longest single issue: a pattern or a name of megabytes must not fill the guest.
const ISSUE_CHARS_MAX: usize = 300;

/// Issues of alternatives are nested in those of the whole; deeper ones are omitted, because they do not help a reader.
const ALTERNATIVES_DEPTH_MAX: usize = 4;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct ArgumentSchema(::schema::CompiledSchema);

impl ArgumentSchema {
    /// Compiles a schema. References outside it are errors: a schema must never make us fetch anything.
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        let compiled = ::schema::CompiledSchema::compile(schema, FormatMode::Ignored);
        compiled.map(Self).map_err(|defect| shortened(defect.to_string()))
    }

    /// Returns `Ok`, or the issues: `data/a must be number, data/b must be number`.
    pub(super) fn check_value(&self, json: &Json) -> Result<(), String> {
        let Some(misfits) = self.0.misfits_in(json.as_text(), ISSUES_MAX) else {
            return Err("data must be JSON".to_owned());
        };
        let mut issues = vec![];
        for misfit in &misfits {
            describe_misfit(misfit, ALTERNATIVES_DEPTH_MAX, &mut issues);
        }
        issues.truncate(ISSUES_MAX);
        if issues.is_empty() { Ok(()) } else { Err(issues.join(", ")) }
    }
}

fn describe_misfit(misfit: &SchemaMisfit, depth: usize, issues: &mut Vec<String>) {
    if let MisfitKind::AnyOf { context } | MisfitKind::OneOfNone { context } = &misfit.kind
        && depth > 0
    {
        for inner in context.iter().flatten().take(ISSUES_MAX) {
            describe_misfit(inner, depth - 1, issues);
        }
    }
    // One issue for each unexpected member, as there is one for each missing member.
    let n_times = if let MisfitKind::AdditionalProperties { unexpected } = &misfit.kind {
        unexpected.len().min(ISSUES_MAX)
    } else {
        1
    };
    let issue = shortened(format!("data{} {}", misfit.path, wording(&misfit.kind)));
    issues.extend(std::iter::repeat_n(issue, n_times));
}

fn wording(kind: &MisfitKind) -> String {
    let most = |limit: u64, of| format!("must NOT have more than {limit} {of}");
    let least = |limit: u64, of| format!("must NOT have fewer than {limit} {of}");
    match kind {
        MisfitKind::AdditionalProperties { .. } => "must NOT have additional properties".to_owned(),
        MisfitKind::Required { property } => format!("must have required property '{property}'"),
        MisfitKind::Type { expected } => format!("must be {}", type_names(*expected)),
        MisfitKind::Enum { .. } => "must be equal to one of the allowed values".to_owned(),
        MisfitKind::Const { .. } => "must be equal to constant".to_owned(),
        MisfitKind::Minimum { limit } => format!("must be >= {}", number(limit)),
        MisfitKind::Maximum { limit } => format!("must be <= {}", number(limit)),
        MisfitKind::ExclusiveMinimum { limit } => format!("must be > {}", number(limit)),
        MisfitKind::ExclusiveMaximum { limit } => format!("must be < {}", number(limit)),
        MisfitKind::MultipleOf { divisor } => format!("must be multiple of {}", number(divisor)),
        MisfitKind::MinLength { limit } => least(*limit, "characters"),
        MisfitKind::MaxLength { limit } => most(*limit, "characters"),
        MisfitKind::MinItems { limit } => least(*limit, "items"),
        MisfitKind::MaxItems { limit } => most(*limit, "items"),
        MisfitKind::AdditionalItems { limit } => most(*limit as u64, "items"),
        MisfitKind::MinProperties { limit } => least(*limit, "properties"),
        MisfitKind::MaxProperties { limit } => most(*limit, "properties"),
        MisfitKind::Pattern { pattern } => format!("must match pattern \"{pattern}\""),
        MisfitKind::UniqueItems => "must NOT have duplicate items".to_owned(),
        MisfitKind::Contains { least } => format!("must contain at least {least} valid item(s)"),
        MisfitKind::MaxContains { most } => {
            format!("must contain no more than {most} valid item(s)")
        }
        MisfitKind::Not => "must NOT be valid".to_owned(),
        MisfitKind::AnyOf { .. } => "must match a schema in anyOf".to_owned(),
        MisfitKind::OneOfNone { .. } | MisfitKind::OneOfSeveral => {
            "must match exactly one schema in oneOf".to_owned()
        }
        MisfitKind::PropertyNames { .. } => "property name must be valid".to_owned(),
        MisfitKind::UnevaluatedProperties { .. } => {
            "must NOT have unevaluated properties".to_owned()
        }
        MisfitKind::UnevaluatedItems { .. } => "must NOT have unevaluated items".to_owned(),
        MisfitKind::Never => "boolean schema is false".to_owned(),
        MisfitKind::Format { .. }
        | MisfitKind::Metaschema
        | MisfitKind::TooLong { .. }
        | MisfitKind::TooDeep { .. } => kind.to_string(),
    }
}

fn type_names(types: JsonTypes) -> String {
    types.names().collect::<Vec<_>>().join(",")
}

/// A number as JavaScript writes it: without a zero fraction.
fn number(number: &Number) -> String {
    number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string())
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(ISSUE_CHARS_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
