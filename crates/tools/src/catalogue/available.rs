//! Which sources are available. A call of a source that is not waits for it, and the wait makes the server
//! read the source again soon.

use super::section::CatalogueSection;
use super::{Catalogue, CatalogueSnapshot};
use crate::IntegrationSlug;
use crate::envelope::ToolFailure;
use lifecycle::{CallOutcome, ToolPath, UnavailableSource};
use std::sync::Arc;
use tokio::sync::Notify;

/// The error code for programs and clients.
pub(super) const SOURCE_UNAVAILABLE: &str = "source_unavailable";

impl Catalogue {
    /// Waits until the source of `tool` is available; returns immediately if no such source is known.
    pub async fn source_available(&self, tool: &ToolPath) {
        let mut version = self.0.version.subscribe();
        loop {
            version.borrow_and_update();
            match self.snapshot().unavailable_section(tool) {
                None => return,
                Some((section, _)) => section.demand.notify_one(),
            }
            if version.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether the source of `tool` is known and not available.
    pub fn is_source_unavailable(&self, tool: &ToolPath) -> bool {
        self.snapshot().unavailable_section(tool).is_some()
    }

    /// Why a tool that a person was asked about cannot be called now, and makes the server read its source
    /// again soon. None if the tool can be called.
    pub fn why_uncallable(&self, tool: &ToolPath) -> Option<UnavailableSource> {
        let snapshot = self.snapshot();
        if let Some((section, why)) = snapshot.unavailable_section(tool) {
            section.demand.notify_one();
            return Some(unavailable(tool, &section.card.name, &why));
        }
        if snapshot.find(tool).is_some() {
            return None;
        }
        let source = source_name(tool);
        let why = match snapshot.sections.contains_key(source) {
            true => format!("\"{source}\" has no such tool any more"),
            false => format!("there is no source \"{source}\" any more"),
        };
        Some(unavailable(tool, source, &why))
    }

    /// What a call of `tool` meets that could not be sent, for this reason.
    pub fn unsent(&self, tool: &ToolPath, why: &str) -> UnavailableSource {
        unavailable(tool, source_name(tool), why)
    }

    /// Whether a path belongs to a source of which there is no description yet, so that its tools are unknown.
    pub fn is_undescribed(&self, tool: &ToolPath) -> bool {
        let snapshot = self.snapshot();
        let section = snapshot.sections.get(source_name(tool));
        section.is_some_and(|section| section.is_undescribed())
    }

    /// Notified when a call or an answer needs a source that is not available.
    pub fn demand(&self, slug: &IntegrationSlug) -> Option<Arc<Notify>> {
        let snapshot = self.snapshot();
        snapshot.sections.get(slug.as_str()).map(|section| Arc::clone(&section.demand))
    }
}

impl CatalogueSnapshot {
    /// Names of the sources of which there is no description.
    pub fn undescribed(&self) -> impl Iterator<Item = &str> {
        let sections = self.sections.values().filter(|section| section.is_undescribed());
        sections.map(|section| section.card.name.as_str())
    }

    /// What a call of `tool` meets, where its source is known and not available.
    pub(super) fn unavailable_source(&self, tool: &ToolPath) -> Option<UnavailableSource> {
        let (section, why) = self.unavailable_section(tool)?;
        Some(unavailable(tool, &section.card.name, &why))
    }

    fn unavailable_section(&self, tool: &ToolPath) -> Option<(&Arc<CatalogueSection>, String)> {
        let section = self.sections.get(source_name(tool))?;
        Some((section, section.outage()?))
    }
}

/// The first name in the path of a tool.
fn source_name(tool: &ToolPath) -> &str {
    tool.segments().find(|name| *name != "tools").unwrap_or_default()
}

fn unavailable(tool: &ToolPath, source: &str, why: &str) -> UnavailableSource {
    let why = why.trim_end_matches('.').to_owned();
    let message = format!(
        "Tool \"{tool}\" cannot be called: its source \"{source}\" is not available: {why}. \
         The call has not run; try again later."
    );
    let trouble =
        ToolFailure { retryable: Some(true), ..ToolFailure::new(SOURCE_UNAVAILABLE, message) };
    UnavailableSource {
        why,
        outcome: CallOutcome::Returned { value: Some(trouble.into_envelope()) },
    }
}
