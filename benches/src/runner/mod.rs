//! `airlock runner` as an execbox host uses it: over a pipe, each program in a fresh world.
//!
//! The floor is a null runner: it sends the same messages over the same kind of pipe. It is pinned to another core than
//! the host, like two programs that both wait: on one core they would take turns without a wake-up, which no runner that
//! computes can do.

mod host;

pub(crate) use host::{NULL, null};

use crate::apart::Apart;
use anyhow::{Result, ensure};
use bench::{Contender, Plan, Report, Size, Target};
use host::Host;
use std::time::Duration;

/// A fresh world for each program: at least 0.4 of the floor's rate.
const FRESH_RATIO_MAX: f64 = 1.0 / 0.4;

/// Ten sequential calls: at least 0.7 of the floor's rate.
const CALLS_RATIO_MAX: f64 = 1.0 / 0.7;

const N_CALLS: u64 = 10;

/// The number of programs after which growth is visible.
const N_RUNS: usize = 1_000;

/// The permitted growth after a thousand programs, all processes together: a few pages of a settled heap.
const GROWTH_BYTES_MAX: f64 = 512.0 * 1024.0;

const PLAN: Plan = Plan {
    warm_up_ops: 50,
    n_rounds: 15,
    round_ops: 400,
    round_time_max: Duration::from_millis(300),
};

const FRESH: &str = "1 + 1";
const CALLS: &str = "let last; for (let n = 0; n < 10; n++) last = await tools.echo(n); last";

/// Runs all measurements.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    report.add_size(growth()?);
    let (mut runner, mut floor) = (Host::of_airlock()?, Host::of_nobody()?);
    let _apart = Apart::asking()?;
    let subject = Contender::new("1 + 1 in a fresh world", || value(&mut runner, FRESH, "2"));
    let echoed =
        Contender::new("the same messages from a null runner", || floor.run(FRESH).map(drop));
    report.add(PLAN.compare(subject, echoed)?, vec![Target::RatioMax(FRESH_RATIO_MAX)]);

    let subject =
        Contender::new("ten calls, one after the other", || value(&mut runner, CALLS, "9"));
    let echoed =
        Contender::new("the same messages from a null runner", || floor.run(CALLS).map(drop));
    let measured = PLAN.compare(subject.batch(N_CALLS), echoed.batch(N_CALLS))?;
    report.add(measured, vec![Target::RatioMax(CALLS_RATIO_MAX)]);
    Ok(report)
}

fn value(runner: &mut Host, code: &str, expected: &str) -> Result<()> {
    let value = runner.run(code)?;
    ensure!(value == expected, "{code} is {value}");
    Ok(())
}

/// The growth after a thousand programs.
fn growth() -> Result<Size> {
    let mut runner = Host::of_airlock()?;
    value(&mut runner, FRESH, "2")?;
    let first = runner.memory_bytes()? as f64;
    for _ in 1..N_RUNS {
        value(&mut runner, FRESH, "2")?;
    }
    let bytes = (runner.memory_bytes()? as f64 - first).max(0.0);
    let name = "more memory after 1,000 programs than after the first".to_owned();
    Ok(Size { name, bytes, bytes_max: Some(GROWTH_BYTES_MAX) })
}
