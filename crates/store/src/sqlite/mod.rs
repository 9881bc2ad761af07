//! The store in one directory: SQLite for the journal and the records, files for the blobs.
//!
//! ```text
//! append ──queue──> writer ──one transaction for all that waits──> acknowledged, followers woken
//!        ──append file, for a complete execution──> acknowledged; inserted a little later
//! read   ──queue──> readers, a connection each
//! follow ──queue──> page readers, likewise; a page at a time for each follower
//! ```

mod append_log;
mod checkpoint;
#[doc(hidden)]
pub mod decoders;
mod directory_lock;
mod entry_cache;
mod files;
mod follow;
mod format;
mod history;
mod leases;
mod mark;
mod opening;
mod pool;
mod query;
mod record_cache;
mod recovery;
mod rendered;
mod rescue;
mod row;
mod seal;
mod search;
mod subscriptions;
mod table_walk;
mod tables;
mod traits;
mod trouble;
mod wal;
mod wal_preallocator;
mod work_queue;
mod writer;

#[cfg(test)]
mod tests;

pub use directory_lock::{DirectoryOwner, directory_owner, lock_file, owner_of};
pub use format::OpenError;
pub use mark::BootId;
pub use recovery::{MarkReport, RecoveryReport, StoreReport};
pub use table_walk::RowReport;

use crate::{StoreError, StoredRecord};
use append_log::AppendLog;
use checkpoint::{CheckpointScheduler, LogMax};
use directory_lock::DirectoryLock;
use entry_cache::EntryCache;
use files::BlobFolder;
use format::{CheckExtent, DurabilityMode, OpenDatabase};
use futures_util::future::BoxFuture;
use leases::LeaseTable;
use lifecycle::Timestamp;
use mark::{LogMarker, StoreMark};
use opening::OpeningStore;
use pool::ThreadPool;
use record_cache::RecordCache;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use subscriptions::SubscriptionTable;
use tables::{TableWrite, Tables};
use wal_preallocator::WalPreallocator;
use writer::{FollowerIndex, JournalThread, WriteLine, WriteOutcome};

/// Reads are short; more threads would wait for the same disk.
const READERS_MAX: usize = 2;

/// Page reads of followers have a separate thread, so that short queries do not wait for them. Each follower requests
/// one page at a time, and requests are served in order.
const PAGE_READERS_MAX: usize = 1;

/// A cheap handle to an open data directory. The directory is released by [`close`](Self::close), or
/// when the last handle and the last follower are dropped.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<SqliteInner>,
}

struct SqliteInner {
    writes: Arc<WriteLine>,
    readers: ThreadPool<Connection>,
    page_readers: ThreadPool<Connection>,
    files: ThreadPool<BlobFolder>,
    watchers: Arc<SubscriptionTable>,
    recent: Arc<EntryCache>,
    remembered: Arc<RecordCache>,
    leases: Arc<Mutex<LeaseTable>>,
    running: Mutex<Option<StoreThreads>>,
}

/// The threads of an open store; the fields are dropped in this order.
struct StoreThreads {
    writer: JoinHandle<()>,
    others: Vec<JoinHandle<()>>,
    owner: DirectoryLock,
    temporary: Option<tempfile::TempDir>,
}

impl SqliteStore {
    /// Opens a data directory, and creates it if necessary. Blocks for some milliseconds.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        Self::open_in_boot(dir, BootId::current())
    }

    /// The same, with a given id of the kernel's run.
    pub fn open_in_boot(dir: &Path, boot: BootId) -> Result<Self, OpenError> {
        Self::start(dir, DurabilityMode::AsAsked, None, boot)
    }

    /// A store in a temporary directory that is removed with it. Nothing in it is ever synced,
    /// because nothing outlives the process.
    pub fn temporary() -> Result<Self, OpenError> {
        let dir =
            tempfile::Builder::new().prefix("airlock-").tempdir().map_err(StoreError::from)?;
        let path = dir.path().join("data");
        Self::start(&path, DurabilityMode::Nothing, Some(dir), BootId::UNKNOWN)
    }

    /// The records of one kind in a data directory, read without owning it: a server may be using it.
    /// None if nothing was ever stored; the directory is not created. Blocks for a millisecond.
    pub fn read_records(dir: &Path, kind: &str) -> Result<Vec<StoredRecord>, OpenError> {
        match format::read_header(&dir.join(format::FILE), format::STEPS)? {
            Some(conn) => Ok(query::records(&conn, kind)?),
            None => Ok(vec![]),
        }
    }

    /// Checks a data directory that no process owns: what is missing although it was acknowledged, and what can be
    /// read. Changes nothing in it. Reads all of it.
    pub fn check_directory(dir: &Path) -> Result<StoreReport, OpenError> {
        recovery::check_directory(dir, BootId::current())
    }

    /// Makes a data directory usable that holds less than was acknowledged, or is damaged. The files are first copied to a
    /// backup. Unfinished executions are parked at the next start.
    pub fn recover(dir: &Path, now: Timestamp) -> Result<RecoveryReport, OpenError> {
        recovery::recover(dir, now)
    }

    fn start(
        dir: &Path,
        durability: DurabilityMode,
        temporary: Option<tempfile::TempDir>,
        boot: BootId,
    ) -> Result<Self, OpenError> {
        let owner = DirectoryLock::take(dir)?;
        let path = dir.join(format::FILE);
        let opening = match durability {
            DurabilityMode::AsAsked => Some(OpeningStore::examine(dir, boot)?),
            DurabilityMode::Nothing => None,
        };
        let is_unmarked = opening.as_ref().is_some_and(OpeningStore::is_unmarked);
        let checked = if is_unmarked { CheckExtent::Whole } else { CheckExtent::IfSmall };
        let OpenDatabase { mut conn, is_changed } =
            format::open(&path, format::STEPS, durability, checked)?;
        let folder = BlobFolder::open(dir)?;
        let page_bytes = format::page_bytes(&conn)?;
        let room = WalPreallocator::new(&path, page_bytes);
        let (checkpoints, log_thread) =
            CheckpointScheduler::start(&mut conn, path.clone(), LogMax::for_page_size(page_bytes))?;
        let (tail, left) = AppendLog::open(dir)?;
        let ledger = Tables::new(conn);
        ledger.bring_back(&left)?;
        let (mut marker, mark_thread) = match opening {
            Some(opening) => opening.begin_mark(&ledger.conn, &checkpoints, page_bytes)?,
            None => (LogMarker::new(StoreMark::none(), &path, page_bytes), None),
        };
        if is_changed {
            // The header in the file contains the new version, so that read-only processes see it too.
            checkpoint::empty_log(&ledger.conn, &mut marker)?;
        }
        tail.clear(marker.mark().clone())?;
        let open = move || format::open_reader(&path);
        let (readers, mut others) = ThreadPool::start("store-read", READERS_MAX, open.clone())?;
        let (page_readers, threads) = ThreadPool::start("store-pages", PAGE_READERS_MAX, open)?;
        others.extend(threads);
        let (files, threads) = ThreadPool::start("store-files", 1, move || Ok(folder.clone()))?;
        others.extend(threads);
        others.push(log_thread);
        others.extend(mark_thread);
        let watchers = Arc::new(SubscriptionTable::new());
        let recent = Arc::<EntryCache>::default();
        let remembered = Arc::<RecordCache>::default();
        let writer = JournalThread {
            ledger,
            followers: FollowerIndex::new(&watchers, &recent),
            remembered: Arc::clone(&remembered),
            tail: Arc::new(tail),
            unsorted: Vec::new(),
            n_marked: checkpoints.n_commits(),
            marker,
            checkpoints,
            room,
            durability,
            syncing: None,
        };
        let writes = Arc::new(WriteLine::new(&writer));
        let line = Arc::clone(&writes);
        let writer = std::thread::Builder::new()
            .name("store-write".into())
            .spawn(move || line.run(writer))
            .map_err(StoreError::from)?;
        let running = Mutex::new(Some(StoreThreads { writer, others, owner, temporary }));
        let leases = Arc::default();
        let inner = SqliteInner {
            writes,
            readers,
            page_readers,
            files,
            watchers,
            recent,
            remembered,
            leases,
            running,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Sets a note about this process, such as its URL, for processes that find the directory in use.
    pub fn set_owner_note(&self, note: &str) -> Result<(), StoreError> {
        let running = self.inner.running();
        running.as_ref().ok_or(StoreError::Closed)?.owner.set_note(note)
    }

    /// Records that a client verb started this process, so that an operator's server may replace it.
    pub fn mark_client_started(&self) -> Result<(), StoreError> {
        let running = self.inner.running();
        running.as_ref().ok_or(StoreError::Closed)?.owner.mark_client_started()
    }

    /// Writes the queued writes, checkpoints the log, and releases the directory. Other handles
    /// return [`StoreError::Closed`] from now on.
    pub async fn close(self) {
        let Some(running) = self.inner.shut() else { return };
        let (joined, done) = tokio::sync::oneshot::channel();
        // A plain thread, not a runtime's: closing must work after the runtime has ended, too.
        let last = std::thread::Builder::new().name("store-close".into()).spawn(move || {
            running.join();
            let _ = joined.send(());
        });
        match last {
            Ok(_) => drop(done.await),
            Err(error) => tracing::warn!(%error, "the store was closed without waiting"),
        }
    }

    /// Performs a write, and converts the result with `told`.
    fn write<T: Send + 'static>(
        &self,
        write: Result<TableWrite, StoreError>,
        told: fn(u64) -> T,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        match write.map(|write| self.inner.writes.write(write)) {
            Ok(WriteOutcome::Done(verdict)) => Box::pin(std::future::ready(verdict.map(told))),
            Ok(WriteOutcome::InLine(verdict)) => {
                Box::pin(async move { verdict.await.map_err(|_| StoreError::Closed)?.map(told) })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn read<R: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<R, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<R, StoreError>> {
        self.inner.query(move |conn| query(conn))
    }

    fn leases(&self) -> MutexGuard<'_, LeaseTable> {
        self.inner.leases.lock().expect("nothing panics while it holds this lock")
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl SqliteInner {
    fn running(&self) -> MutexGuard<'_, Option<StoreThreads>> {
        self.running.lock().expect("nothing panics while it holds this lock")
    }

    /// Queries the tables, after all earlier writes are in them.
    fn query<R: Send + 'static>(
        self: &Arc<Self>,
        query: impl FnOnce(&mut Connection) -> Result<R, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<R, StoreError>> {
        self.query_on(|inner| &inner.readers, query)
    }

    /// Reads a page for a follower.
    fn query_page<R: Send + 'static>(
        self: &Arc<Self>,
        query: impl FnOnce(&mut Connection) -> Result<R, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<R, StoreError>> {
        self.query_on(|inner| &inner.page_readers, query)
    }

    fn query_on<R: Send + 'static>(
        self: &Arc<Self>,
        pool: fn(&Self) -> &ThreadPool<Connection>,
        query: impl FnOnce(&mut Connection) -> Result<R, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<R, StoreError>> {
        let Some(sorted) = self.writes.sorted() else { return pool(self).run(query) };
        let inner = Arc::clone(self);
        Box::pin(async move {
            sorted.await.map_err(|_| StoreError::Closed)??;
            pool(&inner).run(query).await
        })
    }

    /// Closes the queues; items that wait are still processed.
    fn shut(&self) -> Option<StoreThreads> {
        self.writes.close();
        self.readers.close();
        self.page_readers.close();
        self.files.close();
        self.watchers.close();
        self.remembered.close();
        self.running().take()
    }
}

impl Drop for SqliteInner {
    fn drop(&mut self) {
        if let Some(running) = self.shut() {
            running.join();
        }
    }
}

impl StoreThreads {
    fn join(self) {
        let Self { writer, others, owner, temporary } = self;
        for thread in others.into_iter().chain([writer]) {
            if thread.join().is_err() {
                tracing::error!("a thread of the store panicked");
            }
        }
        // First the files, then the lock on them.
        drop(temporary);
        drop(owner);
    }
}
