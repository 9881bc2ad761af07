//! When each tool was first seen in its present form, recorded per source: after a restart, the server knows which
//! tools are new.

use credentials::records;
use lifecycle::{Timestamp, ToolRevision};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::{RecordStore, StoreError};
use tools::{IntegrationSlug, SourceConfig, ToolAge, ToolAges};

/// The kind of record.
const AGES: &str = "tool-ages";

/// The record's value.
#[derive(Serialize, Deserialize)]
struct ToolAgesRecord {
    /// The configuration of the source: after an edit it is another source, not a refreshed one.
    source: ToolRevision,
    /// The ages by tool name.
    tools: BTreeMap<String, ToolAgeRecord>,
}

#[derive(Serialize, Deserialize)]
struct ToolAgeRecord {
    shape: ToolRevision,
    #[serde(default, skip_serializing_if = "is_never")]
    since: Timestamp,
    #[serde(default, skip_serializing_if = "is_never")]
    grew: Timestamp,
}

/// The ages of the last reading; none if the source is new or was configured differently.
pub(crate) async fn load(
    records: &dyn RecordStore,
    slug: &IntegrationSlug,
    spec: &SourceConfig,
) -> Result<Option<ToolAges>, StoreError> {
    let Some(record) = records.get(AGES, slug.as_str()).await? else { return Ok(None) };
    let damaged = || StoreError::Damaged(format!("the ages of {slug}'s tools cannot be read"));
    let written: ToolAgesRecord = serde_json::from_str(&record.value).map_err(|_| damaged())?;
    if written.source != revision(spec) {
        return Ok(None);
    }
    let age = |(name, ToolAgeRecord { shape, since, grew })| (name, ToolAge { shape, since, grew });
    Ok(Some(written.tools.into_iter().map(age).collect()))
}

/// Saves them for the next reading.
pub(crate) async fn save(
    records: &dyn RecordStore,
    slug: &IntegrationSlug,
    spec: &SourceConfig,
    ages: ToolAges,
) -> Result<(), StoreError> {
    let age = |(name, ToolAge { shape, since, grew })| (name, ToolAgeRecord { shape, since, grew });
    let tools = ages.into_iter().map(age).collect();
    records::put(records, AGES, slug.as_str(), &ToolAgesRecord { source: revision(spec), tools })
        .await
}

/// Deletes the ages of a source that was removed: added again, it is a new source.
pub(crate) async fn remove_ages(
    records: &dyn RecordStore,
    slug: &IntegrationSlug,
) -> Result<(), StoreError> {
    records::remove(records, AGES, slug.as_str()).await
}

/// The revision of a configuration. Title and description do not count.
pub(crate) fn revision(spec: &SourceConfig) -> ToolRevision {
    let bare = SourceConfig { title: None, description: None, ..spec.clone() };
    ToolRevision::from_text(&serde_json::to_string(&bare).unwrap_or_default())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_never(at: &Timestamp) -> bool {
    *at == Timestamp(0)
}
