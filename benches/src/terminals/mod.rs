//! Terminals: the cost of the server's emulator, beside the emulator's library alone, fed with the same bytes in the
//! same run.

mod attaching;
mod content;
mod memory;
mod painting;
mod reading;

use anyhow::Result;
use bench::{Plan, Report};
use processes::{PtySize, SCROLLBACK_ROWS_MAX};
use std::time::Duration;

/// The smallest share of the library's own rate.
const SHARE: f64 = 0.7;

const SIZE: PtySize = PtySize { rows: 24, columns: 80 };

/// Enough time for some megabytes in each of the rounds.
const PLAN: Plan = Plan {
    warm_up_ops: 2,
    n_rounds: 9,
    round_ops: 200,
    round_time_max: Duration::from_millis(300),
};

/// Runs all measurements.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    reading::run(&mut report)?;
    painting::run(&mut report)?;
    memory::run(&mut report)?;
    attaching::run(&mut report)?;
    Ok(report)
}

/// The library alone, with the same scrollback.
fn library() -> vt100::Parser {
    let number = |n: u16| std::num::NonZeroU16::new(n).expect("a terminal has rows and columns");
    vt100::Parser::new(number(SIZE.rows), number(SIZE.columns), SCROLLBACK_ROWS_MAX)
}
