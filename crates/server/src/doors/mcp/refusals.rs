//! Every refusal as a tool result, with the next step.

use super::outbound::{result, waiter};
use super::visit::QuestionChannel;
use crate::error::RequestError;
use lifecycle::ExecutionId;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

/// A refusal, with the next step. For an existing execution the next step is not to call again: the program would
/// repeat its effects.
pub(super) fn refusal_result(
    problem: &RequestError,
    within: Option<(ExecutionId, QuestionChannel)>,
) -> CallToolResult {
    let (status, recovery) = match problem.tag() {
        "ExecutionNotFoundError" => ("execution_not_found", "re_execute"),
        "ForbiddenError" => ("execution_forbidden", "ask_user"),
        "ExecutionParkedError" => ("execution_parked", "ask_user"),
        "ShuttingDownError" | "UnavailableError" => ("server_unavailable", "retry"),
        "BadRequestError" => ("invalid_arguments", "correct_arguments"),
        "ConflictError" => ("execution_conflict", "ask_user"),
        _ => ("internal_error", "retry"),
    };
    let next = match (recovery, within) {
        ("re_execute", _) => "Run `execute` again with the whole program.".into(),
        ("ask_user", _) => "Tell the user.".into(),
        (_, Some((execution, manner))) => {
            let tool = waiter(manner);
            format!("Call `{tool}` with executionId {execution} in a moment; do not run it again.")
        }
        ("correct_arguments", None) => "Correct the arguments and call again.".into(),
        (_, None) => "Try again in a moment.".to_owned(),
    };
    let message = match (status, problem.execution_id()) {
        // Executor's phrase, on which scripts match.
        ("execution_not_found", Some(id)) => {
            format!("No paused execution: {id}. {} {next}", problem.message())
        }
        _ => format!("{} {next}", problem.message()),
    };
    let mut structured = json!({ "status": status, "recovery": recovery, "message": message });
    let within = within.map(|(execution, _)| execution.to_string());
    if let Some(id) = problem.execution_id().map(str::to_owned).or(within) {
        structured["executionId"] = id.into();
    }
    if let Some(id) = problem.trace_id() {
        structured["traceId"] = id.into();
    }
    let text = match status {
        "execution_not_found" => message,
        _ => format!("Error: {message}"),
    };
    result(vec![ContentBlock::text(text)], structured, true)
}

/// A refusal while the program was being started: it is unknown whether it has begun.
pub(super) fn maybe_begun(problem: &RequestError) -> CallToolResult {
    let message = format!(
        "{} The program may have begun: do not run it again before you looked. resources/list names the newest \
         executions once the server is back.",
        problem.message()
    );
    let structured = json!({
        "status": "server_unavailable",
        "recovery": "read_resources",
        "message": message,
    });
    result(vec![ContentBlock::text(format!("Error: {message}"))], structured, true)
}
