//! Stored policies, for a run in this process: a policy that applies on a server applies here.

use engine::policies::{KIND, PolicySet};
use lifecycle::Policy;
use std::path::Path;
use store::sqlite::SqliteStore;

/// The combined policies of a data directory, whether or not a server runs on it. Empty where the directory does not exist;
/// it is not created.
pub(super) fn kept(data_dir: &Path) -> anyhow::Result<Policy> {
    Ok(PolicySet::adding_up(&SqliteStore::read_records(data_dir, KIND)?)?)
}
