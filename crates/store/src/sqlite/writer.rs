//! The only writer: takes all queued writes, performs them in one transaction, then acknowledges them.

use super::append_log::AppendLog;
use super::checkpoint::CheckpointScheduler;
use super::entry_cache::EntryCache;
use super::format::DurabilityMode;
use super::history;
use super::mark::{LogMarker, StoreMark, WalCommit};
use super::record_cache::RecordCache;
use super::subscriptions::SubscriptionTable;
use super::tables::{TableWrite, Tables, WriteRefused};
use super::wal_preallocator::WalPreallocator;
use super::work_queue::{QueueClosed, QueueLimits, WorkQueue};
use crate::StoreError;
use lifecycle::{Entry, ExecutionId, Seq};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Maximum number of unwritten items. A caller that waits for each append has at most one in here. Only callers that do
/// not wait can fill the queue: their writes are then rejected, before memory runs out.
const UNWRITTEN_MAX: QueueLimits = QueueLimits { items: 65_536, bytes: 256 << 20 };

/// Maximum size of a transaction: a larger one would delay its callers too much.
const BATCH_MAX: QueueLimits = QueueLimits { items: 1_024, bytes: 8 << 20 };

/// A larger execution is written by the writer's thread: it would block the caller's thread for too long.
const TAIL_EXECUTION_BYTES_MAX: usize = 64 << 10;

/// A write, and where its result goes.
pub(super) struct WriteJob {
    write: TableWrite,
    /// None if no caller waits.
    done: Option<oneshot::Sender<WriteVerdict>>,
}

type WriteVerdict = Result<u64, StoreError>;

/// The outcome of a write.
pub(super) enum WriteOutcome {
    Done(WriteVerdict),
    InLine(oneshot::Receiver<WriteVerdict>),
}

/// The queue of writes.
pub(super) struct WriteLine {
    line: WorkQueue<WriteJob>,
    tail: Arc<AppendLog>,
    followers: FollowerIndex,
}

impl WriteLine {
    pub(super) fn new(writer: &JournalThread) -> Self {
        let (tail, followers) = (Arc::clone(&writer.tail), writer.followers.clone());
        Self { line: WorkQueue::new(UNWRITTEN_MAX), tail, followers }
    }

    /// Writes to an append file, or queues the write; the future resolves when it is written.
    pub(super) fn write(&self, mut write: TableWrite) -> WriteOutcome {
        if self.lay_down(&mut write) {
            return WriteOutcome::Done(Ok(0));
        }
        WriteOutcome::InLine(self.put_in_line(write))
    }

    /// Resolves when all that is written can be read; none if it already can.
    pub(super) fn sorted(&self) -> Option<oneshot::Receiver<WriteVerdict>> {
        self.has_unsorted().then(|| self.put_in_line(TableWrite::Nothing))
    }

    /// Whether something is written that is not in the tables yet.
    pub(super) fn has_unsorted(&self) -> bool {
        self.tail.has_unsorted()
    }

    fn put_in_line(&self, write: TableWrite) -> oneshot::Receiver<WriteVerdict> {
        let (done, verdict) = oneshot::channel();
        let bytes = write.bytes();
        if let Err((job, refused)) = self.line.join(bytes, WriteJob { write, done: Some(done) }) {
            job.send_verdict(Err(match refused {
                QueueClosed::Closed => StoreError::Closed,
                QueueClosed::Full => StoreError::Other("too much waits to be written".into()),
            }));
        }
        verdict
    }

    /// Writes complete executions to an append file, the fastest path. False: `write` is unchanged.
    fn lay_down(&self, write: &mut TableWrite) -> bool {
        let is_small = write.bytes() <= TAIL_EXECUTION_BYTES_MAX;
        let TableWrite::Append(rows) = write else { return false };
        if !is_small || !rows.is_whole() {
            return false;
        }
        let whole = rows.take_whole();
        let Some(which) = self.tail.append_execution(&whole) else {
            rows.take_back(whole);
            return false;
        };
        let (execution, expected, last) = (rows.execution, rows.expected, rows.last());
        self.followers.publish_entries(execution, expected, last, rows.take_entries());
        // If the queue is closed, the execution remains in its file, and is found when the store is opened again.
        self.line.join_quietly(WriteJob { write: TableWrite::Sort(whole, which), done: None });
        true
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(&self, mut writer: JournalThread) {
        let _abandon = AbandonOnDrop(self, writer.marker.mark().clone());
        let mut jobs = Vec::new();
        while self.line.wait() {
            self.tail.turn();
            jobs.append(&mut writer.unsorted);
            self.line.take_now(BATCH_MAX, &mut jobs);
            writer.write_all(&mut jobs);
            self.tail.set_stuck(!writer.unsorted.is_empty());
            writer.tidy_up();
        }
        writer.finish();
    }

    pub(super) fn close(&self) {
        self.line.close();
    }
}

impl WriteJob {
    fn send_verdict(self, verdict: WriteVerdict) {
        // The caller may be gone; the write remains valid.
        drop(self.done.map(|done| done.send(verdict)));
    }
}

/// The followers and caches that are notified of writes.
#[derive(Clone)]
pub(super) struct FollowerIndex {
    pub(super) watchers: Arc<SubscriptionTable>,
    pub(super) recent: Arc<EntryCache>,
}

impl FollowerIndex {
    pub(super) fn new(watchers: &Arc<SubscriptionTable>, recent: &Arc<EntryCache>) -> Self {
        Self { watchers: Arc::clone(watchers), recent: Arc::clone(recent) }
    }

    fn publish_entries(
        &self,
        execution: ExecutionId,
        expected: Seq,
        last: Seq,
        entries: impl Iterator<Item = (Entry, usize)>,
    ) {
        self.recent.insert_entries(execution, expected, entries);
        self.watchers.wake(execution, last);
    }
}

/// The writer's thread.
pub(super) struct JournalThread {
    pub(super) ledger: Tables,
    pub(super) followers: FollowerIndex,
    pub(super) remembered: Arc<RecordCache>,
    pub(super) tail: Arc<AppendLog>,
    /// Failed insertions. They are retried with the next write; the append file holds them meanwhile.
    pub(super) unsorted: Vec<WriteJob>,
    pub(super) checkpoints: CheckpointScheduler,
    /// Records in the mark where each commit ended.
    pub(super) marker: LogMarker,
    /// The number of commits that the mark contains.
    pub(super) n_marked: u32,
    /// Preallocates the log for synced commits.
    pub(super) room: WalPreallocator,
    pub(super) durability: DurabilityMode,
    /// The present sync setting of SQLite; `None` before the first.
    pub(super) syncing: Option<bool>,
}

impl JournalThread {
    /// One transaction for all writes; if that fails, one for each, so that each gets its own result.
    fn write_all(&mut self, jobs: &mut Vec<WriteJob>) {
        match self.transact(jobs.iter().map(|job| &job.write)) {
            Ok(verdicts) => self.send_verdicts(jobs, verdicts),
            Err(error) if jobs.len() == 1 => self.send_verdicts(jobs, vec![Err(error.into())]),
            Err(_) => {
                for job in jobs.drain(..) {
                    let verdict = match self.transact(std::iter::once(&job.write)) {
                        Ok(mut verdicts) => verdicts.swap_remove(0),
                        Err(error) => Err(error.into()),
                    };
                    self.send_verdicts(&mut vec![job], vec![verdict]);
                }
            }
        }
    }

    /// Housekeeping after the writes are acknowledged.
    fn tidy_up(&mut self) {
        self.checkpoints.after_commit(&self.ledger.conn, &mut self.marker);
        if self.syncing == Some(true) {
            self.room.make(self.checkpoints.log_pages());
        }
    }

    fn send_verdicts(&mut self, jobs: &mut Vec<WriteJob>, verdicts: Vec<WriteVerdict>) {
        for (mut job, verdict) in jobs.drain(..).zip(verdicts) {
            match (&mut job.write, verdict) {
                (TableWrite::Sort(..), Err(_)) => self.unsorted.push(job),
                // Reads that waited for this find the present state.
                (TableWrite::Nothing, _) => job.send_verdict(Ok(0)),
                (write, verdict) => {
                    self.publish(write, &verdict);
                    job.send_verdict(verdict);
                }
            }
        }
    }

    /// Notifies followers and caches of a write.
    fn publish(&self, write: &mut TableWrite, verdict: &WriteVerdict) {
        match (write, verdict) {
            (TableWrite::Append(rows), Ok(_)) => {
                let (execution, expected, last) = (rows.execution, rows.expected, rows.last());
                self.followers.publish_entries(execution, expected, last, rows.take_entries());
            }
            (TableWrite::Sort(_, which), Ok(_)) => self.tail.sorted(*which),
            (TableWrite::Forget(execution), Ok(_)) => {
                self.followers.recent.remove_execution(*execution)
            }
            // Regardless of the outcome: the cache must not be older than the table.
            (TableWrite::Put { kind, record }, _) => {
                self.remembered.remove_record(kind, &record.key)
            }
            (TableWrite::Remove { kind, key, .. }, _) => self.remembered.remove_record(kind, key),
            _ => {}
        }
    }

    /// Writes all or nothing, except that a rejected job does not affect the others.
    fn transact<'a>(
        &mut self,
        writes: impl Iterator<Item = &'a TableWrite> + Clone,
    ) -> Result<Vec<WriteVerdict>, rusqlite::Error> {
        let is_synced = writes.clone().any(TableWrite::synced);
        self.sync_if(is_synced)?;
        let done = self.attempt(writes);
        if done.is_err() {
            self.undo();
        }
        // Before the commit is acknowledged.
        self.mark_commit(is_synced);
        done
    }

    fn mark_commit(&mut self, is_synced: bool) {
        let n_commits = self.checkpoints.n_commits();
        if n_commits == self.n_marked {
            return; // nothing was written
        }
        self.n_marked = n_commits;
        let frames = u32::try_from(self.checkpoints.log_pages()).unwrap_or(0);
        self.marker.committed(WalCommit { frames, is_synced });
    }

    /// Closes the database: its log is checkpointed, and the mark records it.
    fn finish(mut self) {
        let conn = &self.ledger.conn;
        let epoch = match self.marker.mark().state() {
            // A copy of an open database then has an earlier epoch than the closed one.
            Some(_) => conn
                .execute_batch("PRAGMA synchronous = FULL")
                .map_err(StoreError::from)
                .and_then(|()| history::raise_epoch(conn)),
            None => Ok(None),
        };
        match epoch {
            Ok(Some(epoch)) => {
                self.mark_commit(true);
                self.marker.mark().update(|state| state.epoch = epoch);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "could not record that the store was closed"),
        }
        self.checkpoints.finish(&self.ledger.conn, &mut self.marker);
    }

    fn attempt<'a>(
        &mut self,
        writes: impl Iterator<Item = &'a TableWrite> + Clone,
    ) -> Result<Vec<WriteVerdict>, rusqlite::Error> {
        #[cfg(test)]
        for write in writes.clone() {
            if let TableWrite::Trouble(pragma) = write {
                self.ledger.conn.execute_batch(pragma)?;
            }
        }
        self.ledger.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut verdicts = Vec::new();
        for write in writes {
            verdicts.push(match self.ledger.write(write) {
                Ok(answer) => Ok(answer),
                Err(WriteRefused::Refused(why)) => Err(why),
                Err(WriteRefused::Broken(error)) => return Err(error),
            });
        }
        self.ledger.conn.prepare_cached("COMMIT")?.execute([])?;
        Ok(verdicts)
    }

    fn undo(&mut self) {
        self.ledger.unlearn();
        // SQLite has ended the transaction itself if the error was grave.
        if !self.ledger.conn.is_autocommit()
            && let Err(error) = self.ledger.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "could not undo a transaction");
        }
    }

    /// A commit is visible to readers only once it is as durable as its strictest job requires.
    fn sync_if(&mut self, synced: bool) -> Result<(), rusqlite::Error> {
        if self.durability == DurabilityMode::Nothing || self.syncing == Some(synced) {
            return Ok(());
        }
        let level = if synced { "FULL" } else { "NORMAL" };
        self.ledger.conn.execute_batch(&format!("PRAGMA synchronous = {level}"))?;
        self.syncing = Some(synced);
        Ok(())
    }
}

/// When the writer's thread ends for any reason, all waiting callers receive an error.
struct AbandonOnDrop<'a>(&'a WriteLine, StoreMark);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.1.close();
        self.0.line.abandon();
    }
}
