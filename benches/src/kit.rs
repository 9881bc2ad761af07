//! The cost of a measurement itself: the resolution of all other figures.

use anyhow::Result;
use bench::{Contender, Plan, Report, Target};
use std::hint::black_box;
use std::time::Instant;

/// The cost of the clock must be far below the microseconds that it measures.
const CLOCK_NS_MAX: f64 = 1_000.0;

/// Measures an operation that reads the clock beside one that does nothing.
pub(crate) fn run() -> Result<Report> {
    let clock = Contender::new("read the clock", || {
        black_box(Instant::now());
        Ok(())
    });
    let nothing = Contender::new("do nothing", || Ok(()));
    let mut report = Report::default();
    report.add(Plan::default().compare(clock, nothing)?, vec![Target::MedianNsMax(CLOCK_NS_MAX)]);
    Ok(report)
}
