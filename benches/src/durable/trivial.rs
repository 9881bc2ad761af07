//! The smallest program over HTTP, beside a constant from the same server over the same connections.

use super::client::{Client, share_out};
use super::served::Served;
use crate::directory::directory;
use anyhow::{Result, ensure};
use bench::{Contender, Plan, Report};
use std::time::Duration;

const PLAN: Plan = Plan {
    warm_up_ops: 50,
    n_rounds: 15,
    round_ops: 400,
    round_time_max: Duration::from_millis(400),
};

/// Concurrent clients: more than a small machine has cores.
const N_CLIENTS: usize = 8;

/// Requests of one operation, so that the start of threads costs each of them little.
const BATCH: u64 = 200;

pub(super) fn run(report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let served = Served::start_with_tools(directory.path())?;
    alone(&served, report)?;
    together(&served, report)?;
    served.stop()
}

fn alone(served: &Served, report: &mut Report) -> Result<()> {
    let (mut runs, mut asks) = (served.client()?, served.client()?);
    let subject = Contender::new("return 1 over HTTP, 1 client", || return_one(&mut runs));
    let floor = Contender::new("a constant from the same server", || asks.healthz());
    report.add(PLAN.compare(subject, floor)?, vec![]);
    Ok(())
}

fn together(served: &Served, report: &mut Report) -> Result<()> {
    let clients = || (0..N_CLIENTS).map(|_| served.client()).collect::<Result<Vec<_>>>();
    let (mut run, mut ask) = (clients()?, clients()?);
    let n = usize::try_from(BATCH)?;
    let subject = Contender::new("return 1 over HTTP, 8 clients, time for each", || {
        share_out(&mut run, n, return_one).map(drop)
    });
    let floor = Contender::new("a constant, 8 clients, time for each", || {
        share_out(&mut ask, n, Client::healthz).map(drop)
    });
    let plan = Plan { warm_up_ops: 2, round_ops: 10, ..PLAN };
    report.add(plan.compare(subject.batch(BATCH), floor.batch(BATCH))?, vec![]);
    Ok(())
}

fn return_one(client: &mut Client) -> Result<()> {
    ensure!(client.execute("return 1")? == 1, "one is not one");
    Ok(())
}
