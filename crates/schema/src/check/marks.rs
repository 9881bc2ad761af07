//! Records which members and items the rules at one place have evaluated, for `unevaluated…`. It is a log:
//! the entries of a branch that does not match are truncated.

use super::SchemaCheck;
use super::place::ValuePlace;
use crate::misfit::{ExtraNames, MisfitKind};
use crate::node::{NodeId, UnevaluatedRule};
use serde_json::{Map, Value};

/// One evaluated part. Members are numbered in the order of their object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EvaluatedPart {
    Member(usize),
    Item(usize),
    ItemsBefore(usize),
    All,
}

/// All parts that were evaluated so far.
#[derive(Debug, Default)]
pub(super) struct EvaluatedParts(Vec<EvaluatedPart>);

impl SchemaCheck<'_> {
    pub(super) fn is_collecting(&self) -> bool {
        self.marks.is_some()
    }

    pub(super) fn mark(&mut self, mark: EvaluatedPart) {
        if let Some(marks) = &mut self.marks {
            marks.0.push(mark);
        }
    }

    pub(super) fn n_marks(&self) -> usize {
        self.marks.as_ref().map_or(0, |marks| marks.0.len())
    }

    pub(super) fn forget_marks(&mut self, n_kept: usize) {
        if let Some(marks) = &mut self.marks {
            marks.0.truncate(n_kept);
        }
    }

    /// Applies the rule for unevaluated parts to those without a mark since the first `n_before`.
    pub(super) fn unevaluated(
        &mut self,
        rules: &UnevaluatedRule,
        n_before: usize,
        place: &ValuePlace<'_>,
    ) -> bool {
        let fits = match (place.value, rules.properties, rules.items) {
            (Value::Object(object), Some(node), _) => {
                self.rest_of_members(node, object, n_before, place)
            }
            (Value::Array(items), _, Some(node)) => {
                self.rest_of_items(node, items, n_before, place)
            }
            _ => return true,
        };
        self.mark(EvaluatedPart::All);
        fits
    }

    fn rest_of_members(
        &mut self,
        node: NodeId,
        object: &Map<String, Value>,
        n_before: usize,
        place: &ValuePlace<'_>,
    ) -> bool {
        let spoken_of = self.spoken_of(object.len(), n_before);
        let is_never = self.schema.node(node).is_never();
        let mut unexpected = ExtraNames::default();
        let mut fits = true;
        for ((name, value), _) in object.iter().zip(spoken_of).filter(|(_, is_marked)| !is_marked) {
            match is_never {
                true => unexpected.push(name),
                false => fits &= self.check_inside(node, &place.member(name, value)),
            }
            if (!fits || is_never) && self.has_enough() {
                return false;
            }
        }
        match unexpected.len() {
            0 => fits,
            _ => self.report_misfit(place, MisfitKind::UnevaluatedProperties { unexpected }),
        }
    }

    fn rest_of_items(
        &mut self,
        node: NodeId,
        items: &[Value],
        n_before: usize,
        place: &ValuePlace<'_>,
    ) -> bool {
        let spoken_of = self.spoken_of(items.len(), n_before);
        if self.schema.node(node).is_never() {
            let n_unexpected = spoken_of.iter().filter(|is_marked| !**is_marked).count();
            return n_unexpected == 0
                || self.report_misfit(place, MisfitKind::UnevaluatedItems { n_unexpected });
        }
        let mut fits = true;
        for (idx, item) in items.iter().enumerate().filter(|(idx, _)| !spoken_of[*idx]) {
            fits &= self.check_inside(node, &place.item(idx, item));
            if !fits && self.has_enough() {
                break;
            }
        }
        fits
    }

    /// For each of `n` members or items, whether it was evaluated.
    fn spoken_of(&mut self, n: usize, n_before: usize) -> Vec<bool> {
        let mut spoken_of = vec![false; n];
        let marks = self.marks.as_ref().map_or(&[][..], |marks| &marks.0[n_before..]);
        for mark in marks {
            match *mark {
                EvaluatedPart::Member(idx) | EvaluatedPart::Item(idx) => spoken_of[idx] = true,
                EvaluatedPart::ItemsBefore(end) => spoken_of[..end.min(n)].fill(true),
                EvaluatedPart::All => spoken_of.fill(true),
            }
        }
        let n_steps = marks.len() + n;
        self.spend(n_steps);
        spoken_of
    }
}
