//! The smallest program over HTTP: beside a constant from the same server, and beside the rival.

use super::rival::{Rival, VERSION};
use crate::directory::directory;
use crate::durable::client::{Client, share_out};
use crate::durable::served::Served;
use anyhow::{Result, ensure};
use bench::{Contender, Measured, Plan, Report, Target};
use std::time::Duration;

const PLAN: Plan = Plan {
    warm_up_ops: 20,
    n_rounds: 9,
    round_ops: 300,
    round_time_max: Duration::from_millis(400),
};

/// Requests of one operation, so that the start of threads costs each of them little.
const BATCH: u64 = 128;

/// Concurrent clients, and the required factor over the rival for each number, with a runner for each program.
const WISHES: [(usize, f64); 3] = [(1, 5.0), (8, 3.0), (32, 3.0)];

pub(super) fn run(rival: Option<&Rival>, report: &mut Report) -> Result<()> {
    // With `--keep-runners`, the factor must be twice as good.
    for (flags, runners, factor) in
        [(&[][..], "single-use runners", 1.0), (&["--keep-runners"][..], "kept runners", 2.0)]
    {
        let directory = directory()?;
        let served = Served::start_with(directory.path(), flags)?;
        for (n_clients, wish) in WISHES {
            let name = format!("return 1, {n_clients} clients, {runners}");
            let (mut run, mut ask) = (clients(&served, n_clients)?, clients(&served, n_clients)?);
            let floor_name = format!("a constant, {n_clients} clients");
            let floor = |client: &mut Client| client.healthz();
            let beside = compared(&name, &mut run, (&floor_name, &mut ask, &floor))?;
            report.add(beside, vec![]);
            if let Some(rival) = rival {
                let mut theirs = rival.clients(n_clients)?;
                let rival_name = format!("executor {VERSION}, {n_clients} clients");
                let measured = compared(&name, &mut run, (&rival_name, &mut theirs, &return_one))?;
                report.add(measured, vec![Target::RatioMax(1.0 / (wish * factor))]);
            }
        }
        served.stop()?;
    }
    Ok(())
}

type Other<'a> = (&'a str, &'a mut [Client], &'a (dyn Fn(&mut Client) -> Result<()> + Sync));

fn compared(name: &str, run: &mut [Client], (other, theirs, ask): Other<'_>) -> Result<Measured> {
    if let ([run], [theirs]) = (&mut *run, &mut *theirs) {
        let subject = Contender::new(name, || return_one(run));
        return PLAN.compare(subject, Contender::new(other, || ask(theirs)));
    }
    let n = usize::try_from(BATCH)?;
    let subject = Contender::new(name, || share_out(run, n, return_one).map(drop));
    let floor = Contender::new(other, || share_out(theirs, n, ask).map(drop));
    let plan = Plan { warm_up_ops: 1, round_ops: 5, ..PLAN };
    plan.compare(subject.batch(BATCH), floor.batch(BATCH))
}

fn clients(served: &Served, n: usize) -> Result<Vec<Client>> {
    (0..n).map(|_| served.client()).collect()
}

pub(super) fn return_one(client: &mut Client) -> Result<()> {
    ensure!(client.execute("return 1")? == 1, "one is not one");
    Ok(())
}
