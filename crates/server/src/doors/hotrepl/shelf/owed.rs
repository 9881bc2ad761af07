//! Entries that a journal is owed: a job of the catalogue may end in another process than the one that began it.
//!
//! What is owed is written down before anybody hears of the job, and struck out after its entry is written. An entry says
//! whose it is, so that a server that died between the two does not write it twice.

use super::{Doer, JobView, Shelf, ended_view};
use engine::Error;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lifecycle::{Event, ExecutionId, Outcome, Rejection, Seq, Timestamp};
use protocols::hotrepl::outbound::timestamp;
use protocols::hotrepl::wire::{ErrorEnvelope, JournalEntry, JournalKind};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use store::{Record, StoreError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Records of what is owed, by job.
const OWED: &str = "repl_owed";

/// Whose entry it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::doors::hotrepl) struct Owed {
    /// The session's journal.
    pub(in crate::doors::hotrepl) book: String,
    /// What the client called the request.
    pub(in crate::doors::hotrepl) id: String,
    /// The command.
    pub(in crate::doors::hotrepl) name: String,
}

impl Owed {
    /// The entry of a job that is over.
    pub(in crate::doors::hotrepl) fn entry(
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

impl Shelf {
    /// Writes down that a job's entry is owed.
    pub(in crate::doors::hotrepl) async fn owe(
        &self,
        job: &str,
        owed: &Owed,
    ) -> Result<(), StoreError> {
        let text = serde_json::to_string(owed).map_err(|e| StoreError::Other(e.to_string()))?;
        self.records.put(OWED, job, text, 0).await.map(drop)
    }

    /// A job's entry is written.
    pub(in crate::doors::hotrepl) async fn paid(&self, job: &str) {
        let struck = async {
            match self.records.get(OWED, job).await? {
                Some(record) => self.records.remove(OWED, job, record.version).await,
                None => Ok(()),
            }
        };
        if let Err(error) = struck.await {
            // Told again after the next start, and then found written.
            tracing::warn!(%error, "could not strike out a job's entry");
        }
    }

    /// Sees to the entries that an earlier process owed, as their jobs end.
    pub(in crate::doors::hotrepl) async fn pay_what_is_owed(&self) {
        let owed = self.records.all(OWED).await.unwrap_or_else(|error| {
            tracing::error!(%error, "could not read which jobs are under way");
            vec![]
        });
        // Those that this process knows it sees to itself.
        let earlier = owed.into_iter().filter(|record| self.job(&record.key, |_| ()).is_none());
        let mut open: FuturesUnordered<_> = earlier.map(|record| self.pay(record)).collect();
        while let Some(paid) = open.next().await {
            if let Err(error) = paid {
                tracing::error!(%error, "could not write the entry of a job");
            }
        }
    }

    async fn pay(&self, Record { key: job, value, .. }: Record) -> Result<(), StoreError> {
        let (owed, uuid) = (serde_json::from_str::<Owed>(&value), Uuid::try_parse(&job));
        if let (Ok(owed), Ok(uuid)) = (owed, uuid)
            && let Some((view, ended)) =
                self.see_through(&job, ExecutionId::from_uuid(uuid)).await?
            && !self.is_noted(&owed.book, &job).await?
        {
            let entry = owed.entry(view.duration_ms, view.error.as_ref(), timestamp(ended.0));
            self.note(&owed.book, &entry, Some(&job)).await;
        }
        self.paid(&job).await;
        Ok(())
    }

    /// Waits until a job of an earlier process is over. One that never began has no end.
    async fn see_through(
        &self,
        job: &str,
        execution: ExecutionId,
    ) -> Result<Option<(JobView, Timestamp)>, StoreError> {
        let seen = match self.engine.look_up(execution).await {
            Ok(seen) => seen,
            Err(Error::Rejected(Rejection::UnknownExecution(_))) => return Ok(None),
            Err(error) => return Err(StoreError::Other(error.to_string())),
        };
        let Some(origin) = seen.state.origin else { return Ok(None) };
        let begun = CancellationToken::new();
        begun.cancel();
        let so_far = Duration::from_millis(self.clock.now().ms_since(origin.at));
        let started = Instant::now().checked_sub(so_far).unwrap_or_else(Instant::now);
        self.resume_job(job, Doer::Execution(execution, begun), started);
        let Some((outcome, ended)) = self.end_of(execution).await? else { return Ok(None) };
        let view = JobView { duration_ms: ended.ms_since(origin.at), ..ended_view(outcome) };
        self.job_ended(job, view.clone());
        Ok(Some((view, ended)))
    }

    async fn end_of(
        &self,
        execution: ExecutionId,
    ) -> Result<Option<(Outcome, Timestamp)>, StoreError> {
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
