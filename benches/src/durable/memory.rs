//! What an idle server takes, and what programs add to it that wait for people.

use super::directory;
use super::pauses::{ASKING, asked};
use super::served::Served;
use anyhow::{Result, ensure};
use bench::{Report, Size};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The whole tree of processes, with the runners that wait ready.
const IDLE_BYTES_MAX: f64 = 30e6;

/// Nothing but entries in an index.
const PAUSED_BYTES_MAX: f64 = 1_000.0;

/// Programs that wait for people.
const N_PAUSED: usize = 2_000;

/// Servers looked at, with and without them, in turns.
const N_SERVERS: usize = 5;

/// Runners are kept for ten seconds in the hope of an early answer.
const COOLING_TIME_MAX: Duration = Duration::from_secs(30);

/// Returns the directory with what waits in it.
pub(super) fn run(report: &mut Report) -> Result<TempDir> {
    let (empty, full) = (directory()?, directory()?);
    Served::start(empty.path())?.stop()?;
    let idle: Vec<_> = look(N_SERVERS, || memory_of(Served::start(empty.path())?))?;
    report.add_size(Size {
        name: "all processes of an idle server".into(),
        bytes: median(idle),
        bytes_max: Some(IDLE_BYTES_MAX),
    });
    paused(empty.path(), full.path(), report)?;
    Ok(full)
}

fn paused(empty: &Path, full: &Path, report: &mut Report) -> Result<()> {
    let served = Served::start_with_tools(full)?;
    let before = served.memory_bytes()?;
    asked(&served, N_PAUSED, ASKING)?;
    wait_until_cool(&served)?;
    let after = served.memory_bytes()?;
    served.stop()?;
    let each = |without: f64, with: f64| (with - without) / N_PAUSED as f64;
    report.add_size(Size {
        name: "a paused program, in the server that ran it".into(),
        bytes: each(before as f64, after as f64),
        bytes_max: None,
    });
    let (mut without, mut with) = (vec![], vec![]);
    for _ in 0..N_SERVERS {
        without.push(memory_of(Served::start_with_tools(empty)?)?);
        with.push(memory_of(Served::start_with_tools(full)?)?);
    }
    report.add_size(Size {
        name: "a paused program, after a restart".into(),
        bytes: each(median(without), median(with)),
        bytes_max: Some(PAUSED_BYTES_MAX),
    });
    Ok(())
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

fn memory_of(served: Served) -> Result<f64> {
    let bytes = served.memory_bytes()?;
    served.stop()?;
    Ok(bytes as f64)
}

fn look(n: usize, mut once: impl FnMut() -> Result<f64>) -> Result<Vec<f64>> {
    (0..n).map(|_| once()).collect()
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}
