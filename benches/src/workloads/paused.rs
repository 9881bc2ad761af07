//! 100,000 executions that wait for a person: their memory, and their effect on others.

use crate::directory::directory;
use crate::durable::client::{Client, share_out};
use crate::durable::served::Served;
use anyhow::{Result, ensure};
use bench::{Contender, Count, Plan, Report, Size};
use std::time::Duration;

const N_PAUSED: usize = 100_000;
const N_CLIENTS: usize = 32;

const PLAN: Plan = Plan {
    warm_up_ops: 5,
    n_rounds: 15,
    round_ops: 50,
    round_time_max: Duration::from_millis(400),
};

const ASKING: &str = "return (await tools.demo.ask({ text: 'well?' })).approved";

pub(super) fn run(report: &mut Report) -> Result<()> {
    let (full, empty) = (directory()?, directory()?);
    let served = Served::start_with_tools(full.path())?;
    let mut clients = (0..N_CLIENTS).map(|_| served.client()).collect::<Result<Vec<_>>>()?;
    share_out(&mut clients, N_PAUSED, |client| client.ask(ASKING).map(drop))?;
    drop(clients);
    served.stop()?;
    // A server that starts with them has no warm runners for them.
    let served = Served::start_with_tools(full.path())?;
    let fresh = Served::start_with_tools(empty.path())?;
    let per_pause = (served.own_bytes()? as f64 - fresh.own_bytes()? as f64) / N_PAUSED as f64;
    let name = "server's memory for each of 100,000 paused executions".to_owned();
    report.add_size(Size { name, bytes: per_pause.max(0.0), bytes_max: None });
    let name = "start beside 100,000 paused executions, ms".to_owned();
    report.add_count(Count { name, n: served.took.as_millis() as f64, n_max: None });
    beside(&served, &fresh, report)?;
    served.stop()?;
    fresh.stop()
}

fn beside(served: &Served, fresh: &Served, report: &mut Report) -> Result<()> {
    let (mut ours, mut other) = (served.client()?, fresh.client()?);
    let subject = Contender::new("return 1 beside 100,000 paused", || return_one(&mut ours));
    let floor = Contender::new("return 1, fresh store", || return_one(&mut other));
    report.add(PLAN.compare(subject, floor)?, vec![]);
    let subject = Contender::new("pause and accept beside 100,000 paused", || accept(&mut ours));
    let floor = Contender::new("pause and accept, fresh store", || accept(&mut other));
    report.add(PLAN.compare(subject, floor)?, vec![]);
    Ok(())
}

fn return_one(client: &mut Client) -> Result<()> {
    ensure!(client.execute("return 1")? == 1, "one is not one");
    Ok(())
}

fn accept(client: &mut Client) -> Result<()> {
    let question = client.ask(ASKING)?;
    ensure!(client.accept(&question)? == true, "a yes did not arrive");
    Ok(())
}
