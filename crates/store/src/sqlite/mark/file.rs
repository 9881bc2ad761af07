//! Writes the mark, and syncs it periodically.
//!
//! A write goes to the page cache and waits for nothing. A dedicated thread syncs the file at most once a second, and
//! soon after a checkpoint. A mark that is older than the store raises no alarm: it only guarantees less.

use super::slot::{MarkState, SLOT_BYTES, SLOT_STRIDE, TailPosition};
use crate::StoreError;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Minimum interval between syncs of the mark, except for checkpoints and shutdown.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

const WHY: &str = "nothing panics while it holds this lock";

/// A handle to the mark of an open store. A temporary store has none.
#[derive(Clone)]
pub(in crate::sqlite) struct StoreMark(Option<Arc<MarkShared>>);

struct MarkShared {
    writer: Mutex<MarkWriter>,
    syncing: MarkSyncState,
}

struct MarkWriter {
    file: File,
    state: MarkState,
    sequence: u64,
    /// A write failed and was logged: further failures are not logged.
    has_failed: bool,
}

/// When the file must be synced.
#[derive(Default)]
struct MarkSyncState {
    /// The file was written since the last sync began.
    is_dirty: AtomicBool,
    wanted: Mutex<SyncWanted>,
    changed: Condvar,
}

#[derive(Default)]
struct SyncWanted {
    is_soon: bool,
    is_closed: bool,
}

impl StoreMark {
    /// No mark: nothing is written.
    pub(in crate::sqlite) const fn none() -> Self {
        Self(None)
    }

    /// Opens the file, or creates it, and writes `state` as its newest slot, synced.
    pub(in crate::sqlite) fn open(
        dir: &Path,
        state: MarkState,
        sequence: u64,
    ) -> Result<(Self, JoinHandle<()>), StoreError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(dir.join(super::FILE))?;
        if file.metadata()?.len() < 2 * SLOT_STRIDE as u64 {
            // Allocates both slots now: a disk that becomes full must not prevent later writes.
            file.write_all_at(&vec![0; 2 * SLOT_STRIDE], 0)?;
            file.sync_all()?;
            File::open(dir)?.sync_all()?;
        }
        let to_sync = file.try_clone()?;
        let writer = MarkWriter { file, state, sequence, has_failed: false };
        let shared =
            Arc::new(MarkShared { writer: Mutex::new(writer), syncing: MarkSyncState::default() });
        let mark = Self(Some(Arc::clone(&shared)));
        mark.try_update(|_| {})?;
        mark.sync()?;
        let thread = std::thread::Builder::new()
            .name("store-mark".into())
            .spawn(move || shared.syncing.run(&to_sync))?;
        Ok((mark, thread))
    }

    /// Changes the mark and writes it. False if that failed: the mark then guarantees less than it could.
    pub(in crate::sqlite) fn update(&self, change: impl FnOnce(&mut MarkState)) -> bool {
        self.try_update(change).is_ok()
    }

    fn try_update(&self, change: impl FnOnce(&mut MarkState)) -> io::Result<()> {
        let Some(shared) = &self.0 else { return Ok(()) };
        let written = shared.writer().update(change);
        if !shared.syncing.is_dirty.swap(true, Ordering::Relaxed) {
            // The lock is taken once in between, so that the thread cannot miss it. Happens once per sync.
            drop(shared.syncing.wanted());
            shared.syncing.changed.notify_one();
        }
        written
    }

    /// The present content; `None` if there is no mark.
    pub(in crate::sqlite) fn state(&self) -> Option<MarkState> {
        self.0.as_ref().map(|shared| shared.writer().state)
    }

    /// Records how far the executions in an append file reach.
    pub(in crate::sqlite) fn tail_written(&self, which: usize, tail: TailPosition) {
        self.update(|state| state.tails[which] = tail);
    }

    /// Records that nothing in an append file is needed any more. Called before the file is changed.
    pub(in crate::sqlite) fn tail_emptied(&self, which: usize) -> io::Result<()> {
        self.try_update(|state| state.tails[which].end = 0)
    }

    /// Requests a sync of the mark by the sync thread.
    pub(in crate::sqlite) fn sync_soon(&self) {
        let Some(shared) = &self.0 else { return };
        shared.syncing.wanted().is_soon = true;
        shared.syncing.changed.notify_one();
    }

    /// Syncs the mark now.
    pub(in crate::sqlite) fn sync(&self) -> io::Result<()> {
        match &self.0 {
            Some(shared) => {
                let file = shared.writer().file.try_clone()?;
                file.sync_data()
            }
            None => Ok(()),
        }
    }

    /// Ends the sync thread.
    pub(in crate::sqlite) fn close(&self) {
        let Some(shared) = &self.0 else { return };
        shared.syncing.wanted().is_closed = true;
        shared.syncing.changed.notify_one();
    }
}

impl MarkShared {
    fn writer(&self) -> MutexGuard<'_, MarkWriter> {
        self.writer.lock().expect(WHY)
    }
}

impl MarkWriter {
    fn update(&mut self, change: impl FnOnce(&mut MarkState)) -> io::Result<()> {
        change(&mut self.state);
        self.state.at = now_ms();
        self.sequence += 1;
        let bytes = self.state.to_bytes(self.sequence);
        let at = (self.sequence % 2) * SLOT_STRIDE as u64;
        debug_assert_eq!(bytes.len(), SLOT_BYTES);
        let written = self.file.write_all_at(&bytes, at);
        if let Err(error) = &written
            && !self.has_failed
        {
            tracing::error!(%error, "the mark of the store cannot be written: damage may go unnoticed");
        }
        self.has_failed = written.is_err();
        written
    }
}

/// The wall clock, for people who read when the store was last written. No rule depends on it.
#[expect(
    clippy::disallowed_methods,
    reason = "the store has no clock, and nothing is decided by this one"
)]
pub(in crate::sqlite) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl MarkSyncState {
    fn wanted(&self) -> MutexGuard<'_, SyncWanted> {
        self.wanted.lock().expect(WHY)
    }

    fn run(&self, file: &File) {
        loop {
            if self.is_dirty.swap(false, Ordering::Relaxed)
                && let Err(error) = file.sync_data()
            {
                tracing::warn!(%error, "the mark of the store could not be synced");
            }
            if !self.rest() {
                return;
            }
        }
    }

    /// Waits for at least a second, unless a sync is wanted soon, and then for a write. False: closed.
    fn rest(&self) -> bool {
        let is_over = |wanted: &mut SyncWanted| !wanted.is_soon && !wanted.is_closed;
        let (mut wanted, _) =
            self.changed.wait_timeout_while(self.wanted(), SYNC_INTERVAL, is_over).expect(WHY);
        while !wanted.is_closed && !wanted.is_soon && !self.is_dirty.load(Ordering::Relaxed) {
            wanted = self.changed.wait(wanted).expect(WHY);
        }
        wanted.is_soon = false;
        !wanted.is_closed
    }
}
