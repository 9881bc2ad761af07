//! Pending journal entries: a catalogue job may end in another process than the one that started it.
//!
//! A pending entry is recorded before a client learns of the job, and is removed after the entry is written. An entry
//! names its job, so that a server that stopped between the two does not write it twice.

use super::{JobView, JobWorker, ReplStore, ended_view};
use engine::Error;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lifecycle::{Event, ExecutionId, ExecutionOutcome, Rejection, Seq, Timestamp};
use protocols::hotrepl::outbound::timestamp;
use protocols::hotrepl::wire::{ErrorEnvelope, JobState, JournalEntry, JournalKind};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::{StoreError, StoredRecord};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The kind of the records of pending entries, whose key is the job.
const OWED: &str = "repl_owed";

/// The origin of the entry.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PendingEntry {
    /// The session's journal.
    pub(crate) book: String,
    /// The client's id of the request.
    pub(crate) id: String,
    /// The name of the command.
    pub(crate) name: String,
}

/// A job that an earlier process left.
struct OrphanedJob {
    job: String,
    /// The pending entry, if the job was written in JavaScript.
    guests: Option<PendingEntry>,
    /// None if it never began.
    under_way: Option<Result<UnderWay, StoreError>>,
}

struct UnderWay {
    owed: PendingEntry,
    execution: ExecutionId,
    began: Timestamp,
}

impl PendingEntry {
    /// Builds the entry of an ended job.
    pub(crate) fn entry(
        &self,
        duration_ms: u64,
        error: Option<&ErrorEnvelope>,
        timestamp: String,
    ) -> JournalEntry {
        JournalEntry {
            id: self.id.clone(),
            kind: JournalKind::Command,
            name: Some(self.name.clone()),
            code: None,
            success: error.is_none(),
            duration_ms,
            error_kind: error.map(|error| error.kind),
            timestamp,
        }
    }
}

impl ReplStore {
    /// Records that a job's entry is pending.
    pub(crate) async fn record_pending(
        &self,
        job: &str,
        owed: &PendingEntry,
    ) -> Result<(), StoreError> {
        let text = serde_json::to_string(owed).map_err(|e| StoreError::Other(e.to_string()))?;
        self.records.put(OWED, job, text, 0).await.map(drop)
    }

    /// Removes the record once a job's entry is written.
    pub(crate) async fn clear_pending(&self, job: &str) {
        let struck = async {
            match self.records.get(OWED, job).await? {
                Some(record) => self.records.remove(OWED, job, record.version).await,
                None => Ok(()),
            }
        };
        if let Err(error) = struck.await {
            // The entry is processed again after the next start and then found to be written.
            tracing::warn!(%error, "could not remove the record of a job's pending entry");
        }
    }

    /// Waits until the jobs that an earlier process left are known, which takes one read of the store.
    pub(crate) async fn is_taken_over(&self) {
        self.taken_over.cancelled().await;
    }

    /// Writes the entries that an earlier process left pending, as their jobs end.
    pub(crate) async fn resume_pending(&self) {
        // The guard releases all waiters even if this is stopped half-way.
        let taken_over = self.taken_over.clone().drop_guard();
        let owed = self.records.all(OWED).await.unwrap_or_else(|error| {
            tracing::error!(%error, "could not read the pending jobs");
            vec![]
        });
        // Jobs that this process already knows are handled by their own tasks.
        let earlier = owed.into_iter().filter(|record| self.job(&record.key, |_| ()).is_none());
        let mut left = Vec::new();
        for record in earlier {
            left.push(self.take_over(record).await);
        }
        drop(taken_over);
        let mut open: FuturesUnordered<_> =
            left.into_iter().map(|left| self.finish_pending(left)).collect();
        while let Some(paid) = open.next().await {
            if let Err(error) = paid {
                tracing::error!(%error, "could not write the entry of a job");
            }
        }
    }

    /// Takes over a job of an earlier process. One that never began has no end.
    async fn take_over(&self, StoredRecord { key: job, value, .. }: StoredRecord) -> OrphanedJob {
        let mut left = OrphanedJob { job, guests: None, under_way: None };
        let (Ok(owed), Ok(uuid)) =
            (serde_json::from_str::<PendingEntry>(&value), Uuid::try_parse(&left.job))
        else {
            return left;
        };
        let execution = ExecutionId::from_uuid(uuid);
        let began = match self.engine.look_up(execution).await {
            Ok(seen) => seen.state.origin.map(|origin| Ok(origin.at)),
            Err(Error::Rejected(Rejection::UnknownExecution(_))) => None,
            Err(error) => Some(Err(StoreError::Other(error.to_string()))),
        };
        if let Some(Ok(began)) = began {
            let begun = CancellationToken::new();
            begun.cancel();
            let so_far = Duration::from_millis(self.clock.now().ms_since(began));
            let started = Instant::now().checked_sub(so_far).unwrap_or_else(Instant::now);
            let doer = JobWorker::Execution(execution, begun);
            self.resume_job(&left.job, doer, started, owed.book.clone());
        }
        if began.is_none() {
            left.guests = Some(owed.clone());
        }
        left.under_way = began.map(|began| began.map(|began| UnderWay { owed, execution, began }));
        left
    }

    async fn finish_pending(
        &self,
        OrphanedJob { job, guests, under_way }: OrphanedJob,
    ) -> Result<(), StoreError> {
        if let Some(owed) = guests {
            self.finish_guest_job(&job, &owed).await?;
        }
        if let Some(under_way) = under_way {
            let UnderWay { owed, execution, began } = under_way?;
            if let Some((outcome, ended)) = self.end_of(execution).await? {
                let view = JobView { duration_ms: ended.ms_since(began), ..ended_view(outcome) };
                self.job_ended(&job, view.clone());
                if !self.is_noted(&owed.book, &job).await? {
                    let (took, error) = (view.duration_ms, view.error.as_ref());
                    let entry = owed.entry(took, error, timestamp(ended.0));
                    self.append_entry(&owed.book, &entry, Some(&job)).await;
                }
            }
        }
        self.clear_pending(&job).await;
        Ok(())
    }

    /// A JavaScript job ended with its process. Writes its outcome, unless one is stored already, and its entry.
    async fn finish_guest_job(&self, job: &str, owed: &PendingEntry) -> Result<(), StoreError> {
        let Some((kept, created)) = self.kept_job(job).await? else { return Ok(()) };
        let view = match kept.state {
            JobState::Running => {
                let view = self.left_job(kept, created);
                self.keep_job(job, &view).await?;
                view
            }
            JobState::Done | JobState::Failed | JobState::Cancelled => kept,
        };
        if !self.is_noted(&owed.book, job).await? {
            let entry = owed.entry(view.duration_ms, view.error.as_ref(), self.timestamp());
            self.append_entry(&owed.book, &entry, Some(job)).await;
        }
        Ok(())
    }

    async fn end_of(
        &self,
        execution: ExecutionId,
    ) -> Result<Option<(ExecutionOutcome, Timestamp)>, StoreError> {
        let mut entries = self.engine.follow(execution, Seq(0));
        while let Some(entry) = entries.next().await {
            let entry = entry.map_err(|fault| StoreError::Other(fault.to_string()))?;
            if let Event::Finished { outcome, .. } = entry.event {
                return Ok(Some((outcome, entry.at)));
            }
        }
        Ok(None)
    }
}
