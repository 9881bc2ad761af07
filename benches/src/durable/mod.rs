//! The real server, release build, from the outside: requests, pauses, replays, memory, start.

pub(crate) mod client;
mod memory;
mod pauses;
mod replay;
pub(crate) mod served;
mod start;
mod trivial;

pub(crate) use served::{binary, pss_bytes, tree_bytes};

use anyhow::Result;
use bench::Report;

/// Runs all measurements.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    trivial::run(&mut report)?;
    pauses::run(&mut report)?;
    replay::run(&mut report)?;
    let lived_in = memory::run(&mut report)?;
    start::run(lived_in.path(), &mut report)?;
    Ok(report)
}
