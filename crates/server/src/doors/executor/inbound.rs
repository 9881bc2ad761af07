//! Which executions to list.

use crate::auth::Caller;
use crate::error::Problem;
use crate::query::Query;
use lifecycle::{CallerName, Phase};
use store::ListFilter;

/// Executions in one list, unless a number is given.
const LISTED_USUALLY: usize = 50;

/// Executions in one list at most; `after` gives the next ones.
const LISTED_MAX: usize = 500;

/// Whoever may see all sees all, or those of one caller; everybody else their own.
pub(super) fn filter(query: &Query, caller: &Caller) -> Result<ListFilter, Problem> {
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
