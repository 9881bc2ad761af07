//! The filters that lists and exports of executions have in common.

use client::{ExecutionFilter, ExecutionStatus};
use lifecycle::ExecutionId;

/// Selects executions.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ExecutionFilters {
    /// Only those that failed.
    #[arg(long, conflicts_with = "outcome")]
    failed: bool,
    /// Only those that ended like this.
    #[arg(long, value_enum)]
    outcome: Option<OutcomeArg>,
    /// Only those of this caller, for administrators.
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,
    /// Only those that called such a tool: a path, or a pattern such as 'github.*', as in policies.
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only those that began since then: a time before now by the server's clock, such as 90m, 2h or 7d, or a date in
    /// UTC, such as 2026-01-31 or 2026-01-31T12:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
}

/// The outcomes of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OutcomeArg {
    Completed,
    Failed,
    Cancelled,
}

impl ExecutionFilters {
    /// Builds the request for a page of the selected executions.
    pub(crate) fn page(
        &self,
        status: Option<ExecutionStatus>,
        limit: usize,
        after: Option<ExecutionId>,
    ) -> ExecutionFilter {
        let outcome = match (self.failed, self.outcome) {
            (true, _) | (false, Some(OutcomeArg::Failed)) => Some("failed"),
            (false, Some(OutcomeArg::Completed)) => Some("completed"),
            (false, Some(OutcomeArg::Cancelled)) => Some("cancelled"),
            (false, None) => None,
        };
        ExecutionFilter {
            status,
            limit: Some(limit),
            after,
            caller: self.caller.clone(),
            outcome: outcome.map(str::to_owned),
            tool: self.tool.clone(),
            since: self.since.clone(),
        }
    }

    /// Whether any filter is given.
    pub(crate) const fn is_any(&self) -> bool {
        self.failed
            || self.outcome.is_some()
            || self.caller.is_some()
            || self.tool.is_some()
            || self.since.is_some()
    }
}
