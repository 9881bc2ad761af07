//! Synced appends to the journal, sequential and by many concurrent writers, beside a bare file that takes the same bytes.

use super::{PLAN, on};
use crate::directory::directory;
use anyhow::{Context, Result};
use bench::{Contender, Plan, Report, Target};
use lifecycle::{
    CallerName, Entry, Event, ExecutionId, ExecutionPhase, ExecutionSummary, InputIndex, LogLevel,
    OutputMark, Seq, Timestamp, WriteStrength,
};
use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use store::sqlite::SqliteStore;
use store::{Journal, JournalAppend};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use uuid::Uuid;

/// A journal is also an index: pages instead of lines, with checksums.
const ALONE_RATIO_MAX: f64 = 1.5;

/// Concurrent appends share a sync: five times the rate of the bare file.
const TOGETHER_RATIO_MAX: f64 = 0.2;

/// Executions that append concurrently.
const WRITERS: usize = 64;

/// Appends of each writer in one operation.
const APPENDS_EACH: usize = 8;

/// The padding that makes an event about 250 bytes long.
const LINE_BYTES: usize = 180;

/// One request at a time.
const ASKED_MAX: usize = 1;

pub(super) fn run(runtime: &Runtime, report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let store = SqliteStore::open(&directory.path().join("data"))?;
    let bare = Bare::start(&directory.path().join("bare"))?;
    let event = Arc::new(serde_json::to_string(&event())?);
    let disk = Disk { directory: directory.path().join("data"), last: Cell::new(None) };

    let mut one = Writer::new(store.clone());
    let alone = Contender::timed("synced append, 1 writer", || {
        disk.settle(Turn::Journal)?;
        let before = Instant::now();
        one = on(runtime, one.clone().append_all())?;
        Ok(before.elapsed())
    });
    let alone = alone.batch(APPENDS_EACH as u64);
    let plan = Plan { warm_up_ops: 5, ..PLAN };
    let measured = plan.compare(alone, bare.contender(runtime, &disk, &event))?;
    report.add(measured, vec![Target::RatioMax(ALONE_RATIO_MAX)]);

    let mut many: Vec<_> = (0..WRITERS).map(|_| Writer::new(store.clone())).collect();
    let together = Contender::timed("synced append, 64 writers", || {
        disk.settle(Turn::Journal)?;
        let before = Instant::now();
        many = on(runtime, append_together(std::mem::take(&mut many)))?;
        Ok(before.elapsed())
    });
    let together = together.batch((WRITERS * APPENDS_EACH) as u64);
    let measured = plan.compare(together, bare.contender(runtime, &disk, &event))?;
    report.add(measured, vec![Target::RatioMax(TOGETHER_RATIO_MAX)]);
    runtime.block_on(store.close());
    bare.stop()
}

/// The disk that both share. A file system may write out with one file's sync the unwritten data of others; between turns
/// everything is written out, so that neither is charged for the other.
struct Disk {
    directory: PathBuf,
    last: Cell<Option<Turn>>,
}

/// The current user of the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Journal,
    Bare,
}

impl Disk {
    /// Writes out the other's data when the turn changes.
    fn settle(&self, turn: Turn) -> Result<()> {
        if self.last.replace(Some(turn)) != Some(turn) {
            for file in std::fs::read_dir(&self.directory)? {
                let path = file?.path();
                if path.is_file() {
                    File::open(path)?.sync_all()?;
                }
            }
        }
        Ok(())
    }
}

/// An execution that appends.
#[derive(Clone)]
struct Writer {
    store: SqliteStore,
    execution: ExecutionId,
    last: Seq,
}

impl Writer {
    fn new(store: SqliteStore) -> Self {
        Self { store, execution: ExecutionId::from_uuid(Uuid::now_v7()), last: Seq(0) }
    }

    async fn append_all(mut self) -> Result<Self> {
        for _ in 0..APPENDS_EACH {
            self.append().await?;
        }
        Ok(self)
    }

    async fn append(&mut self) -> Result<()> {
        let entry =
            Entry { seq: self.last.next(), at: Timestamp(1_700_000_000_000), event: event() };
        let caller = CallerName("bench".into());
        let append = JournalAppend {
            execution: self.execution,
            expected: self.last,
            entries: vec![entry],
            standing: ExecutionSummary { phase: ExecutionPhase::Running, caller, due: None },
            strength: WriteStrength::Synced,
        };
        self.store.append(append).await?;
        self.last = self.last.next();
        Ok(())
    }
}

/// Each in its own task, as executions are.
async fn append_together(writers: Vec<Writer>) -> Result<Vec<Writer>> {
    let mut tasks = JoinSet::new();
    for writer in writers {
        tasks.spawn(writer.append_all());
    }
    tasks.join_all().await.into_iter().collect()
}

/// A thread that appends to a file and syncs it: the same two hand-overs as an append to the journal.
struct Bare {
    ask: mpsc::Sender<Asked>,
    thread: JoinHandle<std::io::Result<()>>,
}

/// The text to append, and the sender of its acknowledgement.
type Asked = (Arc<String>, oneshot::Sender<()>);

impl Bare {
    fn start(path: &Path) -> Result<Self> {
        let mut file = File::create(path)?;
        let (ask, mut asked) = mpsc::channel::<Asked>(ASKED_MAX);
        let thread = std::thread::Builder::new().name("bare".into()).spawn(move || {
            while let Some((text, done)) = asked.blocking_recv() {
                file.write_all(text.as_bytes())?;
                file.sync_data()?;
                // The caller waits for this.
                let _ = done.send(());
            }
            Ok(())
        })?;
        Ok(Self { ask, thread })
    }

    fn contender<'a>(
        &'a self,
        runtime: &'a Runtime,
        disk: &'a Disk,
        text: &'a Arc<String>,
    ) -> Contender<'a> {
        let floor = Contender::timed("append to a file and fdatasync", move || {
            disk.settle(Turn::Bare)?;
            let before = Instant::now();
            on(runtime, ask_all(self.ask.clone(), Arc::clone(text)))?;
            Ok(before.elapsed())
        });
        floor.batch(APPENDS_EACH as u64)
    }

    fn stop(self) -> Result<()> {
        drop(self.ask);
        let ended = self.thread.join().ok().context("the bare file's thread panicked")?;
        Ok(ended?)
    }
}

async fn ask_all(ask: mpsc::Sender<Asked>, text: Arc<String>) -> Result<()> {
    for _ in 0..APPENDS_EACH {
        let (done, written) = oneshot::channel();
        let asked = (Arc::clone(&text), done);
        ask.send(asked).await.ok().context("the bare file's thread is gone")?;
        written.await?;
    }
    Ok(())
}

fn event() -> Event {
    let mark = OutputMark { input: InputIndex(0), ordinal: 1 };
    Event::Logged { mark, level: LogLevel::Log, line: "x".repeat(LINE_BYTES) }
}
