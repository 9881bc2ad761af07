//! The memory of an idle server, and of programs that wait for people.

use super::pauses::{ASKING, asked};
use super::served::Served;
use crate::directory::directory;
use anyhow::{Result, ensure};
use bench::{Report, Size};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The whole process tree, with the warm runners.
const IDLE_BYTES_MAX: f64 = 30e6;

/// Only entries in an index.
const PAUSED_BYTES_MAX: f64 = 1_024.0;

/// Programs that wait for people.
const N_PAUSED: usize = 2_000;

/// The number of servers; the median counts.
const N_SERVERS: usize = 5;

/// Runners are retained for ten seconds in case an answer arrives early.
const COOLING_TIME_MAX: Duration = Duration::from_secs(30);

/// Returns the directory with the paused programs.
pub(super) fn run(report: &mut Report) -> Result<TempDir> {
    let (empty, full) = (directory()?, directory()?);
    Served::start(empty.path())?.stop()?;
    let idle = looks(|| Served::start(empty.path()))?;
    report.add_size(size("all processes of an idle server", idle, Some(IDLE_BYTES_MAX)));
    let each = in_one_server()?;
    report.add_size(size("a paused program more, runner dropped", each, None));
    let each = after_a_restart(empty.path(), full.path())?;
    report.add_size(size("a paused program after a restart", each, Some(PAUSED_BYTES_MAX)));
    Ok(full)
}

fn size(name: &str, bytes: f64, bytes_max: Option<f64>) -> Size {
    Size { name: name.to_owned(), bytes, bytes_max }
}

/// The memory of each in a server that was equally busy before: the memory of past activity is not counted.
fn in_one_server() -> Result<f64> {
    let directory = directory()?;
    let served = Served::start_with_tools(directory.path())?;
    let mut taken = [0.0; 2];
    for taken in &mut taken {
        asked(&served, N_PAUSED, ASKING)?;
        wait_until_cool(&served)?;
        *taken = served.memory_bytes()? as f64;
    }
    served.stop()?;
    Ok((taken[1] - taken[0]) / N_PAUSED as f64)
}

/// Waits until no paused program has a runner.
fn wait_until_cool(served: &Served) -> Result<()> {
    let mut client = served.client()?;
    let began = Instant::now();
    while client.n_live()? > 0 {
        ensure!(began.elapsed() < COOLING_TIME_MAX, "runners of paused programs are kept");
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// The memory of each in a server that has never run it.
fn after_a_restart(empty: &Path, full: &Path) -> Result<f64> {
    let served = Served::start_with_tools(full)?;
    asked(&served, N_PAUSED, ASKING)?;
    served.stop()?;
    let without = looks(|| Served::start_with_tools(empty))?;
    let with = looks(|| Served::start_with_tools(full))?;
    Ok((with - without) / N_PAUSED as f64)
}

/// The median memory of several servers that were started in the same way.
fn looks(start: impl Fn() -> Result<Served>) -> Result<f64> {
    let mut all = vec![];
    for _ in 0..N_SERVERS {
        let served = start()?;
        all.push(served.memory_bytes()?);
        served.stop()?;
    }
    all.sort_unstable();
    Ok(all[N_SERVERS / 2] as f64)
}
