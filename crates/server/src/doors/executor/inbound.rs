//! Which executions to list.

use super::since;
use crate::auth::Caller;
use crate::error::Problem;
use crate::query::Query;
use lifecycle::{CallerName, Pattern, Phase, Timestamp};
use store::{ExecutionSearch, ListFilter, OutcomeFilter};

/// Executions in one list, unless a number is given.
const LISTED_USUALLY: usize = 50;

/// Executions in one list at most; `after` gives the next ones.
const LISTED_MAX: usize = 500;

/// Whoever may see all sees all, or those of one caller; everybody else their own.
pub(super) fn search(
    query: &Query,
    caller: &Caller,
    now: Timestamp,
) -> Result<ExecutionSearch, Problem> {
    let listed = filter(query, caller)?;
    let outcome = match query.text("outcome") {
        None => None,
        Some("completed") => Some(OutcomeFilter::Completed),
        Some("failed") => Some(OutcomeFilter::Failed),
        Some("cancelled") => Some(OutcomeFilter::Cancelled),
        Some(_) => {
            let message = "The query's outcome must be completed, failed or cancelled.";
            return Err(Problem::bad_request(message));
        }
    };
    let since = query.text("since").map(|text| since::parse(text, now)).transpose();
    let since =
        since.map_err(|why| Problem::bad_request(format!("The query's since is {why}.")))?;
    let tool = query.text("tool").map(|text| Pattern::parse(text.trim_start_matches("tools.")));
    let tool = tool.transpose();
    let tool = tool.map_err(|bad| Problem::bad_request(format!("The query's tool: {bad}.")))?;
    Ok(ExecutionSearch { listed, since, outcome, tool })
}

/// Where in the list, and how much of it.
fn filter(query: &Query, caller: &Caller) -> Result<ListFilter, Problem> {
    let named = query.text("caller").map(|name| CallerName(name.to_owned()));
    let caller = if caller.sees_all() { named } else { Some(caller.name.clone()) };
    let phases = match query.text("status") {
        None => vec![],
        Some("running") => vec![Phase::Running],
        Some("paused") => vec![Phase::Paused],
        Some("parked") => vec![Phase::Parked],
        Some("finished") => vec![Phase::Finished],
        Some(_) => {
            let message = "The query's status must be running, paused, parked or finished.";
            return Err(Problem::bad_request(message));
        }
    };
    let n_max = query.get("limit", "a number")?.unwrap_or(LISTED_USUALLY).clamp(1, LISTED_MAX);
    let after = query.get("after", "an id run_…")?;
    Ok(ListFilter { phases, caller, after, n_max })
}
