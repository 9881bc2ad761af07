//! The memory of a session that waits for its caller: while its runner waits too, and after the runner was dropped.

use super::client::Streams;
use crate::directory::directory;
use crate::durable::served::Served;
use anyhow::{Result, ensure};
use bench::{Report, Size};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// The server's own memory for a session that has a runner and a reader.
const IDLE_BYTES_MAX: f64 = 150e3;

/// Only entries in an index, and the deadline for readers.
const DROPPED_BYTES_MAX: f64 = 2_048.0;

/// Concurrent sessions: each has a runner.
const N_IDLE: usize = 20;

/// Sessions without runners: enough for a signal above the noise, and above the database's cache, which fills up to its
/// maximum and no further.
const N_DROPPED: usize = 3_000;

/// Runners are retained for ten seconds in case an answer arrives early.
const COOLING_TIME_MAX: Duration = Duration::from_secs(60);

/// The number of servers; the median counts.
const N_SERVERS: usize = 5;

pub(super) fn run(report: &mut Report) -> Result<()> {
    let each = with_runners()?;
    report.add_size(size("an idle session beyond its runner", each, IDLE_BYTES_MAX));
    let each = without_runners()?;
    report.add_size(size("an idle session, runner dropped", each, DROPPED_BYTES_MAX));
    Ok(())
}

fn size(name: &str, bytes: f64, bytes_max: f64) -> Size {
    Size { name: name.to_owned(), bytes, bytes_max: Some(bytes_max) }
}

/// The memory of each in a server that already has as many: the memory of past activity is not counted, and no freed memory
/// is reused.
fn with_runners() -> Result<f64> {
    let directory = directory()?;
    let served = Served::start(directory.path())?;
    let earlier = idle(&served, N_IDLE)?;
    let before = served.own_bytes()? as f64;
    let sessions = idle(&served, N_IDLE)?;
    let after = served.own_bytes()? as f64;
    let n_live = served.client()?.n_live()? as usize;
    ensure!(n_live == 2 * N_IDLE, "{n_live} of {} sessions have their runner", 2 * N_IDLE);
    drop((earlier, sessions));
    served.stop()?;
    Ok((after - before) / N_IDLE as f64)
}

/// The memory of each in a server that loads it at the start.
fn without_runners() -> Result<f64> {
    let (empty, full) = (directory()?, directory()?);
    Served::start(empty.path())?.stop()?;
    let served = Served::start(full.path())?;
    for _ in 0..N_DROPPED / N_IDLE {
        drop(idle(&served, N_IDLE)?);
    }
    wait_until_cool(&served)?;
    served.stop()?;
    Ok((looks(full.path())? - looks(empty.path())?) / N_DROPPED as f64)
}

/// Sessions that wait for their caller, each with a reader.
fn idle(served: &Served, n: usize) -> Result<Vec<Streams>> {
    let hour = 3_600_000;
    let limits = json!({ "maxDurationMs": hour, "perToolDeadlineMs": hour, "graceMs": hour, "deadlineMs": hour });
    let body = json!({ "code": "await callTool('wait')", "limits": limits }).to_string();
    let mut readers = vec![];
    for _ in 0..n {
        let mut reader = served.streams()?;
        reader.post("/sessions", &body)?;
        reader.until("\"tool_call\"")?;
        readers.push(reader);
    }
    Ok(readers)
}

/// Waits until no session has a runner.
fn wait_until_cool(served: &Served) -> Result<()> {
    let (mut client, began) = (served.client()?, Instant::now());
    while client.n_live()? > 0 {
        ensure!(began.elapsed() < COOLING_TIME_MAX, "runners of idle sessions are kept");
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// The median memory of several servers that were started in the same way.
fn looks(data_dir: &Path) -> Result<f64> {
    let mut all = vec![];
    for _ in 0..N_SERVERS {
        let served = Served::start(data_dir)?;
        wait_until_cool(&served)?;
        all.push(served.memory_bytes()?);
        served.stop()?;
    }
    all.sort_unstable();
    Ok(all[N_SERVERS / 2] as f64)
}
