//! Client requests: which executions to list, which execution an id refers to, and how long to wait.

use super::follow;
use super::since;
use crate::app::AppState;
use crate::auth::Caller;
use crate::error::RequestError;
use crate::query::QueryMembers;
use lifecycle::{CallerName, ExecutionPhase, Timestamp, ToolPattern};
use lifecycle::{ExecutionId, QuestionId};
use protocols::executor::{ExecutionView, RESULT_BYTES_MAX};
use std::time::Duration;
use store::{ExecutionSearch, ListFilter, OutcomeFilter};

/// Default number of executions in one list.
const LISTED_USUALLY: usize = 50;

/// Maximum number of executions in one list; `after` continues it.
const LISTED_MAX: usize = 500;

/// Callers that may see all executions see all, or those of one caller; other callers see their own.
pub(super) fn search(
    query: &QueryMembers,
    caller: &Caller,
    now: Timestamp,
) -> Result<ExecutionSearch, RequestError> {
    let listed = filter(query, caller)?;
    let outcome = match query.text_member("outcome") {
        None => None,
        Some("completed") => Some(OutcomeFilter::Completed),
        Some("failed") => Some(OutcomeFilter::Failed),
        Some("cancelled") => Some(OutcomeFilter::Cancelled),
        Some(_) => {
            let message = "The query's outcome must be completed, failed or cancelled.";
            return Err(RequestError::bad_request(message));
        }
    };
    let since = query.text_member("since").map(|text| since::parse(text, now)).transpose();
    let since =
        since.map_err(|why| RequestError::bad_request(format!("The query's since is {why}.")))?;
    let tool =
        query.text_member("tool").map(|text| ToolPattern::parse(text.trim_start_matches("tools.")));
    let tool = tool.transpose();
    let tool =
        tool.map_err(|bad| RequestError::bad_request(format!("The query's tool: {bad}.")))?;
    Ok(ExecutionSearch { listed, since, outcome, tool })
}

/// The position in the list, and the page size.
fn filter(query: &QueryMembers, caller: &Caller) -> Result<ListFilter, RequestError> {
    let named = query.text_member("caller").map(|name| CallerName(name.to_owned()));
    let caller = if caller.sees_all() { named } else { Some(caller.name.clone()) };
    let phases = match query.text_member("status") {
        None => vec![],
        Some("running") => vec![ExecutionPhase::Running],
        Some("paused") => vec![ExecutionPhase::Paused],
        Some("parked") => vec![ExecutionPhase::Parked],
        Some("finished") => vec![ExecutionPhase::Finished],
        Some(_) => {
            let message = "The query's status must be running, paused, parked or finished.";
            return Err(RequestError::bad_request(message));
        }
    };
    let n_max = query.get("limit", "a number")?.unwrap_or(LISTED_USUALLY).clamp(1, LISTED_MAX);
    let after = query.get("after", "an id run_…")?;
    Ok(ListFilter { phases, caller, after, n_max })
}

/// Maximum wait that a client can request; longer requests are reduced to it.
pub(super) const WAIT_MS_MAX: u64 = 3_600_000;

/// Finds the execution that an id refers to, and the question if the id is a question's.
pub(super) async fn find(
    app: &AppState,
    id: &str,
) -> Result<(ExecutionId, Option<QuestionId>), RequestError> {
    if let Ok(question) = id.parse::<QuestionId>() {
        let execution = app.engine.asked_by(question).await?;
        return Ok((execution, Some(question)));
    }
    let execution = id.parse().map_err(|_| RequestError::no_execution(id))?;
    Ok((execution, None))
}

/// Passes callers that may see an execution; for others it is treated as if it did not exist.
pub(super) fn see(caller: &Caller, account: &ExecutionView, id: &str) -> Result<(), RequestError> {
    let owner = account.owner().ok_or_else(|| RequestError::no_execution(id))?;
    let may = caller.may_see(owner, account.has_asked());
    may.map_err(|denied| RequestError::denied(denied, id))
}

/// The owner of the execution.
pub(super) async fn owner(
    app: &AppState,
    execution: ExecutionId,
) -> Result<CallerName, RequestError> {
    Ok(app.engine.overview(execution).await?.listed.standing.caller)
}

/// The oldest open question; none if the execution is over.
pub(super) async fn oldest_open(
    app: &AppState,
    caller: &Caller,
    execution: ExecutionId,
) -> Result<Option<QuestionId>, RequestError> {
    let account = follow::caught_up(app, execution).await?;
    see(caller, &account, &execution.to_string())?;
    let open = account.open().next().map(|asked| asked.question.id);
    if open.is_none() && account.wait_end().is_none() {
        return Err(RequestError::conflict(format!("{execution} asks nothing now.")));
    }
    Ok(open)
}

/// The number of bytes of a value that the client accepts; none accepts the whole value.
pub(super) fn result_limit(query: &QueryMembers) -> Result<Option<usize>, RequestError> {
    let limit = query.get::<usize>("limit", "a number of bytes")?;
    Ok(limit.map(|limit| limit.min(RESULT_BYTES_MAX)))
}

/// How long to wait; none waits without limit.
pub(super) fn patience(query: &QueryMembers) -> Result<Option<Duration>, RequestError> {
    let ms = query.get::<u64>("wait", "a number of milliseconds")?;
    Ok(ms.map(|ms| Duration::from_millis(ms.min(WAIT_MS_MAX))))
}
