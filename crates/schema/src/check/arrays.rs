//! Rules about the items of an array.

use super::SchemaCheck;
use super::marks::EvaluatedPart;
use super::place::ValuePlace;
use crate::misfit::MisfitKind;
use crate::node::{NodeId, SchemaRule};
use serde_json::Value;

impl SchemaCheck<'_> {
    pub(super) fn items(
        &mut self,
        prefix: &[NodeId],
        rest: Option<NodeId>,
        items: &[Value],
        place: &ValuePlace<'_>,
    ) -> bool {
        let n_prefix = prefix.len().min(items.len());
        let mut fits = true;
        for (idx, (item, node)) in items.iter().zip(prefix).enumerate() {
            fits &= self.check_inside(*node, &place.item(idx, item));
            if !fits && self.has_enough() {
                return false;
            }
        }
        let Some(rest) = rest else {
            self.mark(EvaluatedPart::ItemsBefore(n_prefix));
            return fits;
        };
        if self.schema.node(rest).is_never() && items.len() > n_prefix {
            return self.report_misfit(place, MisfitKind::AdditionalItems { limit: n_prefix });
        }
        for (idx, item) in items.iter().enumerate().skip(n_prefix) {
            fits &= self.check_inside(rest, &place.item(idx, item));
            if !fits && self.has_enough() {
                return false;
            }
        }
        self.mark(EvaluatedPart::All);
        fits
    }

    pub(super) fn contains(
        &mut self,
        rule: &SchemaRule,
        items: &[Value],
        place: &ValuePlace<'_>,
    ) -> bool {
        let SchemaRule::Contains { item: node, least, most, is_evaluation } = *rule else {
            return true;
        };
        let mut n_found = 0;
        let marks = self.marks.take();
        let mut found = vec![];
        for (idx, item) in items.iter().enumerate() {
            if !self.fits_quietly(node, &place.item(idx, item)) {
                continue;
            }
            n_found += 1;
            match &marks {
                Some(_) => found.push(idx),
                None if most.is_none() && n_found >= least => break,
                None => {}
            }
        }
        self.marks = marks;
        if is_evaluation {
            found.into_iter().for_each(|idx| self.mark(EvaluatedPart::Item(idx)));
        }
        if n_found < least {
            return self.report_misfit(place, MisfitKind::Contains { least });
        }
        match most {
            Some(most) if n_found > most => {
                self.report_misfit(place, MisfitKind::MaxContains { most })
            }
            Some(_) | None => true,
        }
    }
}
