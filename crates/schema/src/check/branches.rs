//! Rules that apply other schemas to the same value: alternatives, conditions and references.

use super::SchemaCheck;
use super::place::ValuePlace;
use crate::misfit::MisfitKind;
use crate::node::NodeId;

impl SchemaCheck<'_> {
    pub(super) fn all_of(&mut self, nodes: &[NodeId], place: &ValuePlace<'_>) -> bool {
        let mut fits = true;
        for node in nodes {
            fits &= self.check_node(*node, place);
            if !fits && self.has_enough() {
                break;
            }
        }
        fits
    }

    pub(super) fn any_of(&mut self, nodes: &[NodeId], place: &ValuePlace<'_>) -> bool {
        let mut fits = false;
        let mut context = vec![];
        for node in nodes {
            let (is_fitting, misfits) = self.check_apart(*node, place);
            fits |= is_fitting;
            // Each branch that fits may evaluate other members; if that does not matter, one is enough.
            if fits && !self.is_collecting() {
                return true;
            }
            context.push(misfits);
        }
        fits || self.report_misfit(place, MisfitKind::AnyOf { context })
    }

    pub(super) fn one_of(&mut self, nodes: &[NodeId], place: &ValuePlace<'_>) -> bool {
        let mut n_fitting = 0;
        let mut context = vec![];
        for node in nodes {
            let (is_fitting, misfits) = self.check_apart(*node, place);
            n_fitting += usize::from(is_fitting);
            if n_fitting > 1 {
                return self.report_misfit(place, MisfitKind::OneOfSeveral);
            }
            context.push(misfits);
        }
        n_fitting == 1 || self.report_misfit(place, MisfitKind::OneOfNone { context })
    }

    pub(super) fn condition(
        &mut self,
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
        place: &ValuePlace<'_>,
    ) -> bool {
        if then.is_none() && otherwise.is_none() && !self.is_collecting() {
            return true;
        }
        let consequence = if self.fits_quietly(condition, place) { then } else { otherwise };
        consequence.is_none_or(|node| self.check_node(node, place))
    }

    /// Follows a reference. One that leads back to itself at the same value demands nothing new.
    pub(super) fn follow(&mut self, target: NodeId, place: &ValuePlace<'_>) -> bool {
        let here = std::ptr::from_ref(place.value);
        // Those at this value are the last ones: the value inside is never entered from within.
        let mut at_this_value = self.applied.iter().rev().take_while(|(_, value)| *value == here);
        at_this_value.any(|(applied, _)| *applied == target) || self.check_node(target, place)
    }

    pub(super) fn follow_dynamic(
        &mut self,
        named: NodeId,
        targets: &[(usize, NodeId)],
        place: &ValuePlace<'_>,
    ) -> bool {
        let target_in = |entered: &usize| targets.iter().find(|(resource, _)| resource == entered);
        let target = self.scope.iter().find_map(target_in).map_or(named, |(_, target)| *target);
        self.follow(target, place)
    }
}
