//! From the message to the result on a warm runner, beside the same bytes on a socket.

use super::{PLAN, lines, on};
use crate::apart::Apart;
use crate::floor_process::Helper;
use anyhow::{Context, Result};
use bench::{Contender, Report, Target};
use sandbox::{Config, Lease, LeaseDemand, MEMORY_BYTES_DEFAULT, Sandbox};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Parsing, compiling, running and the first touch of every page cost at most two round trips.
const RATIO_MAX: f64 = 3.0;

/// Runners that are prepared together, so that no process is forked or reaped during a measurement.
/// As many as a sandbox retains by itself.
const BATCH: usize = 4;

/// The pause before a message: the waiting process, and its core, are idle by then.
const REST: Duration = Duration::from_millis(1);

/// Poll interval for a batch. Nothing is measured in the meantime.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

pub(super) fn run(report: &mut Report) -> Result<()> {
    let runtime = &asking()?;
    let execute = lines::one_plus_one()?;
    let config = Config {
        warm_runners: BATCH,
        memory_budget_bytes: BATCH as u64 * MEMORY_BYTES_DEFAULT,
        forks_per_zygote_max: u32::MAX,
        ..Config::default()
    };
    let sandbox = {
        let _apart = Apart::answering()?;
        runtime.block_on(Sandbox::start(config))?
    };
    let mut ready = on(runtime, Ready::new(sandbox.clone()).filled())?;
    let said_bytes = {
        let (lease, execute) = (ready.lease()?, execute.clone());
        on(runtime, answered(lease, execute))?.said_bytes
    };
    // As many waiting processes as there are runners, each used in turn: the scheduler puts two processes that only talk to
    // each other on one core, where no runner is before its first message.
    let answer = vec![b'.'; said_bytes];
    let mut echoes =
        (0..BATCH).map(|_| Helper::echo(&execute, &answer)).collect::<Result<Vec<_>>>()?;
    let mut turns = (0..BATCH).cycle();
    let _apart = Apart::asking()?;
    let subject = Contender::timed("message to result on a waiting runner", || {
        if ready.leases.is_empty() {
            let old = std::mem::replace(&mut ready, Ready::new(sandbox.clone()));
            ready = on(runtime, old.renewed())?;
        }
        let (lease, execute) = (ready.lease()?, execute.clone());
        std::thread::sleep(REST);
        let answered = on(runtime, answered(lease, execute))?;
        ready.used.push(answered.lease);
        Ok(answered.taken)
    });
    let floor = Contender::timed("the same bytes on a socket", || {
        let echo = &mut echoes[turns.next().unwrap_or(0)];
        std::thread::sleep(REST);
        let before = Instant::now();
        echo.ask(&execute)?;
        Ok(before.elapsed())
    });
    let measured = PLAN.compare(subject, floor)?;
    report.add(measured, vec![Target::RatioMax(RATIO_MAX)]);
    runtime.block_on(sandbox.shutdown());
    Ok(())
}

/// A runtime with one thread, on the core from which the floor is measured.
fn asking() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().on_thread_start(|| {
        // Without pinning, the measurement runs on any core.
        drop(Apart::asking().map(std::mem::forget));
    });
    builder.build().context("start a runtime")
}

struct Answered {
    lease: Lease,
    taken: Duration,
    said_bytes: usize,
}

async fn answered(mut lease: Lease, execute: Vec<u8>) -> Result<Answered> {
    let before = Instant::now();
    let said_bytes = lines::run(&mut lease, &execute).await?;
    Ok(Answered { taken: before.elapsed(), lease, said_bytes })
}

/// Leases of waiting runners, and of used ones: a runner is discarded with its batch.
struct Ready {
    sandbox: Sandbox,
    leases: Vec<Lease>,
    used: Vec<Lease>,
}

impl Ready {
    const fn new(sandbox: Sandbox) -> Self {
        Self { sandbox, leases: vec![], used: vec![] }
    }

    fn lease(&mut self) -> Result<Lease> {
        self.leases.pop().context("a batch was made ready")
    }

    /// Discards the used ones and takes a new batch.
    async fn renewed(mut self) -> Result<Self> {
        for lease in self.used.drain(..) {
            lease.finish();
        }
        while self.sandbox.load().live_runners > 0 {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.filled().await
    }

    /// Takes the waiting runners, then waits for the next batch: the leased ones are idle by then.
    async fn filled(mut self) -> Result<Self> {
        self.until_all_wait().await;
        for _ in 0..BATCH {
            self.leases.push(self.sandbox.lease(LeaseDemand::default()).await?);
        }
        self.until_all_wait().await;
        Ok(self)
    }

    async fn until_all_wait(&self) {
        while self.sandbox.load().idle_runners < BATCH {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}
