//! A source as a search sees it: its tools' words, its own, and where its tools are bound.

use super::{CatalogueSection, CatalogueSnapshot, FoundTool};
use crate::search::{ToolIndex, words};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A source with the words of its name.
pub(crate) struct LabelledSource<'a> {
    section: &'a Arc<CatalogueSection>,
    pub(crate) label: BTreeSet<String>,
}

impl CatalogueSnapshot {
    /// Sources with tools that are bound somewhere.
    pub(crate) fn shelves(&self) -> impl Iterator<Item = LabelledSource<'_>> {
        let bound = self.sections.values().filter(|section| !section.mounts.is_empty());
        bound.map(|section| {
            let card = &section.card;
            let label = [words(&card.name), words(&card.title)].concat().into_iter().collect();
            LabelledSource { section, label }
        })
    }
}

impl CatalogueSnapshot {
    /// Reads the words of a source's tools, which its first search would have to wait for otherwise. Takes a while for large
    /// sources.
    pub fn index_source(&self, slug: &str) {
        if let Some(section) = self.sections.get(slug) {
            section.shelf.index();
        }
    }

    /// Whether a search of this source has nothing left to read.
    pub fn is_indexed(&self, slug: &str) -> bool {
        self.sections.get(slug).is_some_and(|section| section.shelf.is_indexed())
    }
}

impl<'a> LabelledSource<'a> {
    pub(crate) fn index(&self) -> &'a ToolIndex {
        self.section.shelf.index()
    }

    /// The tool at `tool_idx`, wherever it is bound.
    pub(crate) fn tool_at(&self, tool_idx: usize) -> impl Iterator<Item = FoundTool> + use<'a> {
        let section = self.section;
        (0..section.mounts.len())
            .map(move |mount_idx| FoundTool::at_section(section, mount_idx, tool_idx))
    }
}
