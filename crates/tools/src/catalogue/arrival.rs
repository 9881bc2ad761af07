//! An integration that is being added to the catalogue. Its tools are compared with those of the previous import,
//! so that a refresh cannot widen what a user approved.

use super::section::{CatalogueEntry, CatalogueSection, SourceCard, TOOLS_MAX};
use crate::shape::shape;
use crate::{Connection, Integration, IntegrationSlug};
use lifecycle::{Timestamp, ToolRevision};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Since when each tool of an integration has had its present shape, by tool name.
pub type ToolAges = BTreeMap<String, ToolAge>;

/// Since when a tool has had its present shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolAge {
    /// What it takes, does and reaches.
    pub shape: ToolRevision,
    /// When a later reading of its source brought it; 0 if it came with its source.
    pub since: Timestamp,
    /// When its shape last changed; 0 if it never did.
    pub grew: Timestamp,
}

/// An integration that is being added to the catalogue.
pub struct IntegrationArrival {
    pub(super) slug: IntegrationSlug,
    pub(super) section: CatalogueSection,
    pub(super) left_out: Vec<String>,
    pub(super) grown: Vec<String>,
}

impl IntegrationArrival {
    /// Lists the integration's tools. They count as part of its first import until [`Self::age`] is called.
    pub fn new(
        slug: &IntegrationSlug,
        card: SourceCard,
        integration: Arc<dyn Integration>,
        connections: Vec<Arc<Connection>>,
    ) -> Self {
        let (section, left_out) =
            CatalogueSection::of_integration(slug, card, integration, connections);
        Self { slug: slug.clone(), section, left_out, grown: vec![] }
    }

    /// Computes the age of each tool and returns all ages. If nothing is `known`, the tools belong to the first import;
    /// otherwise an unknown tool is new, and a tool with another shape has grown. Known tools that are missing now
    /// retain their age, in case they return unchanged.
    pub fn age(&mut self, known: Option<&ToolAges>, now: Timestamp) -> ToolAges {
        let target = self.section.target();
        let shelf = Arc::get_mut(&mut self.section.shelf);
        let entries = &mut shelf.expect("nobody shares an arrival's shelf yet").entries;
        let mut ages = ToolAges::new();
        for CatalogueEntry { spec, since, grew, .. } in entries {
            let shape = shape(spec, &target);
            let never = Timestamp(0);
            let age = match known.map(|known| known.get(&spec.name)) {
                None => ToolAge { shape, since: never, grew: never },
                Some(None) => ToolAge { shape, since: now, grew: never },
                Some(Some(age)) if age.shape == shape => *age,
                Some(Some(age)) => {
                    self.grown.push(spec.name.clone());
                    ToolAge { shape, grew: now, ..*age }
                }
            };
            (*since, *grew) = (age.since, age.grew);
            ages.insert(spec.name.clone(), age);
        }
        for (name, age) in known.into_iter().flatten() {
            if ages.len() < TOOLS_MAX && !ages.contains_key(name) {
                ages.insert(name.clone(), *age);
            }
        }
        ages
    }
}

impl fmt::Debug for IntegrationArrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arrival({})", self.slug)
    }
}
