//! Measures the journal's append rate, compared with a bare file that receives the same bytes.
//!
//! `cargo run --release -p store --example append_rate [directory]`
#![expect(clippy::print_stdout, reason = "printing rates is what it is for")]

use lifecycle::{
    CallerName, Entry, Event, ExecutionId, ExecutionPhase, ExecutionSummary, InputIndex, LogLevel,
    OutputMark, Seq, Timestamp, WriteStrength,
};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use store::sqlite::SqliteStore;
use store::{Journal, JournalAppend};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

const TIME: Duration = Duration::from_secs(1);
const ROUNDS: usize = 5;
const CASES: [(WriteStrength, usize); 5] = [
    (WriteStrength::Synced, 1),
    (WriteStrength::Synced, 64),
    (WriteStrength::Synced, 512),
    (WriteStrength::Written, 1),
    (WriteStrength::Written, 64),
];
const LINE_BYTES: usize = 180;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let base = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let dir = tempfile::tempdir_in(base)?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        // Alternates between the two several times, because the load of the disk varies.
        for _ in 0..ROUNDS {
            let bare = bare(&dir.path().join("bare")).await?;
            println!("bare file, append + fdatasync, 1 writer: {bare:.0}/s");
            for (strength, n_writers) in CASES {
                let rate = journal(&dir.path().join("data"), n_writers, strength).await?;
                let times = rate / bare;
                println!("journal, {strength:?}, {n_writers} writers: {rate:.0}/s, {times:.2} x");
            }
        }
        Ok(())
    })
}

/// Writes and syncs in another thread, with the same two thread switches as an append.
async fn bare(path: &Path) -> Result<f64, Box<dyn std::error::Error>> {
    let (send, mut receive) = mpsc::channel::<(String, oneshot::Sender<()>)>(1);
    let mut file = File::create(path)?;
    let thread = std::thread::spawn(move || -> std::io::Result<()> {
        while let Some((text, done)) = receive.blocking_recv() {
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
            let _ = done.send(());
        }
        Ok(())
    });
    let mut n = 0_u64;
    let start = Instant::now();
    while start.elapsed() < TIME {
        n += 1;
        let (done, written) = oneshot::channel();
        send.send((serde_json::to_string(&entry(Seq(n)).event)?, done)).await?;
        written.await?;
    }
    let rate = per_second(n, start);
    drop(send);
    thread.join().map_err(|_| "the bare file's thread panicked")??;
    Ok(rate)
}

async fn journal(
    dir: &Path,
    n_writers: usize,
    strength: WriteStrength,
) -> Result<f64, Box<dyn std::error::Error>> {
    let store = SqliteStore::open(dir)?;
    let start = Instant::now();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..n_writers {
        writers.spawn(write(store.clone(), strength, start));
    }
    let mut n = 0;
    while let Some(written) = writers.join_next().await {
        n += written??;
    }
    let rate = per_second(n, start);
    store.close().await;
    Ok(rate)
}

async fn write(
    store: SqliteStore,
    strength: WriteStrength,
    start: Instant,
) -> Result<u64, store::StoreError> {
    let execution = ExecutionId::from_uuid(Uuid::now_v7());
    let standing = ExecutionSummary {
        phase: ExecutionPhase::Running,
        caller: CallerName("bench".into()),
        due: None,
    };
    let mut last = Seq(0);
    while start.elapsed() < TIME {
        let (entries, standing) = (vec![entry(last.next())], standing.clone());
        store
            .append(JournalAppend { execution, expected: last, entries, standing, strength })
            .await?;
        last = last.next();
    }
    Ok(last.0)
}

fn entry(seq: Seq) -> Entry {
    let mark = OutputMark { input: InputIndex(0), ordinal: 1 };
    let event = Event::Logged { mark, level: LogLevel::Log, line: "x".repeat(LINE_BYTES) };
    Entry { seq, at: Timestamp(1_700_000_000_000), event }
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn per_second(n: u64, start: Instant) -> f64 {
    n as f64 / start.elapsed().as_secs_f64()
}
