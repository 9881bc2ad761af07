//! The REPL of the server, beside the same WebSocket server echoing.

mod client;
mod echo;

use crate::directory::directory;
use crate::durable::served::Served;
use anyhow::{Context as _, Result, ensure};
use bench::{Contender, Plan, Report, Target};
use client::Client;
use echo::Echo;
use std::time::{Duration, Instant};

const PLAN: Plan = Plan {
    warm_up_ops: 200,
    n_rounds: 15,
    round_ops: 2_000,
    round_time_max: Duration::from_millis(400),
};

/// At least 0.4 of the echo's rate: an eval goes to a jailed process and back besides.
const EVAL_RATIO_MAX: f64 = 2.5;

/// A poll is answered by the connection itself.
const POLL_RATIO_MAX: f64 = 2.0;

/// A delay that a person does not notice.
const COMPLETION_MAX: Duration = Duration::from_millis(5);

/// One frame of the watches' clock.
const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);

/// The frame for `1 + 1`; the echo gets the same.
const EVAL: &str = r#"{"type":"eval","id":"eval-1","code":"1 + 1"}"#;

/// Measures evals, completions, polls beside a busy evaluator, and how evenly a watch ticks.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    let directory = directory()?;
    let served = Served::start_with_tools(directory.path())?;
    let echo = Echo::start()?;
    let floor_client = || Client::connect(&echo.address.to_string(), "/", None);
    let mut repl = connect(&served, "bench")?;
    let mut asks = floor_client()?;

    let subject = Contender::new("eval 1 + 1", || repl.ask(EVAL, "\"value\":\"2\""));
    let floor = Contender::new("echo of the frame", || asks.ask(EVAL, "1 + 1"));
    report.add(PLAN.compare(subject, floor)?, vec![Target::RatioMax(EVAL_RATIO_MAX)]);

    let complete = r#"{"type":"complete","id":"c-1","code":"JSON.str"}"#;
    let subject = Contender::new("complete JSON.str", || repl.ask(complete, "stringify"));
    let floor = Contender::new("echo of the frame", || asks.ask(complete, "JSON.str"));
    let most = u64::try_from(COMPLETION_MAX.as_nanos())? as f64;
    report.add(PLAN.compare(subject, floor)?, vec![Target::P99NsMax(most)]);

    polls(&served, &mut asks, &mut report)?;
    watches(&served, &mut report)?;
    served.stop()?;
    Ok(report)
}

/// `job_status` while an eval computes.
fn polls(served: &Served, asks: &mut Client, report: &mut Report) -> Result<()> {
    let mut repl = connect(served, "busy")?;
    repl.send(r#"{"type":"command_call","id":"j","name":"demo.sleep","args":{"ms":600000}}"#)?;
    let job = repl.frame()?["jobId"].as_str().context("a job")?.to_owned();
    repl.send(r#"{"type":"eval","id":"busy","code":"while (true) {}","timeoutMs":600000}"#)?;
    let poll = format!(r#"{{"type":"job_status","id":"p-1","jobId":"{job}"}}"#);
    let subject = Contender::new("job_status beside a busy eval", || repl.ask(&poll, "running"));
    let floor = Contender::new("echo of the frame", || asks.ask(&poll, &job));
    let measured = PLAN.compare(subject, floor)?;
    report.add(measured, vec![Target::RatioMax(POLL_RATIO_MAX)]);
    repl.send(&format!(r#"{{"type":"job_cancel","id":"k","jobId":"{job}"}}"#))?;
    repl.send(r#"{"type":"cancel","id":"k2","targetId":"busy"}"#)
}

/// The deviation of a watch's ticks from their schedule, beside a thread that sleeps for the same time.
fn watches(served: &Served, report: &mut Report) -> Result<()> {
    let mut repl = connect(served, "watch")?;
    repl.send(r#"{"type":"subscribe","id":"w","code":"Time.frameCount"}"#)?;
    repl.next()?;
    let mut last = Instant::now();
    let subject = Contender::timed("watch at 60 Hz, off by", || {
        let told = repl.next()?;
        ensure!(told.contains("subscribe_result"), "no tick: {told}");
        let now = Instant::now();
        let taken = now - std::mem::replace(&mut last, now);
        // After a late tick, the next one is early by as much: both count.
        Ok(taken.abs_diff(FRAME))
    });
    let floor = Contender::timed("a thread that sleeps for a frame, off by", || {
        let before = Instant::now();
        std::thread::sleep(FRAME);
        Ok(before.elapsed().abs_diff(FRAME))
    });
    let plan = Plan {
        warm_up_ops: 5,
        n_rounds: 1,
        round_ops: 120,
        round_time_max: Duration::from_secs(3),
    };
    report.add(plan.compare(subject, floor)?, vec![]);
    Ok(())
}

fn connect(served: &Served, session: &str) -> Result<Client> {
    let path = format!("/repl?session={session}");
    let mut client = Client::connect(served.address(), &path, Some(served.secret()))?;
    ensure!(client.frame()?["type"] == "handshake", "no handshake");
    Ok(client)
}
