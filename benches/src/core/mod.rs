//! The parts of every execution: a runner, its link, calls through the engine, appends to the journal.

mod appends;
mod calls;
mod fresh;
mod lines;
mod waiting;

use anyhow::{Context, Result};
use bench::{Plan, Report};
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Runtime;

/// At most nine seconds for a comparison: five of them in less than a minute.
const PLAN: Plan = Plan {
    warm_up_ops: 30,
    n_rounds: 15,
    round_ops: 400,
    round_time_max: Duration::from_millis(300),
};

/// Runs all measurements.
pub(crate) fn run() -> Result<Report> {
    let runtime = Runtime::new().context("start a runtime")?;
    let mut report = Report::default();
    fresh::run(&runtime, &mut report)?;
    waiting::run(&mut report)?;
    calls::run(&runtime, &mut report)?;
    appends::run(&runtime, &mut report)?;
    Ok(report)
}

/// Runs a future as the server does, on a thread of the runtime: the thread that waits for sockets also continues the work.
fn on<R: Send + 'static>(
    runtime: &Runtime,
    future: impl Future<Output = Result<R>> + Send + 'static,
) -> Result<R> {
    runtime.block_on(runtime.spawn(future)).context("a task broke")?
}
