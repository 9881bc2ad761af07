//! Since when each tool has been what it is, kept beside the sources: a server that starts again knows what a
//! reading adds.

use crate::config::Source;
use crate::kept;
use lifecycle::{Revision, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::{Records, StoreError};
use tools::{Age, Ages, Slug};

/// The kind of record.
const AGES: &str = "tool-ages";

/// The record's value.
#[derive(Serialize, Deserialize)]
struct Written {
    /// What was written about the source: who edits that has another source, not a refreshed one.
    source: Revision,
    /// By name.
    tools: BTreeMap<String, WrittenAge>,
}

#[derive(Serialize, Deserialize)]
struct WrittenAge {
    shape: Revision,
    #[serde(default, skip_serializing_if = "is_never")]
    since: Timestamp,
    #[serde(default, skip_serializing_if = "is_never")]
    grew: Timestamp,
}

/// What was known when the source was last read; none where it is new, or another than it was.
pub(crate) async fn known(
    records: &dyn Records,
    slug: &Slug,
    spec: &Source,
) -> Result<Option<Ages>, StoreError> {
    let Some(record) = records.get(AGES, slug.as_str()).await? else { return Ok(None) };
    let damaged = || StoreError::Damaged(format!("the ages of {slug}'s tools cannot be read"));
    let written: Written = serde_json::from_str(&record.value).map_err(|_| damaged())?;
    if written.source != revision(spec) {
        return Ok(None);
    }
    let age = |(name, WrittenAge { shape, since, grew })| (name, Age { shape, since, grew });
    Ok(Some(written.tools.into_iter().map(age).collect()))
}

/// Keeps them for the next reading.
pub(crate) async fn keep(
    records: &dyn Records,
    slug: &Slug,
    spec: &Source,
    ages: Ages,
) -> Result<(), StoreError> {
    let age = |(name, Age { shape, since, grew })| (name, WrittenAge { shape, since, grew });
    let tools = ages.into_iter().map(age).collect();
    kept::put(records, AGES, slug.as_str(), &Written { source: revision(spec), tools }).await
}

/// The source is gone: who adds it again means it as it is then.
pub(crate) async fn forget(records: &dyn Records, slug: &Slug) -> Result<(), StoreError> {
    kept::remove(records, AGES, slug.as_str()).await
}

/// What people call it does not make it another source.
pub(crate) fn revision(spec: &Source) -> Revision {
    let bare = Source { title: None, description: None, ..spec.clone() };
    Revision::of(&serde_json::to_string(&bare).unwrap_or_default())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_never(at: &Timestamp) -> bool {
    *at == Timestamp(0)
}
