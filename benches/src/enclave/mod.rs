//! Sessions of enclave beside the same HTTP server streaming constants: the unavoidable cost of a stream.

mod calls;
mod client;
mod events;
mod floor;
mod memory;
mod trivial;

pub(crate) use client::Streams;

use anyhow::Result;
use bench::Report;
use floor::Floor;

/// Runs all measurements.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    let floor = Floor::start()?;
    trivial::run(&floor, &mut report)?;
    calls::run(&floor, &mut report)?;
    events::run(&floor, &mut report)?;
    memory::run(&mut report)?;
    Ok(report)
}
