//! The journal's interface: numbered events, one list per execution.

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
    /// before this returns, and the future resolves once it is as durable as requested. Callers may continue
    /// to append without waiting. After a failure, every later append of that execution fails with
    /// [`StoreError::Conflict`] until a caller appends at the actual end.
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

    /// The same, with details of each execution, as far as a bounded amount of work finds them; the page names
    /// where to continue.
    fn search(&self, search: ExecutionSearch)
    -> BoxFuture<'static, Result<SearchPage, StoreError>>;

    /// The number of executions in a phase, counted up to `n_max`. Far cheaper than listing them.
    fn count(
        &self,
        phase: ExecutionPhase,
        n_max: usize,
    ) -> BoxFuture<'static, Result<usize, StoreError>>;

    /// What is known of an execution without reading its entries. None if it does not exist.
    fn overview(
        &self,
        execution: ExecutionId,
    ) -> BoxFuture<'static, Result<Option<ExecutionOverview>, StoreError>>;

    /// The number of executions of each caller in a phase.
    fn count_by_caller(
        &self,
        phase: ExecutionPhase,
    ) -> BoxFuture<'static, Result<Vec<(CallerName, u64)>, StoreError>>;

    /// The execution that asked a question, also after it was answered.
    fn asked_by(
        &self,
        question: QuestionId,
    ) -> BoxFuture<'static, Result<Option<ExecutionId>, StoreError>>;

    /// The earliest due time of a paused execution without a lease. A running execution has an actor that checks its
    /// own timers.
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

    /// Releases a lease.
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

    /// Approximate size of the used part of the disk space.
    fn bytes_used(&self) -> BoxFuture<'static, Result<u64, StoreError>>;

    /// Removes a finished execution and everything about it. False if there is none.
    fn delete_execution(
        &self,
        execution: ExecutionId,
    ) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// Whether there was such an execution that has been deleted. Only a limited number of the newest is recorded.
    fn was_forgotten(&self, execution: ExecutionId)
    -> BoxFuture<'static, Result<bool, StoreError>>;

    /// The unsettled loss of data, if any. A store detects this when it is opened: it refuses to open if it holds less
    /// than it acknowledged, until a person recovers what is left.
    fn data_loss(&self) -> BoxFuture<'static, Result<Option<DataLoss>, StoreError>>;

    /// Records that all unfinished executions were parked because of the loss. Synced.
    fn settle_data_loss(&self) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// The entries to append, and where.
#[derive(Debug, Clone)]
pub struct JournalAppend {
    /// The execution.
    pub execution: ExecutionId,
    /// The present last seq; 0 for a new execution. `entries` are numbered from the next.
    pub expected: Seq,
    /// The new entries.
    pub entries: Vec<Entry>,
    /// The execution's new list entry.
    pub standing: ExecutionSummary,
    /// The required durability.
    pub strength: WriteStrength,
}

/// Which executions to list.
#[derive(Debug, Clone)]
pub struct ListFilter {
    /// Only in one of these phases; empty for all.
    pub phases: Vec<ExecutionPhase>,
    /// Only executions of this caller.
    pub caller: Option<CallerName>,
    /// Only executions after this one in the list.
    pub after: Option<ExecutionId>,
    /// At most this many.
    pub n_max: usize,
}

/// An execution's entry in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedExecution {
    /// The execution.
    pub execution: ExecutionId,
    /// When its first entry was made.
    pub created: Timestamp,
    /// Its newest seq.
    pub last: Seq,
    /// Its summary.
    pub standing: ExecutionSummary,
}

/// A summary of an execution from an index, independent of its journal's length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionOverview {
    /// Its entry in the list.
    pub listed: ListedExecution,
    /// Whether it has ever asked a question.
    pub has_asked: bool,
}

/// When a finished execution began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedTimes {
    /// The execution.
    pub execution: ExecutionId,
    /// When its first entry was made.
    pub created: Timestamp,
    /// When its last entry was made.
    pub ended: Timestamp,
}
