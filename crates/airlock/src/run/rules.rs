//! The policies that people keep, for a run of its own: what holds on a server holds here.

use engine::policies::{KIND, PolicySet};
use lifecycle::Policy;
use std::path::Path;
use store::sqlite::SqliteStore;

/// What the rules of a data directory add up to, whether or not a server is at work there. Nothing where
/// there is no such directory, which is not made.
pub(super) fn kept(data_dir: &Path) -> anyhow::Result<Policy> {
    Ok(PolicySet::adding_up(&SqliteStore::read_records(data_dir, KIND)?)?)
}
