//! The directory of the benchmarks' files.

use anyhow::{Context, Result};
use tempfile::TempDir;

/// A directory on the disk that holds our own binary: the default temporary directory may be in memory, where a sync is
/// free.
pub(crate) fn directory() -> Result<TempDir> {
    let binary = std::env::current_exe()?;
    let beside = binary.parent().context("a binary lies in a directory")?;
    tempfile::Builder::new().prefix("bench-").tempdir_in(beside).context("make a directory")
}
