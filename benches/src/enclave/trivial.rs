//! The smallest session from its first event to its last, beside as many constants.

use super::client::Streams;
use super::floor::Floor;
use crate::directory::directory;
use crate::durable::client::share_out;
use crate::durable::served::Served;
use anyhow::Result;
use bench::{Contender, Plan, Report};
use std::time::Duration;

const PLAN: Plan = Plan {
    warm_up_ops: 20,
    n_rounds: 9,
    round_ops: 300,
    round_time_max: Duration::from_millis(400),
};

const N_CLIENTS: usize = 8;

/// Sessions of one operation, so that the start of threads costs each of them little.
const BATCH: u64 = 128;

pub(super) fn run(floor: &Floor, report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let served = Served::start(directory.path())?;
    let theirs = || Streams::connect(&floor.address.to_string(), "none");
    let (mut run, mut constant) = (served.streams()?, theirs()?);
    let subject = Contender::new("a session of 1 + 1, 1 client", || session(&mut run));
    let constants = Contender::new("two constants", || two_constants(&mut constant));
    report.add(PLAN.compare(subject, constants)?, vec![]);

    let mut run = (0..N_CLIENTS).map(|_| served.streams()).collect::<Result<Vec<_>>>()?;
    let mut constant = (0..N_CLIENTS).map(|_| theirs()).collect::<Result<Vec<_>>>()?;
    let n = usize::try_from(BATCH)?;
    let subject = Contender::new("a session of 1 + 1, 8 clients, time for each", || {
        share_out(&mut run, n, session).map(drop)
    });
    let constants = Contender::new("two constants, 8 clients", || {
        share_out(&mut constant, n, two_constants).map(drop)
    });
    let plan = Plan { warm_up_ops: 1, round_ops: 5, ..PLAN };
    report.add(plan.compare(subject.batch(BATCH), constants.batch(BATCH))?, vec![]);
    served.stop()
}

fn session(client: &mut Streams) -> Result<()> {
    client.post("/sessions", r#"{"code":"1 + 1"}"#)?;
    client.until("\"result\":2")?;
    client.end()
}

fn two_constants(client: &mut Streams) -> Result<()> {
    client.post("/trivial", r#"{"code":"1 + 1"}"#)?;
    client.until("\"result\":1")?;
    client.end()
}
