//! Where benchmarks keep their files.

use anyhow::{Context, Result};
use tempfile::TempDir;

/// A directory on the disk that holds our own binary: what is temporary elsewhere may lie in memory, where syncing is free.
pub(crate) fn directory() -> Result<TempDir> {
    let binary = std::env::current_exe()?;
    let beside = binary.parent().context("a binary lies in a directory")?;
    tempfile::Builder::new().prefix("bench-").tempdir_in(beside).context("make a directory")
}
