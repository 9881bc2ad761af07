//! What a session takes that waits for its caller: while its runner waits too, and once that is dropped.

use super::client::Streams;
use crate::directory::directory;
use crate::durable::served::Served;
use anyhow::{Result, ensure};
use bench::{Report, Size};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// The server's own share of a session that has a runner and a reader.
const IDLE_BYTES_MAX: f64 = 150e3;

/// Nothing but entries in an index, and a note of how long to wait for readers.
const DROPPED_BYTES_MAX: f64 = 2_048.0;

/// Sessions at once: each has a runner.
const N_IDLE: usize = 20;

/// Sessions without runners: as many as make their share stand out of the noise, and out of the database's cache, which
/// fills up to its maximum and no further.
const N_DROPPED: usize = 3_000;

/// Runners are kept for ten seconds in the hope of an early answer.
const COOLING_TIME_MAX: Duration = Duration::from_secs(60);

/// Servers looked at; the median counts.
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

/// What each adds to a server that has as many already: what busyness itself takes is not counted, and no memory that
/// others have left is used again.
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

/// What each adds to a server that finds it when it starts.
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

/// The median of what several servers take that were started alike.
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
