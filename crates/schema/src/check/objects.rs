//! Rules about the members of an object.

use super::SchemaCheck;
use super::marks::EvaluatedPart;
use super::place::ValuePlace;
use crate::misfit::{ExtraNames, MisfitKind};
use crate::node::{MemberRules, NodeId};
use serde_json::{Map, Value};

type JsonObject = Map<String, Value>;

impl SchemaCheck<'_> {
    /// First what should not be there, then what is missing, then what is wrong inside.
    pub(super) fn members(
        &mut self,
        rule: &MemberRules,
        object: &JsonObject,
        place: &ValuePlace<'_>,
    ) -> bool {
        let mut fits = self.nothing_unexpected(rule, object, place);
        if (fits || self.is_telling()) && !self.all_present(&rule.required, object, place) {
            fits = false;
        }
        if !fits && self.has_enough() {
            return false;
        }
        if rule.named.is_empty() && rule.patterned.is_empty() && rule.additional.is_none() {
            return fits;
        }
        for (idx, (name, value)) in object.iter().enumerate() {
            fits &= self.member(rule, idx, &place.member(name, value), name);
            if !fits && self.has_enough() {
                break;
            }
        }
        fits
    }

    fn nothing_unexpected(
        &mut self,
        rule: &MemberRules,
        object: &JsonObject,
        place: &ValuePlace<'_>,
    ) -> bool {
        if !rule.additional.is_some_and(|node| self.schema.node(node).is_never()) {
            return true;
        }
        let mut unexpected = ExtraNames::default();
        for name in object.keys() {
            let mut patterns = rule.patterned.iter();
            if rule.named.contains_key(name)
                || patterns.any(|(pattern, _)| self.matches(pattern, name) != Some(false))
            {
                continue;
            }
            if self.has_enough() {
                return false;
            }
            unexpected.push(name);
        }
        unexpected.len() == 0
            || self.report_misfit(place, MisfitKind::AdditionalProperties { unexpected })
    }

    fn all_present(
        &mut self,
        names: &[String],
        object: &JsonObject,
        place: &ValuePlace<'_>,
    ) -> bool {
        let mut fits = true;
        for name in names.iter().filter(|name| !object.contains_key(*name)) {
            fits = false;
            if self.has_enough() {
                break;
            }
            self.report_misfit(place, MisfitKind::Required { property: name.clone() });
        }
        fits
    }

    /// Applies those of the three keywords that match the member's name.
    fn member(
        &mut self,
        rule: &MemberRules,
        idx: usize,
        place: &ValuePlace<'_>,
        name: &str,
    ) -> bool {
        let mut is_spoken_of = false;
        let mut fits = true;
        if let Some(node) = rule.named.get(name) {
            is_spoken_of = true;
            fits &= self.check_inside(*node, place);
        }
        for (pattern, node) in &rule.patterned {
            match self.matches(pattern, name) {
                Some(false) => continue,
                Some(true) => fits &= self.check_inside(*node, place),
                // A name that takes too long to match fits nothing.
                None => {
                    fits = self.report_misfit(
                        place,
                        MisfitKind::Pattern { pattern: pattern.source().into() },
                    )
                }
            }
            is_spoken_of = true;
        }
        match rule.additional {
            // If that is `false`, it is reported already.
            Some(node) if !is_spoken_of => {
                is_spoken_of = true;
                fits &= self.schema.node(node).is_never() || self.check_inside(node, place);
            }
            Some(_) | None => {}
        }
        if is_spoken_of {
            self.mark(EvaluatedPart::Member(idx));
        }
        fits
    }

    pub(super) fn dependent_required(
        &mut self,
        pairs: &[(String, Vec<String>)],
        object: &JsonObject,
        place: &ValuePlace<'_>,
    ) -> bool {
        let present = pairs.iter().filter(|(name, _)| object.contains_key(name));
        present.fold(true, |fits, (_, names)| self.all_present(names, object, place) && fits)
    }

    pub(super) fn dependent_schemas(
        &mut self,
        pairs: &[(String, NodeId)],
        object: &JsonObject,
        place: &ValuePlace<'_>,
    ) -> bool {
        let present = pairs.iter().filter(|(name, _)| object.contains_key(name));
        present.fold(true, |fits, (_, node)| self.check_node(*node, place) && fits)
    }

    pub(super) fn property_names(
        &mut self,
        node: NodeId,
        object: &JsonObject,
        place: &ValuePlace<'_>,
    ) -> bool {
        let mut fits = true;
        let marks = self.marks.take();
        for name in object.keys() {
            let value = Value::String(name.clone());
            let (is_fitting, misfits) = self.check_apart(node, &ValuePlace::whole(&value));
            if is_fitting {
                continue;
            }
            fits = false;
            if self.has_enough() {
                break;
            }
            self.report_misfit(place, MisfitKind::PropertyNames { name: name.clone(), misfits });
        }
        self.marks = marks;
        fits
    }
}
