//! Searching executions by when they began, how they ended and which tools they called.

use crate::{ListFilter, ListedExecution};
use lifecycle::{ExecutionId, FailureCode, Timestamp, ToolPath, ToolPattern};

/// How a finished execution ended, without its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeKind {
    /// It returned.
    Completed,
    /// It failed, with this code.
    Failed(FailureCode),
    /// It was cancelled.
    Cancelled,
}

/// The outcome that a search wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeFilter {
    /// Those that returned.
    Completed,
    /// Those that failed, for any reason.
    Failed,
    /// Those that were cancelled.
    Cancelled,
}

impl OutcomeFilter {
    /// Whether an outcome is one of these.
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
    /// Phase, caller, and where the page begins and how long it is.
    pub listed: ListFilter,
    /// Only those that began then or later.
    pub since: Option<Timestamp>,
    /// Only those that ended like this.
    pub outcome: Option<OutcomeFilter>,
    /// Only those that called such a tool.
    pub tool: Option<ToolPattern>,
}

impl From<ListFilter> for ExecutionSearch {
    fn from(listed: ListFilter) -> Self {
        Self { listed, since: None, outcome: None, tool: None }
    }
}

/// What the entries of an execution say beyond its line in the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionDetails {
    /// How it ended; none before its end.
    pub outcome: Option<OutcomeKind>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// How much of its active time it used.
    pub active_ms: Option<u64>,
    /// The first tools that it called, each once.
    pub tools: Vec<ToolPath>,
}

/// An execution that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// Its line in the list.
    pub listed: ListedExecution,
    /// How it ended, and what it called.
    pub details: ExecutionDetails,
}

/// A part of what a search finds, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// What was found; less than was asked for where the search did its share of work before.
    pub hits: Vec<SearchHit>,
    /// Where the next part begins; none where nothing is left.
    pub next: Option<ExecutionId>,
}
