//! A runner forked, used once and reaped, beside a bare fork of the same image.

use super::{PLAN, lines, on};
use crate::floor_process::Helper;
use anyhow::Result;
use bench::{Contender, Plan, Report, Target};
use sandbox::{Config, LeaseDemand, MEMORY_BYTES_DEFAULT, Sandbox};
use tokio::runtime::Runtime;

/// The jail, the hand-overs between three tasks and the zygote, and its report of every end cost at most this.
const RATIO_MAX: f64 = 1.0 / 0.6;

/// Runners of one operation, one after the other: between them the requesting task stays awake.
const BATCH: u64 = 10;

pub(super) fn run(runtime: &Runtime, report: &mut Report) -> Result<()> {
    let execute = lines::one_plus_one()?;
    let config = Config {
        warm_runners: 0,
        // For one runner: a lease waits until the previous process is reaped, so that is counted too.
        memory_budget_bytes: MEMORY_BYTES_DEFAULT,
        forks_per_zygote_max: u32::MAX,
        ..Config::default()
    };
    let sandbox = on(runtime, async { Ok(Sandbox::start(config).await?) })?;
    let mut forks = Helper::fork(&execute)?;
    let jailed = Contender::new("fresh jailed 1 + 1", || {
        let (sandbox, execute) = (sandbox.clone(), execute.clone());
        on(runtime, async move {
            for _ in 0..BATCH {
                let mut lease = sandbox.lease(LeaseDemand::default()).await?;
                lines::run(&mut lease, &execute).await?;
                lease.finish();
            }
            Ok(())
        })
    });
    let bare = Contender::new("fork of the same image without a jail", || {
        (0..BATCH).try_for_each(|_| forks.ask(&[1]))
    });
    let plan = Plan { warm_up_ops: 5, ..PLAN };
    let measured = plan.compare(jailed.batch(BATCH), bare.batch(BATCH))?;
    report.add(measured, vec![Target::RatioMax(RATIO_MAX)]);
    runtime.block_on(sandbox.shutdown());
    Ok(())
}
