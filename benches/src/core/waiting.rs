//! From the message to the result on a runner that waits, beside the same bytes on a socket.

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

/// Runners that are made ready together, so that nothing is forked or reaped while we measure.
/// As many as a sandbox keeps by itself.
const BATCH: usize = 4;

/// How long nobody does anything before a message: whoever waits has come to rest, and so has its core.
const REST: Duration = Duration::from_millis(1);

/// How often we look whether a batch is there. Nothing is measured meanwhile.
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
    // As many processes that wait as there are runners, each asked in turn: two that only ever talk to
    // each other are put on one core, which no runner is before its first message.
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

/// A runtime whose only thread asks from the core where the floor is asked from.
fn asking() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().on_thread_start(|| {
        // Where it cannot be kept there it is measured wherever it is.
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

/// Leases on runners that wait, and those that were used: a runner is thrown away when its batch is.
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

    /// Throws the used ones away and takes a new batch.
    async fn renewed(mut self) -> Result<Self> {
        for lease in self.used.drain(..) {
            lease.finish();
        }
        while self.sandbox.load().live_runners > 0 {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.filled().await
    }

    /// Takes what waits, then waits until the next batch does: those we hold have long come to rest.
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
