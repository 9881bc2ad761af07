//! Checkpoints the write-ahead log into the database, concurrently with the writer.
//!
//! A helper thread copies it while the writer continues. A commit that finds it copied completely restarts the log
//! instead of extending it. Under constant load that never happens: then the writer copies the short rest itself
//! between two batches, which makes all writes wait for the disk, and is therefore rare.

use super::format;
use super::mark::LogMarker;
use super::wal::WalGeneration;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::wal::CheckpointMode;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

/// A checkpoint starts when the log has grown by this much since the last one.
const LOG_BYTES_MAX: u32 = 16 << 20;

/// A log of this size is checkpointed even if writers must wait.
const FORCED_BYTES: u32 = 4 * LOG_BYTES_MAX;

/// A rest of this size is left to the writer: it takes about a millisecond, plus the disk's sync.
const REST_BYTES_MAX: u32 = 1 << 20;

/// Under constant load each round leaves less than the previous one; this many are sufficient.
const ROUNDS_MAX: u32 = 8;

/// Maximum size of the log, in pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogMax {
    moved: i32,
    forced: i32,
    rest: i32,
}

impl LogMax {
    pub(super) fn for_page_size(page_bytes: u32) -> Self {
        let pages = |bytes: u32| (bytes / page_bytes).cast_signed();
        let (moved, forced) = (pages(LOG_BYTES_MAX), pages(FORCED_BYTES));
        Self { moved, forced, rest: pages(REST_BYTES_MAX) }
    }
}

/// The writer's side of checkpointing.
pub(super) struct CheckpointScheduler {
    max: LogMax,
    pages: Arc<AtomicI32>,
    /// Counts commits.
    commits: Arc<AtomicU32>,
    /// Length of the log at the last check.
    before: i32,
    next_at: i32,
    wanted: SyncSender<()>,
    copied: Receiver<CopyResult>,
    /// The log that the helper copies.
    copying: Option<WalGeneration>,
    stage: CheckpointStage,
}

/// The progress of the helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyResult {
    /// All of this many frames; the next commit restarts the log, unless another commit came first.
    All(i32),
    /// This many frames; more were committed meanwhile.
    Some(i32),
}

impl CopyResult {
    /// Records in the mark what is on the disk now. `pages` is the length of the log after the copy.
    ///
    /// SQLite syncs the log before it copies. It syncs the database only if the copy reached the end of the log as of
    /// the end of the copy: with later frames or an active reader, a power cut may shorten the database.
    fn record(self, generation: Option<WalGeneration>, pages: i32, marker: &mut LogMarker) {
        let (Self::All(frames) | Self::Some(frames)) = self;
        let is_database_synced = self == Self::All(pages);
        let frames = u32::try_from(frames).unwrap_or(0);
        if is_database_synced {
            marker.checkpointed(generation, frames);
        } else {
            marker.log_synced(generation, frames);
        }
    }
}

/// The state of the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckpointStage {
    /// No checkpoint is in progress.
    Growing,
    /// The helper copies it.
    Copying,
    /// The next commit restarts the log, and waits for the disk.
    Ending,
}

impl CheckpointScheduler {
    /// Starts the helper, which ends when this is dropped.
    pub(super) fn start(
        conn: &mut Connection,
        path: PathBuf,
        max: LogMax,
    ) -> Result<(Self, JoinHandle<()>), crate::StoreError> {
        let pages = Arc::new(AtomicI32::new(0));
        let commits = Arc::new(AtomicU32::new(0));
        let told = (Arc::clone(&pages), Arc::clone(&commits));
        conn.wal_hook(Some(move |_: &mut _, n: i32| {
            told.0.store(n, Ordering::Relaxed);
            told.1.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }))?;
        let (wanted, wants) = sync_channel(1);
        let (copies, copied) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("store-log".into())
            .spawn(move || copy_when_wanted(&path, max.rest, &wants, &copies))?;
        let stage = CheckpointStage::Ending; // the first commit starts a log
        let next_at = max.moved;
        let copying = None;
        let started =
            Self { max, pages, commits, before: 0, next_at, wanted, copied, copying, stage };
        Ok((started, thread))
    }

    /// The number of commits that wrote something.
    pub(super) fn n_commits(&self) -> u32 {
        self.commits.load(Ordering::Relaxed)
    }

    /// The length of the log.
    pub(super) fn log_pages(&self) -> i32 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Checks whether a checkpoint is due; cheap if not.
    pub(super) fn after_commit(&mut self, conn: &Connection, marker: &mut LogMarker) {
        let pages = self.log_pages();
        if pages < self.before {
            self.next_at = self.max.moved; // the log was restarted
        }
        self.before = pages;
        if self.stage == CheckpointStage::Ending {
            self.stage = CheckpointStage::Growing;
        }
        let copied = self.copied.try_recv();
        if let Ok(copied) = copied {
            copied.record(self.copying, pages, marker);
        }
        match copied {
            Ok(_) if pages >= self.max.forced => self.copy_rest(conn, marker),
            Ok(CopyResult::All(_)) => self.stage = CheckpointStage::Ending,
            Ok(CopyResult::Some(_)) => self.stage = CheckpointStage::Growing,
            // The helper is gone: a slow checkpoint is better than an endless log.
            Err(TryRecvError::Disconnected) if self.is_long() => self.copy_rest(conn, marker),
            Err(TryRecvError::Disconnected) => {}
            Err(TryRecvError::Empty) => {
                if self.is_long() {
                    self.next_at = pages.saturating_add(self.max.moved);
                    self.copying = marker.generation();
                    if self.wanted.try_send(()).is_ok() {
                        self.stage = CheckpointStage::Copying;
                    }
                }
            }
        }
    }

    /// Checkpoints the whole log on shutdown.
    pub(super) fn finish(self, conn: &Connection, marker: &mut LogMarker) {
        drop(self);
        if let Err(error) = empty_log(conn, marker) {
            tracing::warn!(%error, "could not empty the log; the next start will");
        }
    }

    fn is_long(&self) -> bool {
        self.log_pages() >= self.next_at
    }

    fn copy_rest(&mut self, conn: &Connection, marker: &mut LogMarker) {
        self.stage = CheckpointStage::Ending;
        let generation = marker.generation();
        match conn.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE) {
            // Everything is copied: the next commit restarts the log.
            Ok((log, copied)) if log == copied => {
                CopyResult::All(copied).record(generation, self.log_pages(), marker);
                self.next_at = self.max.moved;
            }
            // A reader still uses the log.
            Ok((log, copied)) => {
                CopyResult::Some(copied).record(generation, self.log_pages(), marker);
                self.next_at = log.saturating_add(self.max.moved);
            }
            Err(error) => tracing::warn!(%error, "could not move the log into the file"),
        }
    }
}

/// Moves the whole log into the database and truncates it. The mark records this before and after: an emptied log
/// must not look like a lost one.
pub(super) fn empty_log(
    conn: &Connection,
    marker: &mut LogMarker,
) -> Result<(), crate::StoreError> {
    // Closing the last connection would do the same without updating the mark.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let (log, copied) = conn.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE)?;
    if log != copied {
        return Err(crate::StoreError::Locked);
    }
    marker.is_in_database()?;
    conn.wal_checkpoint_v2(None::<&str>, CheckpointMode::TRUNCATE)?;
    marker.emptied()?;
    Ok(conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map(drop)?)
}

fn copy_when_wanted(
    path: &Path,
    rest_max: i32,
    wants: &Receiver<()>,
    copies: &SyncSender<CopyResult>,
) {
    let mut conn = None;
    while wants.recv().is_ok() {
        let opened = match conn.take() {
            Some(conn) => Ok(conn),
            None => format::open_checkpointer(path),
        };
        let copied = match opened {
            Ok(open) => copy(conn.insert(open), rest_max),
            Err(error) => {
                tracing::warn!(%error, "could not open the file to move the log");
                CopyResult::Some(0)
            }
        };
        let _ = copies.try_send(copied);
    }
}

fn copy(conn: &Connection, rest_max: i32) -> CopyResult {
    let mut before = 0;
    let mut done = 0;
    for _ in 0..ROUNDS_MAX {
        match conn.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE) {
            Ok((log, copied)) if log == copied => return CopyResult::All(copied),
            Ok((_, copied)) if copied.saturating_sub(before) <= rest_max => {
                done = copied;
                break;
            }
            Ok((_, copied)) => (before, done) = (copied, copied),
            Err(error) => {
                tracing::warn!(%error, "could not move the log into the file");
                break;
            }
        }
    }
    CopyResult::Some(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::format::{CheckExtent, DurabilityMode, OpenDatabase};
    use crate::sqlite::mark::{
        BootId, FoundFiles, LogPosition, MarkState, StoreMark, TailPosition, WalCommit, find_files,
        shortfalls,
    };
    use std::path::Path;
    use uuid::Uuid;

    /// A database whose log is copied from its eighth frame on.
    struct Database {
        conn: Connection,
        checkpoints: CheckpointScheduler,
        marker: LogMarker,
        n_commits: u32,
    }

    impl Database {
        fn open(dir: &Path) -> Self {
            let path = dir.join(format::FILE);
            let OpenDatabase { mut conn, .. } =
                format::open(&path, format::STEPS, DurabilityMode::AsAsked, CheckExtent::IfSmall)
                    .unwrap();
            let page_bytes = format::page_bytes(&conn).unwrap();
            let max = LogMax { moved: 8, forced: i32::MAX, rest: 0 };
            let (checkpoints, _) =
                CheckpointScheduler::start(&mut conn, path.clone(), max).unwrap();
            let state = MarkState {
                boot: BootId([1; 16]),
                history: Uuid::from_u128(7),
                epoch: 0,
                at: 0,
                log: None,
                main_bytes: 0,
                tails: [TailPosition::default(); 2],
            };
            let mark = StoreMark::open(dir, state, 0).unwrap().0;
            let marker = LogMarker::new(mark, &path, page_bytes);
            let mut database = Self { conn, checkpoints, marker, n_commits: 0 };
            empty_log(&database.conn, &mut database.marker).unwrap();
            database
        }

        /// Commits one more row of this size.
        fn commit(&mut self, bytes: usize) {
            self.n_commits += 1;
            let row = (self.n_commits.to_string(), "x".repeat(bytes));
            self.conn
                .execute("INSERT INTO notes (book, line, seal) VALUES (?1, ?2, 1)", row)
                .unwrap();
            let frames = self.checkpoints.log_pages().cast_unsigned();
            self.marker.committed(WalCommit { frames, is_synced: false });
        }

        fn copy_in_helper(&mut self) {
            self.checkpoints.after_commit(&self.conn, &mut self.marker);
            assert_eq!(self.checkpoints.stage, CheckpointStage::Copying);
            while self.checkpoints.stage == CheckpointStage::Copying {
                std::thread::yield_now();
                self.checkpoints.after_commit(&self.conn, &mut self.marker);
            }
        }

        fn state(&self) -> (u64, LogPosition) {
            let state = self.marker.mark().state().unwrap();
            (state.main_bytes, state.log.unwrap())
        }
    }

    #[test]
    fn the_mark_does_not_ask_for_a_database_that_a_copy_lengthened_and_did_not_sync() {
        let temp = tempfile::tempdir().unwrap();
        let mut database = Database::open(temp.path());
        database.commit(40_000);
        let (synced_bytes, before) = database.state();
        let copied = before.written;
        let reader = format::open_reader(&temp.path().join(format::FILE)).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM notes").unwrap();
        database.commit(10);
        // The reader prevents the copy of the log's end.
        database.copy_in_helper();
        let length = std::fs::metadata(temp.path().join(format::FILE)).unwrap().len();
        assert!(length > synced_bytes, "the copy lengthened the database");
        let (main_bytes, log) = database.state();
        assert_eq!(main_bytes, synced_bytes);
        assert_eq!((log.synced, log.checkpointed), (copied, 0));
        drop(reader);

        let state = database.marker.mark().state().unwrap();
        let after_power_cut =
            FoundFiles { main_bytes: synced_bytes, ..find_files(temp.path()).unwrap() };
        assert_eq!(shortfalls(&state, &after_power_cut, BootId([2; 16])), []);
    }

    #[test]
    fn a_copy_of_the_whole_log_is_synced_in_the_database_unless_the_log_grew_meanwhile() {
        let temp = tempfile::tempdir().unwrap();
        let mut database = Database::open(temp.path());
        database.commit(10);
        let (synced_bytes, LogPosition { generation, written, .. }) = database.state();
        let copied = CopyResult::All(written.cast_signed());
        database.commit(40_000);
        let pages = database.checkpoints.log_pages();
        copied.record(Some(generation), pages, &mut database.marker);
        let (main_bytes, log) = database.state();
        assert_eq!((main_bytes, log.synced, log.checkpointed), (synced_bytes, written, 0));

        database.copy_in_helper();
        let length = std::fs::metadata(temp.path().join(format::FILE)).unwrap().len();
        assert!(length > synced_bytes, "the copy lengthened the database");
        let (main_bytes, log) = database.state();
        let frames = pages.cast_unsigned();
        assert_eq!((main_bytes, log.synced, log.checkpointed), (length, frames, frames));
    }
}
