//! Compiled schemas: nodes that hold rules, and rules that refer to nodes. Nodes are numbered, so that
//! schemas may refer to themselves.

use crate::draft::SchemaDraft;
use crate::equal::equal;
use crate::formats::KnownFormat;
use crate::misfit::MisfitKind;
use crate::numbers;
use crate::pattern::CompiledPattern;
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// How many members of an enumeration a misfit names.
const OPTIONS_TOLD_MAX: usize = 12;

/// The number of a node in its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(pub(crate) usize);

/// One schema or subschema.
#[derive(Debug)]
pub(crate) struct SchemaNode {
    /// Cheap ones first, which is also the order in which misfits are reported.
    pub(crate) rules: Vec<SchemaRule>,
    /// Applied last: it is about the parts that no other rule has evaluated.
    pub(crate) unevaluated: Option<UnevaluatedRule>,
    /// The resource the schema belongs to; entering another changes what dynamic references mean.
    pub(crate) resource: usize,
    /// Whether a reference leads here, which is how a schema comes to contain itself.
    pub(crate) is_target: bool,
}

impl SchemaNode {
    /// Whether this is the schema `false`.
    pub(crate) fn is_never(&self) -> bool {
        matches!(self.rules[..], [SchemaRule::Never])
    }
}

/// The rule for members or items that no other rule has evaluated.
#[derive(Debug)]
pub(crate) struct UnevaluatedRule {
    pub(crate) properties: Option<NodeId>,
    pub(crate) items: Option<NodeId>,
}

/// One assertion about a value.
#[derive(Debug)]
pub(crate) enum SchemaRule {
    Never,
    Type {
        types: JsonTypes,
        is_one_point_zero_whole: bool,
    },
    Const(Value),
    Enum(EnumOptions),
    Minimum(Number),
    Maximum(Number),
    ExclusiveMinimum(Number),
    ExclusiveMaximum(Number),
    MultipleOf(Number),
    MinLength(u64),
    MaxLength(u64),
    MinItems(u64),
    MaxItems(u64),
    MinProperties(u64),
    MaxProperties(u64),
    Format(KnownFormat),
    Metaschema(SchemaDraft),
    Pattern(Box<CompiledPattern>),
    UniqueItems,
    Members(Box<MemberRules>),
    DependentRequired(Vec<(String, Vec<String>)>),
    PropertyNames(NodeId),
    Items {
        prefix: Vec<NodeId>,
        rest: Option<NodeId>,
    },
    Contains {
        item: NodeId,
        least: u64,
        most: Option<u64>,
        is_evaluation: bool,
    },
    DependentSchemas(Vec<(String, NodeId)>),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    Ref(NodeId),
    /// The target in the outermost resource that has one, else the one that is named.
    DynamicRef {
        named: NodeId,
        targets: Vec<(usize, NodeId)>,
    },
}

/// `required`, `properties`, `patternProperties` and `additionalProperties`, which depend on each other.
#[derive(Debug, Default)]
pub(crate) struct MemberRules {
    pub(crate) required: Vec<String>,
    pub(crate) named: BTreeMap<String, NodeId>,
    pub(crate) patterned: Vec<(CompiledPattern, NodeId)>,
    pub(crate) additional: Option<NodeId>,
}

/// The options of `enum`; texts, of which there may be thousands, are found without comparing all.
#[derive(Debug)]
pub(crate) struct EnumOptions {
    texts: BTreeSet<String>,
    others: Vec<Value>,
    told: Vec<Value>,
}

impl EnumOptions {
    pub(crate) fn new(options: &[Value]) -> Self {
        let texts = options.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let others = options.iter().filter(|option| !option.is_string()).cloned().collect();
        let told = options.iter().take(OPTIONS_TOLD_MAX).cloned().collect();
        Self { texts, others, told }
    }

    fn has(&self, value: &Value) -> bool {
        match value.as_str() {
            Some(text) => self.texts.contains(text),
            None => self.others.iter().any(|option| equal(option, value)),
        }
    }

    /// The cost of searching for a value that is no text.
    pub(crate) fn n_others(&self) -> usize {
        self.others.len()
    }

    fn n_untold(&self) -> usize {
        (self.texts.len() + self.others.len()).saturating_sub(self.told.len())
    }
}

/// Some of the seven types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonTypes(u8);

const TYPE_NAMES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

impl JsonTypes {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn with(self, name: &str) -> Option<Self> {
        let bit = TYPE_NAMES.iter().position(|known| *known == name)?;
        Some(Self(self.0 | 1 << bit))
    }

    /// Their names, in alphabetical order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let has = move |(bit, _): &(usize, _)| self.0 & (1 << bit) != 0;
        TYPE_NAMES.into_iter().enumerate().filter(has).map(|(_, name)| name)
    }

    fn has(self, bit: usize) -> bool {
        self.0 & (1 << bit) != 0
    }

    fn admits(self, value: &Value, is_one_point_zero_whole: bool) -> bool {
        match value {
            Value::Array(_) => self.has(0),
            Value::Bool(_) => self.has(1),
            Value::Null => self.has(3),
            Value::Number(number) => {
                let is_whole = match is_one_point_zero_whole {
                    true => numbers::is_whole(number),
                    false => numbers::is_written_whole(number),
                };
                self.has(4) || (self.has(2) && is_whole)
            }
            Value::Object(_) => self.has(5),
            Value::String(_) => self.has(6),
        }
    }
}

impl SchemaRule {
    /// Whether a value satisfies a rule about the value alone. A rule that refers to nodes returns true
    /// here: [`crate::check`] follows those.
    pub(crate) fn holds(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Never, _) => false,
            (Self::Type { types, is_one_point_zero_whole }, _) => {
                types.admits(value, *is_one_point_zero_whole)
            }
            (Self::Const(expected), _) => equal(expected, value),
            (Self::Enum(options), _) => options.has(value),
            (Self::Minimum(limit), Value::Number(n)) => numbers::compare(n, limit).is_ge(),
            (Self::Maximum(limit), Value::Number(n)) => numbers::compare(n, limit).is_le(),
            (Self::ExclusiveMinimum(limit), Value::Number(n)) => {
                numbers::compare(n, limit) == Ordering::Greater
            }
            (Self::ExclusiveMaximum(limit), Value::Number(n)) => {
                numbers::compare(n, limit) == Ordering::Less
            }
            (Self::MultipleOf(divisor), Value::Number(n)) => numbers::is_multiple(n, divisor),
            (Self::MinLength(least), Value::String(text)) => has_chars(text, *least),
            (Self::MaxLength(most), Value::String(text)) => {
                most.checked_add(1).is_none_or(|too_many| !has_chars(text, too_many))
            }
            (Self::MinItems(least), Value::Array(items)) => items.len() as u64 >= *least,
            (Self::MaxItems(most), Value::Array(items)) => items.len() as u64 <= *most,
            (Self::MinProperties(least), Value::Object(members)) => members.len() as u64 >= *least,
            (Self::MaxProperties(most), Value::Object(members)) => members.len() as u64 <= *most,
            (Self::Format(format), Value::String(text)) => format.admits(text),
            (Self::UniqueItems, Value::Array(items)) => crate::equal::are_unique(items),
            (Self::Metaschema(draft), _) => crate::compiled::is_schema(value, *draft).is_ok(),
            _ => true,
        }
    }

    /// The misfit of this rule.
    pub(crate) fn kind(&self) -> MisfitKind {
        match self {
            Self::Type { types, .. } => MisfitKind::Type { expected: *types },
            Self::Const(expected) => MisfitKind::Const { expected: expected.clone() },
            Self::Enum(options) => {
                MisfitKind::Enum { options: options.told.clone(), n_more: options.n_untold() }
            }
            Self::Minimum(limit) => MisfitKind::Minimum { limit: limit.clone() },
            Self::Maximum(limit) => MisfitKind::Maximum { limit: limit.clone() },
            Self::ExclusiveMinimum(limit) => MisfitKind::ExclusiveMinimum { limit: limit.clone() },
            Self::ExclusiveMaximum(limit) => MisfitKind::ExclusiveMaximum { limit: limit.clone() },
            Self::MultipleOf(divisor) => MisfitKind::MultipleOf { divisor: divisor.clone() },
            Self::MinLength(limit) => MisfitKind::MinLength { limit: *limit },
            Self::MaxLength(limit) => MisfitKind::MaxLength { limit: *limit },
            Self::MinItems(limit) => MisfitKind::MinItems { limit: *limit },
            Self::MaxItems(limit) => MisfitKind::MaxItems { limit: *limit },
            Self::MinProperties(limit) => MisfitKind::MinProperties { limit: *limit },
            Self::MaxProperties(limit) => MisfitKind::MaxProperties { limit: *limit },
            Self::Pattern(pattern) => MisfitKind::Pattern { pattern: pattern.source().to_owned() },
            Self::Format(format) => MisfitKind::Format { format: format.name() },
            Self::UniqueItems => MisfitKind::UniqueItems,
            Self::Metaschema(_) => MisfitKind::Metaschema,
            Self::Not(_) => MisfitKind::Not,
            Self::Never
            | Self::Members(_)
            | Self::DependentRequired(_)
            | Self::PropertyNames(_)
            | Self::Items { .. }
            | Self::Contains { .. }
            | Self::DependentSchemas(_)
            | Self::AllOf(_)
            | Self::AnyOf(_)
            | Self::OneOf(_)
            | Self::If { .. }
            | Self::Ref(_)
            | Self::DynamicRef { .. } => MisfitKind::Never,
        }
    }
}

/// Whether a text has `n` characters or more. Long ones are not counted to their end.
fn has_chars(text: &str, n: u64) -> bool {
    match usize::try_from(n) {
        Ok(0) => true,
        Ok(n) => text.len() >= n && text.chars().nth(n - 1).is_some(),
        Err(_) => false,
    }
}
