//! Checks a value against a compiled schema. Knows neither keywords nor drafts, only nodes.

mod arrays;
mod branches;
mod marks;
mod objects;
mod place;

use crate::compiled::CompiledSchema;
use crate::misfit::{MisfitKind, SchemaMisfit};
use crate::node::{NodeId, SchemaRule};
use crate::pattern::CompiledPattern;
use marks::EvaluatedParts;
use place::ValuePlace;
use serde_json::Value;

/// A check that takes more steps is given up: alternatives inside alternatives may multiply.
pub(crate) const STEPS_MAX: usize = 10_000_000;

/// Schemas applied inside each other: values are at most 100 deep, so a few for each level. All of
/// them fit on a small stack.
pub(crate) const DEPTH_MAX: usize = 800;

/// Limit of the misfits that one check records, those of alternatives included.
pub(crate) const MISFITS_MAX: usize = 10_000;

/// One value being checked.
pub(crate) struct SchemaCheck<'s> {
    schema: &'s CompiledSchema,
    pub(crate) n_steps_left: usize,
    depth: usize,
    given_up: Option<MisfitKind>,
    /// The resources that were entered, outermost first.
    scope: Vec<usize>,
    /// The targets of references that are being applied, and to which value.
    applied: Vec<(NodeId, *const Value)>,
    /// The parts that rules evaluated at the present place, if that is needed.
    marks: Option<EvaluatedParts>,
    /// How many misfits are wanted. None: whether there is one is all that counts.
    n_max: usize,
    misfits: Vec<SchemaMisfit>,
    n_written: usize,
}

impl<'s> SchemaCheck<'s> {
    pub(crate) fn new(schema: &'s CompiledSchema, n_max: usize) -> Self {
        Self {
            schema,
            n_steps_left: STEPS_MAX,
            depth: 0,
            given_up: None,
            scope: vec![],
            applied: vec![],
            marks: None,
            n_max,
            misfits: vec![],
            n_written: 0,
        }
    }

    /// Returns the misfits, if there are any; an empty list if they were not requested.
    pub(crate) fn run(mut self, value: &Value) -> Result<(), Vec<SchemaMisfit>> {
        let fits = self.check_node(self.schema.root, &ValuePlace::whole(value));
        match (self.given_up, fits) {
            // Earlier findings do not count: one `not` would invert them.
            (Some(kind), _) => Err(vec![SchemaMisfit { path: String::new(), kind }]),
            (None, true) => Ok(()),
            (None, false) => Err(self.misfits),
        }
    }

    /// Applies a node. Marks of a node that does not fit are taken back.
    fn check_node(&mut self, id: NodeId, place: &ValuePlace<'_>) -> bool {
        if self.depth >= DEPTH_MAX {
            self.given_up.get_or_insert(MisfitKind::TooDeep { depth_max: DEPTH_MAX });
        }
        if !self.spend(1) {
            return false;
        }
        let node = self.schema.node(id);
        self.depth += 1;
        let is_entered = self.scope.last() != Some(&node.resource);
        if is_entered {
            self.scope.push(node.resource);
        }
        if node.is_target {
            self.applied.push((id, place.value));
        }
        let is_collector = node.unevaluated.is_some() && self.marks.is_none();
        if is_collector {
            self.marks = Some(EvaluatedParts::default());
        }
        let n_marks = self.n_marks();
        let mut fits = self.all_rules(&node.rules, place);
        // If a node does not match, it is unknown which parts it would have evaluated.
        if let Some(unevaluated) = node.unevaluated.as_ref().filter(|_| fits) {
            fits = self.unevaluated(unevaluated, n_marks, place);
        }
        if is_collector {
            self.marks = None;
        } else if !fits {
            self.forget_marks(n_marks);
        }
        if node.is_target {
            self.applied.pop();
        }
        if is_entered {
            self.scope.pop();
        }
        self.depth -= 1;
        fits
    }

    fn all_rules(&mut self, rules: &'s [SchemaRule], place: &ValuePlace<'_>) -> bool {
        let mut fits = true;
        for rule in rules {
            fits &= self.apply(rule, place);
            if !fits && self.has_enough() {
                break;
            }
        }
        fits
    }

    fn apply(&mut self, rule: &'s SchemaRule, place: &ValuePlace<'_>) -> bool {
        match (rule, place.value) {
            (SchemaRule::Members(members), Value::Object(object)) => {
                self.members(members, object, place)
            }
            (SchemaRule::DependentRequired(pairs), Value::Object(object)) => {
                self.dependent_required(pairs, object, place)
            }
            (SchemaRule::PropertyNames(node), Value::Object(object)) => {
                self.property_names(*node, object, place)
            }
            (SchemaRule::DependentSchemas(pairs), Value::Object(object)) => {
                self.dependent_schemas(pairs, object, place)
            }
            (SchemaRule::Items { prefix, rest }, Value::Array(items)) => {
                self.items(prefix, *rest, items, place)
            }
            (SchemaRule::Contains { .. }, Value::Array(items)) => self.contains(rule, items, place),
            (SchemaRule::AllOf(nodes), _) => self.all_of(nodes, place),
            (SchemaRule::AnyOf(nodes), _) => self.any_of(nodes, place),
            (SchemaRule::OneOf(nodes), _) => self.one_of(nodes, place),
            (SchemaRule::Not(node), _) => {
                !self.fits_quietly(*node, place) || self.fail(place, rule)
            }
            (SchemaRule::If { condition, then, otherwise }, _) => {
                self.condition(*condition, *then, *otherwise, place)
            }
            (SchemaRule::Ref(target), _) => self.follow(*target, place),
            (SchemaRule::DynamicRef { named, targets }, _) => {
                self.follow_dynamic(*named, targets, place)
            }
            (SchemaRule::Pattern(pattern), Value::String(text)) => {
                self.matches(pattern, text) == Some(true) || self.fail(place, rule)
            }
            (rule, value) => {
                self.spend(cost(rule, value)) && (rule.holds(value) || self.fail(place, rule))
            }
        }
    }

    /// Whether a pattern matches; nothing where matching takes too long.
    fn matches(&mut self, pattern: &CompiledPattern, text: &str) -> Option<bool> {
        let verdict = pattern.verdict(text);
        self.spend(1 + verdict.n_steps);
        verdict.is_match
    }

    /// Applies a node to a value inside the present one, which has its own marks.
    fn check_inside(&mut self, node: NodeId, place: &ValuePlace<'_>) -> bool {
        let marks = self.marks.take();
        let fits = self.check_node(node, place);
        self.marks = marks;
        fits
    }

    /// Whether a node fits, without recording misfits.
    fn fits_quietly(&mut self, node: NodeId, place: &ValuePlace<'_>) -> bool {
        let n_max = std::mem::take(&mut self.n_max);
        let fits = self.check_node(node, place);
        self.n_max = n_max;
        fits
    }

    /// Whether a node fits, with what does not set apart.
    fn check_apart(&mut self, node: NodeId, place: &ValuePlace<'_>) -> (bool, Vec<SchemaMisfit>) {
        if self.n_max == 0 || self.n_written >= MISFITS_MAX {
            return (self.fits_quietly(node, place), vec![]);
        }
        let misfits = std::mem::take(&mut self.misfits);
        let fits = self.check_node(node, place);
        (fits, std::mem::replace(&mut self.misfits, misfits))
    }

    fn fail(&mut self, place: &ValuePlace<'_>, rule: &SchemaRule) -> bool {
        if self.is_telling() {
            self.report_misfit(place, rule.kind());
        }
        false
    }

    /// Records a misfit. Call [`Self::is_telling`] first: creating one is expensive.
    fn report_misfit(&mut self, place: &ValuePlace<'_>, kind: MisfitKind) -> bool {
        if self.is_telling() {
            self.n_written += 1;
            self.misfits.push(SchemaMisfit { path: place.pointer(), kind });
        }
        false
    }

    fn is_telling(&self) -> bool {
        !self.has_enough()
    }

    fn has_enough(&self) -> bool {
        self.misfits.len() >= self.n_max || self.given_up.is_some()
    }

    /// Takes this many steps from the limit; returns whether there were enough.
    fn spend(&mut self, n_steps: usize) -> bool {
        match self.n_steps_left.checked_sub(n_steps) {
            Some(n_left) => self.n_steps_left = n_left,
            None => drop(self.given_up.get_or_insert(MisfitKind::TooLong { steps_max: STEPS_MAX })),
        }
        self.given_up.is_none()
    }
}

/// How many steps a rule takes that is about the value alone.
fn cost(rule: &SchemaRule, value: &Value) -> usize {
    match (rule, value) {
        (SchemaRule::Enum(options), _) => options.n_others(),
        (SchemaRule::UniqueItems, Value::Array(items)) => items.len(),
        _ => 0,
    }
}
