//! `execute` over MCP, beside an rmcp server whose only tool is an echo: the unavoidable cost of the SDK and HTTP.

pub(crate) mod echo;

use crate::directory::directory;
use crate::durable::client::{Client, share_out};
use crate::durable::served::Served;
use anyhow::{Context as _, Result, ensure};
use bench::{Contender, Plan, Report, Target};
use echo::Echo;
use serde_json::{Value, json};
use std::time::Duration;

const PLAN: Plan = Plan {
    warm_up_ops: 50,
    n_rounds: 15,
    round_ops: 400,
    round_time_max: Duration::from_millis(400),
};

/// Eight clients' threads, a server's and its runners' share the processors, and rounds differ by a quarter: more
/// rounds make the result repeatable.
const CROWD_PLAN: Plan = Plan { warm_up_ops: 2, n_rounds: 60, round_ops: 10, ..PLAN };

/// At least half of the floor's rate: a program runs in a jail of its own and is also journalled.
const RATIO_MAX: f64 = 2.0;

const N_CLIENTS: usize = 8;

/// Calls of one operation, so that the start of threads costs each of them little.
const BATCH: u64 = 200;

/// Measures one client and eight, with a runner for each program and with runners that are reused per caller.
pub(crate) fn run() -> Result<Report> {
    let mut report = Report::default();
    let echo = Echo::start()?;
    for (flags, runners) in
        [(&[][..], "single-use runners"), (&["--keep-runners"][..], "kept runners")]
    {
        let directory = directory()?;
        let served = Served::start_with(directory.path(), flags)?;
        beside(&echo, &served, runners, &mut report)?;
        served.stop()?;
    }
    Ok(report)
}

fn beside(echo: &Echo, served: &Served, runners: &str, report: &mut Report) -> Result<()> {
    let floor_client = || Client::connect(&echo.address.to_string(), "none");
    let (mut runs, mut asks) = (served.client()?, floor_client()?);
    let name = format!("execute return 1 over MCP, 1 client, {runners}");
    let subject = Contender::new(name, || execute(&mut runs));
    let floor = Contender::new("echo by an rmcp server", || call_echo(&mut asks));
    report.add(PLAN.compare(subject, floor)?, vec![Target::RatioMax(RATIO_MAX)]);

    let mut runs = (0..N_CLIENTS).map(|_| served.client()).collect::<Result<Vec<_>>>()?;
    let mut asks = (0..N_CLIENTS).map(|_| floor_client()).collect::<Result<Vec<_>>>()?;
    let n = usize::try_from(BATCH)?;
    let name = format!("execute return 1 over MCP, 8 clients, {runners}, time for each");
    let subject = Contender::new(name, || share_out(&mut runs, n, execute).map(drop));
    let floor = Contender::new("echo by an rmcp server, 8 clients, time for each", || {
        share_out(&mut asks, n, call_echo).map(drop)
    });
    let measured = CROWD_PLAN.compare(subject.batch(BATCH), floor.batch(BATCH))?;
    report.add(measured, vec![Target::RatioMax(RATIO_MAX)]);
    Ok(())
}

pub(crate) fn execute(client: &mut Client) -> Result<()> {
    let told = call(client, "execute", &json!({ "code": "return 1" }))?;
    ensure!(told["structuredContent"]["result"] == 1, "one is not one: {told}");
    Ok(())
}

fn call_echo(client: &mut Client) -> Result<()> {
    let told = call(client, "echo", &json!({ "code": "return 1" }))?;
    ensure!(told["content"][0]["text"] == "return 1", "no echo: {told}");
    Ok(())
}

/// Like `execute`, by a client that requests progress, as most do; none is reported of a program this short.
pub(crate) fn execute_with_progress(client: &mut Client) -> Result<()> {
    let params = json!({
        "name": "execute",
        "arguments": { "code": "return 1" },
        "_meta": { "progressToken": 1 },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let body = String::from_utf8_lossy(client.post_for_body("/mcp", HEAD, &message)?).into_owned();
    // JSON, or a stream whose last event holds it.
    let answer = body.lines().rev().find_map(|line| {
        let data = line.strip_prefix("data:").unwrap_or(line);
        serde_json::from_str::<Value>(data.trim()).ok().filter(|message| message["id"] == 1)
    });
    let result = answer.with_context(|| format!("no answer: {body}"))?["result"].take();
    ensure!(result["structuredContent"]["result"] == 1, "one is not one: {result}");
    Ok(())
}

const HEAD: &str =
    "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n";

fn call(client: &mut Client, tool: &str, args: &Value) -> Result<Value> {
    let params = json!({ "name": tool, "arguments": args });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    Ok(client.post_with("/mcp", HEAD, &message)?["result"].take())
}
