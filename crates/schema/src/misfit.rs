//! Misfits, as data and as a sentence. They never contain the value, which may be large or secret.

use crate::node::JsonTypes;
use serde_json::{Number, Value};
use std::fmt;

/// One violation of a schema.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaMisfit {
    /// JSON pointer into the value; empty for the whole.
    pub path: String,
    /// What is wrong there.
    pub kind: MisfitKind,
}

/// The kinds of misfit. Limits and names are the schema's own.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "each is the keyword of its name, with what that keyword says")]
pub enum MisfitKind {
    /// The schema `false`.
    Never,
    Type {
        expected: JsonTypes,
    },
    Const {
        expected: Value,
    },
    /// The first of the options, and how many more there are.
    Enum {
        options: Vec<Value>,
        n_more: usize,
    },
    Minimum {
        limit: Number,
    },
    Maximum {
        limit: Number,
    },
    ExclusiveMinimum {
        limit: Number,
    },
    ExclusiveMaximum {
        limit: Number,
    },
    MultipleOf {
        divisor: Number,
    },
    MinLength {
        limit: u64,
    },
    MaxLength {
        limit: u64,
    },
    MinItems {
        limit: u64,
    },
    MaxItems {
        limit: u64,
    },
    MinProperties {
        limit: u64,
    },
    MaxProperties {
        limit: u64,
    },
    Pattern {
        pattern: String,
    },
    Format {
        format: &'static str,
    },
    UniqueItems,
    /// A value that is no schema, where the schema requires one.
    Metaschema,
    AdditionalProperties {
        unexpected: ExtraNames,
    },
    /// More items than the schema has places for.
    AdditionalItems {
        limit: usize,
    },
    Required {
        property: String,
    },
    /// The misfits of a member's name.
    PropertyNames {
        name: String,
        misfits: Vec<SchemaMisfit>,
    },
    Contains {
        least: u64,
    },
    MaxContains {
        most: u64,
    },
    /// The misfits of each alternative.
    AnyOf {
        context: Vec<Vec<SchemaMisfit>>,
    },
    /// The misfits of each alternative.
    OneOfNone {
        context: Vec<Vec<SchemaMisfit>>,
    },
    OneOfSeveral,
    Not,
    UnevaluatedProperties {
        unexpected: ExtraNames,
    },
    UnevaluatedItems {
        n_unexpected: usize,
    },
    /// The check was given up: the limit of steps was exceeded.
    TooLong {
        steps_max: usize,
    },
    /// The check was given up: the limit of nested schemas was exceeded.
    TooDeep {
        depth_max: usize,
    },
}

/// Names of members that should not be there: the first, and how many more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtraNames {
    /// The first few.
    pub told: Vec<String>,
    /// How many more there are.
    pub n_more: usize,
}

/// How many names one misfit contains.
const NAMES_TOLD_MAX: usize = 20;

impl ExtraNames {
    pub(crate) fn push(&mut self, name: &str) {
        match self.told.len() < NAMES_TOLD_MAX {
            true => self.told.push(name.to_owned()),
            false => self.n_more += 1,
        }
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.told.len() + self.n_more
    }
}

impl fmt::Display for ExtraNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<_> = self.told.iter().map(|name| format!("'{name}'")).collect();
        f.write_str(&told.join(", "))?;
        if self.n_more > 0 {
            write!(f, " and {} more", self.n_more)?;
        }
        f.write_str(if self.len() == 1 { " was unexpected" } else { " were unexpected" })
    }
}

impl fmt::Display for MisfitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("no value is allowed here"),
            Self::Type { expected } => write_types(f, *expected),
            Self::Const { expected } => write!(f, "value is not {expected}"),
            Self::Enum { options, n_more } => write_options(f, options, *n_more),
            Self::Minimum { limit } => write!(f, "value is less than the minimum of {limit}"),
            Self::Maximum { limit } => write!(f, "value is greater than the maximum of {limit}"),
            Self::ExclusiveMinimum { limit } => write!(f, "value is not greater than {limit}"),
            Self::ExclusiveMaximum { limit } => write!(f, "value is not less than {limit}"),
            Self::MultipleOf { divisor } => write!(f, "value is not a multiple of {divisor}"),
            Self::MinLength { limit } => write!(f, "value is shorter than {}", characters(*limit)),
            Self::MaxLength { limit } => write!(f, "value is longer than {}", characters(*limit)),
            Self::MinItems { limit } => write!(f, "value has fewer than {}", items(*limit)),
            Self::MaxItems { limit } => write!(f, "value has more than {}", items(*limit)),
            Self::MinProperties { limit } => {
                write!(f, "value has fewer than {}", properties(*limit))
            }
            Self::MaxProperties { limit } => {
                write!(f, "value has more than {}", properties(*limit))
            }
            Self::Pattern { pattern } => write!(f, r#"value does not match "{pattern}""#),
            Self::Format { format } => write!(f, r#"value is not a "{format}""#),
            Self::UniqueItems => f.write_str("value has the same item twice"),
            Self::Metaschema => f.write_str("value is not a JSON Schema"),
            Self::AdditionalProperties { unexpected } => {
                write!(f, "Additional properties are not allowed ({unexpected})")
            }
            Self::AdditionalItems { limit } => {
                write!(f, "Additional items are not allowed after {}", items(*limit as u64))
            }
            Self::Required { property } => {
                write!(f, "{} is a required property", Value::from(property.as_str()))
            }
            Self::PropertyNames { name, misfits } => write_name(f, name, misfits),
            Self::Contains { least } => {
                write!(f, "value has fewer than {} as asked for", items(*least))
            }
            Self::MaxContains { most } => {
                write!(f, "value has more than {} of a kind that is limited", items(*most))
            }
            Self::AnyOf { .. } => f.write_str(
                "value is not valid under any of the schemas listed in the 'anyOf' keyword",
            ),
            Self::OneOfNone { .. } => f.write_str(
                "value is not valid under any of the schemas listed in the 'oneOf' keyword",
            ),
            Self::OneOfSeveral => f.write_str(
                "value is valid under more than one of the schemas listed in the 'oneOf' keyword",
            ),
            Self::Not => f.write_str("value is what the 'not' keyword rules out"),
            Self::UnevaluatedProperties { unexpected } => {
                write!(f, "Unevaluated properties are not allowed ({unexpected})")
            }
            Self::UnevaluatedItems { n_unexpected } => {
                write!(f, "Unevaluated items are not allowed ({n_unexpected} unexpected)")
            }
            Self::TooLong { steps_max } => {
                write!(f, "value takes too long to check: more than {steps_max} steps")
            }
            Self::TooDeep { depth_max } => {
                write!(f, "value is too deep to check: more than {depth_max} schemas in each other")
            }
        }
    }
}

fn write_types(f: &mut fmt::Formatter<'_>, types: JsonTypes) -> fmt::Result {
    let names: Vec<_> = types.names().map(|name| format!("\"{name}\"")).collect();
    let word = if names.len() == 1 { "type" } else { "types" };
    write!(f, "value is not of {word} {}", names.join(", "))
}

fn write_options(f: &mut fmt::Formatter<'_>, options: &[Value], n_more: usize) -> fmt::Result {
    let told: Vec<_> = options.iter().map(Value::to_string).collect();
    match (told.as_slice(), n_more) {
        ([], _) => f.write_str("no value is allowed here"),
        ([one], 0) => write!(f, "value is not {one}"),
        ([most @ .., last], 0) => write!(f, "value is not one of {} or {last}", most.join(", ")),
        (_, n_more) => write!(f, "value is not one of {} or {n_more} more", told.join(", ")),
    }
}

fn write_name(f: &mut fmt::Formatter<'_>, name: &str, misfits: &[SchemaMisfit]) -> fmt::Result {
    write!(f, "the name '{name}' is not allowed")?;
    match misfits.first() {
        Some(misfit) => write!(f, ": {}", misfit.kind),
        None => Ok(()),
    }
}

fn characters(n: u64) -> String {
    counted(n, "character", "characters")
}

fn items(n: u64) -> String {
    counted(n, "item", "items")
}

fn properties(n: u64) -> String {
    counted(n, "property", "properties")
}

fn counted(n: u64, one: &str, several: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { several })
}
