//! Events of one session to one reader and to a hundred, beside as many constants; and the same session after its end.

use super::client::Streams;
use super::floor::Floor;
use crate::directory::directory;
use crate::durable::client::share_out;
use crate::durable::served::Served;
use anyhow::{Result, ensure};
use bench::{Contender, Plan, Report, Target};
use serde_json::json;
use std::time::Duration;

const PLAN: Plan =
    Plan { warm_up_ops: 1, n_rounds: 9, round_ops: 5, round_time_max: Duration::from_millis(600) };

/// Half of the floor's rate at least.
const RATIO_MAX: f64 = 2.0;

/// Lines that the program prints.
const N_EVENTS: usize = 5_000;

/// A text that only the last event of each stream contains.
const CALLED: &[u8] = b"\"toolName\":\"wait\"";
const FINAL: &[u8] = b"\"type\":\"final\"";

/// The code of a session that prints, and then waits for its caller or ends.
fn printing(then: &str) -> String {
    format!(
        "for (let n = 0; n < {N_EVENTS}; n++) console.log('line ' + n + ' of a program'); {then}"
    )
}

pub(super) fn run(floor: &Floor, report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let served = Served::start(directory.path())?;
    told_live(&served, floor, report)?;
    for n_readers in [1, 100] {
        to_readers(&served, floor, n_readers, report)?;
    }
    replayed(&served, floor, report)?;
    served.stop()
}

/// From the program's output to a reader: the interpreter, the journal and the stream.
fn told_live(served: &Served, floor: &Floor, report: &mut Report) -> Result<()> {
    let (mut run, mut constant) = (served.streams()?, theirs(floor)?);
    let body = json!({ "code": printing("1") }).to_string();
    let subject = Contender::new("an event that is just printed, 1 reader", || {
        run.post("/sessions", &body)?;
        run.until("\"final\"")?;
        run.end()
    });
    let floor = Contender::new("a constant", || constants(&mut constant));
    let measured = PLAN.compare(subject.batch(N_EVENTS as u64), floor.batch(N_EVENTS as u64))?;
    report.add(measured, vec![]);
    Ok(())
}

/// A session that continues: each reader receives all its events, in a separate stream.
fn to_readers(served: &Served, floor: &Floor, n: usize, report: &mut Report) -> Result<()> {
    let session = format!("s_{n}_readers");
    let limits =
        json!({ "maxDurationMs": 600_000, "heartbeatIntervalMs": 0, "perToolDeadlineMs": 600_000 });
    let code = printing("await callTool('wait')");
    let mut first = served.streams()?;
    let body = json!({ "sessionId": session, "code": code, "limits": limits });
    first.post("/sessions", &body.to_string())?;
    let mut n_events = 1;
    while !first.event()?.contains("\"tool_call\"") {
        n_events += 1;
    }
    ensure!(n_events == N_EVENTS + 2, "{n_events} events were told");
    let path = format!("/sessions/{session}/stream");
    let hear = |_: &mut ()| {
        let mut reader = served.streams()?;
        reader.get(&path)?;
        reader.drain(CALLED).map(drop)
    };
    let hear_constants = |_: &mut ()| {
        let mut reader = theirs(floor)?;
        reader.get(&format!("/events/{}", N_EVENTS + 1))?;
        reader.drain(FINAL).map(drop)
    };
    // All readers are connected concurrently, each with its own thread.
    let mut readers = vec![(); n];
    let mut others = readers.clone();
    let subject = Contender::new(format!("an event, {n} readers, time for each"), || {
        share_out(&mut readers, n, hear).map(drop)
    });
    let floor = Contender::new(format!("a constant, {n} readers"), || {
        share_out(&mut others, n, hear_constants).map(drop)
    });
    let batch = (n * N_EVENTS) as u64;
    let measured = PLAN.compare(subject.batch(batch), floor.batch(batch))?;
    report.add(measured, vec![Target::RatioMax(RATIO_MAX)]);
    let mut ends = served.client()?;
    ends.post(&format!("/sessions/{session}/cancel"), &json!({}))?;
    Ok(())
}

/// A finished session, read again from its first event.
fn replayed(served: &Served, floor: &Floor, report: &mut Report) -> Result<()> {
    let mut reader = served.streams()?;
    let body = json!({ "sessionId": "s_over", "code": printing("1") });
    reader.post("/sessions", &body.to_string())?;
    reader.until("\"final\"")?;
    reader.end()?;
    let mut constant = theirs(floor)?;
    let subject = Contender::new("an event of a session that is over", || {
        reader.get("/sessions/s_over/stream")?;
        reader.until("\"final\"")?;
        reader.end()
    });
    let floor = Contender::new("a constant", || constants(&mut constant));
    let measured = PLAN.compare(subject.batch(N_EVENTS as u64), floor.batch(N_EVENTS as u64))?;
    report.add(measured, vec![]);
    Ok(())
}

fn theirs(floor: &Floor) -> Result<Streams> {
    Streams::connect(&floor.address.to_string(), "none")
}

fn constants(client: &mut Streams) -> Result<()> {
    client.get(&format!("/events/{}", N_EVENTS + 1))?;
    client.until("\"final\"")?;
    client.end()
}
