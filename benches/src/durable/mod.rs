//! The real server, release build, as clients and machines meet it: requests, pauses, replays, memory, start.

mod client;
mod memory;
mod pauses;
mod replay;
mod served;
mod start;
mod trivial;

use anyhow::{Context, Result};
use bench::Report;
use tempfile::TempDir;

/// Measures all of it.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    trivial::run(&mut report)?;
    pauses::run(&mut report)?;
    replay::run(&mut report)?;
    let lived_in = memory::run(&mut report)?;
    start::run(lived_in.path(), &mut report)?;
    Ok(report)
}

/// A directory on the disk that holds our own binary: what is temporary elsewhere may lie in memory, where syncing is free.
fn directory() -> Result<TempDir> {
    let binary = std::env::current_exe()?;
    let beside = binary.parent().context("a binary lies in a directory")?;
    tempfile::Builder::new().prefix("bench-").tempdir_in(beside).context("make a directory")
}
