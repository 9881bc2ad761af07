//! Searches executions by start time, outcome and called tools.

use crate::{ListFilter, ListedExecution};
use lifecycle::{ExecutionId, FailureCode, Timestamp, ToolPath, ToolPattern};

/// How a finished execution ended, without its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeKind {
    /// It returned a value.
    Completed,
    /// It failed, with this code.
    Failed(FailureCode),
    /// It was cancelled.
    Cancelled,
}

/// The outcome that a search filters by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeFilter {
    /// Executions that returned.
    Completed,
    /// Executions that failed, for any reason.
    Failed,
    /// Executions that were cancelled.
    Cancelled,
}

impl OutcomeFilter {
    /// Whether the filter accepts an outcome.
    pub const fn matches(self, outcome: OutcomeKind) -> bool {
        matches!(
            (self, outcome),
            (Self::Completed, OutcomeKind::Completed)
                | (Self::Failed, OutcomeKind::Failed(_))
                | (Self::Cancelled, OutcomeKind::Cancelled)
        )
    }
}

/// Which executions to search for. All conditions must hold.
#[derive(Debug, Clone)]
pub struct ExecutionSearch {
    /// Phase, caller, and the range of the page.
    pub listed: ListFilter,
    /// Only executions that began then or later.
    pub since: Option<Timestamp>,
    /// Only executions with this outcome.
    pub outcome: Option<OutcomeFilter>,
    /// Only executions that called a matching tool.
    pub tool: Option<ToolPattern>,
}

impl From<ListFilter> for ExecutionSearch {
    fn from(listed: ListFilter) -> Self {
        Self { listed, since: None, outcome: None, tool: None }
    }
}

/// Details from an execution's entries that its list entry does not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionDetails {
    /// How it ended; none before its end.
    pub outcome: Option<OutcomeKind>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// The active time that it used.
    pub active_ms: Option<u64>,
    /// The first tools that it called, without duplicates.
    pub tools: Vec<ToolPath>,
}

/// An execution that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// Its list entry.
    pub listed: ListedExecution,
    /// Its outcome and its tools.
    pub details: ExecutionDetails,
}

/// A page of search results, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// The results; fewer than requested if the search reached its work limit.
    pub hits: Vec<SearchHit>,
    /// Where the next page begins; none at the end.
    pub next: Option<ExecutionId>,
}
