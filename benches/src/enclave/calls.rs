//! Ten sequential calls that the caller runs, beside ten constants that are answered.

use super::client::Streams;
use super::floor::Floor;
use crate::directory::directory;
use crate::durable::client::{Client, share_out};
use crate::durable::served::Served;
use anyhow::{Context, Result};
use bench::{Contender, Plan, Report};
use serde_json::{Value, json};
use std::time::Duration;

const PLAN: Plan = Plan {
    warm_up_ops: 10,
    n_rounds: 9,
    round_ops: 100,
    round_time_max: Duration::from_millis(500),
};

const N_CALLS: usize = 10;
const N_CLIENTS: usize = 8;

/// Sessions of one operation, so that the start of threads costs each of them little.
const BATCH: u64 = 64;

/// A client that follows a session and answers its calls: a connection for each.
struct Caller {
    events: Streams,
    answers: Client,
}

pub(super) fn run(floor: &Floor, report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let served = Served::start(directory.path())?;
    let ours = || Ok(Caller { events: served.streams()?, answers: served.client()? });
    let address = floor.address.to_string();
    let theirs = || {
        let (events, answers) =
            (Streams::connect(&address, "none")?, Client::connect(&address, "none")?);
        Ok(Caller { events, answers })
    };
    let (mut run, mut constant) = (ours()?, theirs()?);
    let subject = Contender::new("ten calls at the caller, 1 client", || session(&mut run));
    let answered = Contender::new("ten answered constants", || constants(&mut constant));
    report.add(PLAN.compare(subject, answered)?, vec![]);

    let mut run = (0..N_CLIENTS).map(|_| ours()).collect::<Result<Vec<Caller>>>()?;
    let mut constant = (0..N_CLIENTS).map(|_| theirs()).collect::<Result<Vec<Caller>>>()?;
    let n = usize::try_from(BATCH)?;
    let subject = Contender::new("ten calls at the caller, 8 clients, time for each", || {
        share_out(&mut run, n, session).map(drop)
    });
    let answered = Contender::new("ten answered constants, 8 clients", || {
        share_out(&mut constant, n, constants).map(drop)
    });
    let plan = Plan { warm_up_ops: 1, round_ops: 5, ..PLAN };
    report.add(plan.compare(subject.batch(BATCH), answered.batch(BATCH))?, vec![]);
    served.stop()
}

fn session(caller: &mut Caller) -> Result<()> {
    let code = "let sum = 0; for (let n = 0; n < 10; n++) sum += await callTool('t', { n }); sum";
    caller.events.post("/sessions", &json!({ "code": code }).to_string())?;
    for _ in 0..N_CALLS {
        caller.events.until("\"tool_call\"")?;
        let call: Value = serde_json::from_str(caller.events.line())?;
        let session = call["sessionId"].as_str().context("a session has a name")?;
        let path = format!("/sessions/{session}/tool-result");
        caller.answers.post(&path, &json!({ "callId": call["payload"]["callId"], "result": 1 }))?;
    }
    caller.events.until("\"result\":10")?;
    caller.events.end()
}

fn constants(caller: &mut Caller) -> Result<()> {
    caller.events.post(&format!("/calls/{N_CALLS}"), "{}")?;
    for _ in 0..N_CALLS {
        caller.events.until("\"tool_call\"")?;
        let call: Value = serde_json::from_str(caller.events.line())?;
        let body = json!({ "callId": call["payload"]["callId"], "result": 1 });
        caller.answers.post("/result", &body)?;
    }
    caller.events.until("\"final\"")?;
    caller.events.end()
}
