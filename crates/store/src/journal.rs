//! The journal's contract: numbered events, one list per execution.

use crate::{DataLoss, ExecutionSearch, SearchPage, StoreError};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use lifecycle::{
    CallerName, Entry, ExecutionId, ExecutionPhase, ExecutionSummary, QuestionId, Seq, Timestamp,
    WriteStrength,
};

/// Numbered events, one list per execution.
pub trait Journal: Send + Sync {
    /// Appends all entries or none. The order of calls is the order of writes: the append is queued
    /// before this returns, and the future resolves once it is as strong as asked. Callers may go on
    /// appending without waiting; after a failure every later append of that execution fails with
    /// [`StoreError::Conflict`] until somebody appends at the real end.
    fn append(&self, append: JournalAppend) -> BoxFuture<'static, Result<(), StoreError>>;

    /// At most `n_max` entries after `after`, in order, and fewer where they are large; empty when there are none (yet).
    fn read(
        &self,
        execution: ExecutionId,
        after: Seq,
        n_max: usize,
    ) -> BoxFuture<'static, Result<Vec<Entry>, StoreError>>;

    /// Every entry after `after`, those written and those to come, each once, in order. Ends after
    /// the entry that finishes the execution. Wakes on commit, never polls.
    fn follow(
        &self,
        execution: ExecutionId,
        after: Seq,
    ) -> BoxStream<'static, Result<Entry, StoreError>>;

    /// Executions that match, newest first (by creation, then id).
    fn list_executions(
        &self,
        filter: ListFilter,
    ) -> BoxFuture<'static, Result<Vec<ListedExecution>, StoreError>>;

    /// The same with what happened in them, as far as a bounded piece of work finds it; the page says where to continue.
    fn search(&self, search: ExecutionSearch)
    -> BoxFuture<'static, Result<SearchPage, StoreError>>;

    /// How many executions are in a phase, counted up to `n_max`. Far cheaper than their list.
    fn count(
        &self,
        phase: ExecutionPhase,
        n_max: usize,
    ) -> BoxFuture<'static, Result<usize, StoreError>>;

    /// What can be known of an execution without reading its entries. None where there is no such execution.
    fn overview(
        &self,
        execution: ExecutionId,
    ) -> BoxFuture<'static, Result<Option<ExecutionOverview>, StoreError>>;

    /// How many executions each caller has in a phase.
    fn count_by_caller(
        &self,
        phase: ExecutionPhase,
    ) -> BoxFuture<'static, Result<Vec<(CallerName, u64)>, StoreError>>;

    /// The execution that asked a question, also after it was answered.
    fn asked_by(
        &self,
        question: QuestionId,
    ) -> BoxFuture<'static, Result<Option<ExecutionId>, StoreError>>;

    /// The earliest time at which something is due in a paused execution that nobody holds a lease
    /// on. What runs has somebody who looks at the clock.
    fn next_due(&self) -> BoxFuture<'static, Result<Option<(Timestamp, ExecutionId)>, StoreError>>;

    /// Takes or renews the right to act for an execution until `until`. False when another holder's
    /// lease has not run out at `now`.
    fn lease(
        &self,
        execution: ExecutionId,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// Gives a lease back.
    fn release(
        &self,
        execution: ExecutionId,
        holder: &str,
    ) -> BoxFuture<'static, Result<(), StoreError>>;

    /// At most `n_max` finished executions, oldest first (by creation, then id), after this one.
    fn finished(
        &self,
        after: Option<&FinishedTimes>,
        n_max: usize,
    ) -> BoxFuture<'static, Result<Vec<FinishedTimes>, StoreError>>;

    /// How much of the disk holds something, about.
    fn bytes_used(&self) -> BoxFuture<'static, Result<u64, StoreError>>;

    /// Removes a finished execution and everything about it. False when there is none.
    fn delete_execution(
        &self,
        execution: ExecutionId,
    ) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// Whether there was such an execution that is forgotten now. Of very many, only the newest are remembered.
    fn was_forgotten(&self, execution: ExecutionId)
    -> BoxFuture<'static, Result<bool, StoreError>>;

    /// What the store lost, or may have lost, that nobody has settled yet. A store detects this when it is opened: it
    /// refuses to open where less is there than it acknowledged, until a person recovers what is left.
    fn data_loss(&self) -> BoxFuture<'static, Result<Option<DataLoss>, StoreError>>;

    /// Records that all unfinished executions are parked because of the loss. Synced.
    fn settle_data_loss(&self) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// What to append, and where it must fit.
#[derive(Debug, Clone)]
pub struct JournalAppend {
    /// Whose journal.
    pub execution: ExecutionId,
    /// The last seq there now; 0 for a new execution. `entries` are numbered from the next.
    pub expected: Seq,
    /// What to append.
    pub entries: Vec<Entry>,
    /// The execution's new line in the list.
    pub standing: ExecutionSummary,
    /// How surely.
    pub strength: WriteStrength,
}

/// Which executions to list.
#[derive(Debug, Clone)]
pub struct ListFilter {
    /// Only in one of these phases; empty for all.
    pub phases: Vec<ExecutionPhase>,
    /// Only this caller's.
    pub caller: Option<CallerName>,
    /// Only those that come after this one in the list.
    pub after: Option<ExecutionId>,
    /// At most this many.
    pub n_max: usize,
}

/// An execution's line in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedExecution {
    /// Which.
    pub execution: ExecutionId,
    /// When its first entry was made.
    pub created: Timestamp,
    /// Its newest seq.
    pub last: Seq,
    /// Where it stands.
    pub standing: ExecutionSummary,
}

/// What an index says of an execution, however long its journal is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionOverview {
    /// Its line in the list.
    pub listed: ListedExecution,
    /// Whether it ever asked a question.
    pub has_asked: bool,
}

/// When a finished execution began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedTimes {
    /// Which.
    pub execution: ExecutionId,
    /// When its first entry was made.
    pub created: Timestamp,
    /// When its last entry was made.
    pub ended: Timestamp,
}
