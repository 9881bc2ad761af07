//! Reads executions: their entries, their state, and lists of them.

use crate::engine::Engine;
use crate::fault::{Error, Fault};
use futures_util::{Stream, StreamExt};
use lifecycle::{
    Entry, Event, ExecutionId, ExecutionOutcome, ExecutionPhase, Json, QuestionId, Rejection, Seq,
    State, Timestamp,
};
use store::{
    DataLoss, ExecutionOverview, ExecutionSearch, Journal, ListFilter, ListedExecution, SearchPage,
    StoreError,
};

/// Entries per read when an execution is looked up.
const ENTRIES_PER_READ_MAX: usize = 1_000;

/// The state of an execution according to its journal.
#[derive(Debug, Clone)]
pub struct ExecutionSnapshot {
    /// The id of the execution.
    pub execution: ExecutionId,
    /// Its state.
    pub state: State,
    /// The number of its newest entry.
    pub last: Seq,
    /// The time of its newest entry.
    pub changed: Timestamp,
}

impl ExecutionSnapshot {
    /// Reads a journal page by page. The newest entry is 0 if there is none.
    pub(crate) async fn read(
        journal: &dyn Journal,
        execution: ExecutionId,
    ) -> Result<Self, StoreError> {
        let mut snapshot =
            Self { execution, state: State::default(), last: Seq(0), changed: Timestamp(0) };
        loop {
            let entries = journal.read(execution, snapshot.last, ENTRIES_PER_READ_MAX).await?;
            let Some(last) = entries.last() else { return Ok(snapshot) };
            (snapshot.last, snapshot.changed) = (last.seq, last.at);
            entries.iter().for_each(|entry| snapshot.state.apply(entry.at, &entry.event));
            // A long journal must not block other tasks of this thread.
            tokio::task::consume_budget().await;
        }
    }
}

impl Engine {
    /// All entries after `after`, recorded and future ones, each once; ends with the execution.
    pub fn follow(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> impl Stream<Item = Result<Entry, Fault>> + Send + Unpin + 'static {
        let entries = self.shared.config.journal.follow(execution, after);
        entries.map(|entry| entry.map_err(Fault::from))
    }

    /// The present state of an execution.
    pub async fn look_up(&self, execution: ExecutionId) -> Result<ExecutionSnapshot, Error> {
        let snapshot = ExecutionSnapshot::read(&*self.shared.config.journal, execution).await?;
        match snapshot.last {
            Seq(0) => Err(Rejection::UnknownExecution(execution).into()),
            Seq(_) => Ok(snapshot),
        }
    }

    /// At most `n_max` entries of a journal after `after`.
    pub async fn entries(
        &self,
        execution: ExecutionId,
        after: Seq,
        n_max: usize,
    ) -> Result<Vec<Entry>, Fault> {
        Ok(self.shared.config.journal.read(execution, after, n_max).await?)
    }

    /// The last progress of the tool that an execution waits for, if there is any.
    pub fn reported(&self, execution: ExecutionId) -> Option<Json> {
        self.shared.reports.newest(execution)
    }

    /// A summary of an execution from an index, independent of its journal's length. Reads no entry.
    pub async fn overview(&self, execution: ExecutionId) -> Result<ExecutionOverview, Error> {
        let overview = self.shared.config.journal.overview(execution).await?;
        Ok(overview.ok_or(Rejection::UnknownExecution(execution))?)
    }

    /// Waits until the execution has ended. If it already has, only the last entry is read.
    pub async fn outcome(&self, execution: ExecutionId) -> Result<ExecutionOutcome, Error> {
        let listed = self.overview(execution).await?.listed;
        let n_before = match listed.standing.phase {
            ExecutionPhase::Finished => listed.last.0.saturating_sub(1),
            ExecutionPhase::Unborn
            | ExecutionPhase::Running
            | ExecutionPhase::Paused
            | ExecutionPhase::Parked => listed.last.0,
        };
        let mut entries = self.follow(execution, Seq(n_before));
        while let Some(entry) = entries.next().await {
            if let Event::Finished { outcome, .. } = entry?.event {
                return Ok(outcome);
            }
        }
        Err(Rejection::UnknownExecution(execution).into())
    }

    /// The execution that asked `question`, answered or not.
    pub async fn asked_by(&self, question: QuestionId) -> Result<ExecutionId, Error> {
        let asked_by = self.shared.config.journal.asked_by(question).await?;
        Ok(asked_by.ok_or(Rejection::UnknownQuestion(question))?)
    }

    /// Executions that match, newest first.
    pub async fn list_executions(&self, filter: ListFilter) -> Result<Vec<ListedExecution>, Fault> {
        Ok(self.shared.config.journal.list_executions(filter).await?)
    }

    /// A page of the executions that match, newest first, with their outcomes and called tools.
    pub async fn search(&self, search: ExecutionSearch) -> Result<SearchPage, Fault> {
        Ok(self.shared.config.journal.search(search).await?)
    }

    /// Approximate size of the journal on the disk.
    pub async fn bytes_used(&self) -> Result<u64, Fault> {
        Ok(self.shared.config.journal.bytes_used().await?)
    }

    /// The unsettled data loss of the store, if any.
    pub async fn data_loss(&self) -> Result<Option<DataLoss>, Fault> {
        Ok(self.shared.config.journal.data_loss().await?)
    }

    /// The number of executions in a phase, counted up to `n_max`.
    pub async fn count(&self, phase: ExecutionPhase, n_max: usize) -> Result<usize, Fault> {
        Ok(self.shared.config.journal.count(phase, n_max).await?)
    }
}
