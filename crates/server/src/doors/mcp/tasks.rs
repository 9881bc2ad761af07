//! The tasks extension. A task is an execution; its state is computed from the journal, so it outlives connections
//! and servers.

use super::answer;
use super::follow::caught_up;
use super::forms::{self, FormMisfits};
use super::narration::McpExecutionView;
use super::visit::{McpRequestContext, QuestionChannel};
use super::{outbound, refusals};
use crate::answering::{AnswerPath, AnswerSubject, permit};
use crate::error::RequestError;
use lifecycle::{ExecutionId, Rejection, Timestamp, UtcTime};
use protocols::executor::WaitEnd;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, ErrorData, InputResponses, JsonObject, Task,
    TaskPayload, TaskStatus,
};
use rmcp::service::{RequestContext, RoleServer};
use std::sync::Arc;

/// The recommended poll interval.
const POLL_MS: u64 = 1_000;

/// Creates a task for an execution in progress.
pub(super) async fn created(
    visit: &McpRequestContext,
    execution: ExecutionId,
) -> Result<CreateTaskResult, RequestError> {
    let narration = caught_up(visit, execution).await?;
    Ok(CreateTaskResult::new(task(execution, &narration)))
}

/// `tasks/get`.
pub(super) async fn get(
    id: &str,
    context: &RequestContext<RoleServer>,
) -> Result<DetailedTask, ErrorData> {
    let visit = McpRequestContext::from_request(context)?;
    let (execution, narration) = found(&visit, id).await?;
    let payload = payload(&visit, visit.manner(context), execution, &narration);
    Ok(DetailedTask::new(task(execution, &narration), payload))
}

/// `tasks/update`: answers to the requests in `tasks/get`. Answers to other questions are ignored.
pub(super) async fn update(
    id: &str,
    responses: InputResponses,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let visit = McpRequestContext::from_request(context)?;
    let (_, narration) = found(&visit, id).await?;
    let owner = narration.account.owner().cloned();
    let manner = visit.manner(context);
    if matches!(manner, QuestionChannel::Form(forms) | QuestionChannel::Retry(forms) if !forms.counts)
    {
        // The client was asked to show a link to the page, and reports that it did: that is no answer.
        return Ok(());
    }
    let subject = owner.as_ref().map(|owner| AnswerSubject { owner, asked: None });
    let may = subject.map(|subject| permit(&visit.caller, AnswerPath::McpDialog, subject));
    if !matches!(may, Some(Ok(_))) {
        let message = "a person decides on the question's page; nothing was answered";
        return Err(ErrorData::invalid_params(message, None));
    }
    let brought = forms::brought(&narration.account, manner, &responses);
    // All answers are checked before any of them is given.
    if let Some((question, why)) = forms::misfits(&narration.account, &brought).pop_first() {
        return Err(ErrorData::invalid_params(format!("{question}: {why}"), None));
    }
    for (question, answer) in brought {
        let Some(answer) = answer else { continue };
        let given = answer::give(&visit, AnswerPath::McpDialog, question, answer).await;
        given.map_err(|problem| ErrorData::invalid_params(problem.message().to_owned(), None))?;
    }
    Ok(())
}

/// `tasks/cancel`.
pub(super) async fn cancel(
    id: &str,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    let visit = McpRequestContext::from_request(context)?;
    let (execution, narration) = found(&visit, id).await?;
    let owner = narration.account.owner().cloned();
    if owner.is_none_or(|owner| visit.caller.may_cancel(&owner).is_err()) {
        return Err(unknown_task(id));
    }
    match visit.app.engine.cancel(execution, visit.caller.name.clone()).await {
        // It is already over, as requested.
        Ok(()) | Err(engine::Error::Rejected(Rejection::AlreadyFinished)) => Ok(()),
        Err(error) => {
            let problem = RequestError::from(error);
            Err(ErrorData::internal_error(problem.message().to_owned(), None))
        }
    }
}

async fn found(
    visit: &Arc<McpRequestContext>,
    id: &str,
) -> Result<(ExecutionId, Arc<McpExecutionView>), ErrorData> {
    let execution: ExecutionId = id.parse().map_err(|_| unknown_task(id))?;
    let narration = caught_up(visit, execution).await.map_err(|_| unknown_task(id))?;
    let account = &narration.account;
    let seen = answer::see(visit, account.owner(), account.has_asked(), id);
    seen.map_err(|_| unknown_task(id))?;
    Ok((execution, narration))
}

fn unknown_task(id: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no task {id:?}"), None)
}

fn payload(
    visit: &McpRequestContext,
    manner: QuestionChannel,
    execution: ExecutionId,
    narration: &McpExecutionView,
) -> TaskPayload {
    let result = match (narration.account.now(), manner) {
        (None, _) => return TaskPayload::Working,
        (Some(WaitEnd::Asked(_)), QuestionChannel::Form(forms) | QuestionChannel::Retry(forms)) => {
            let input_requests =
                forms::requests(visit, &narration.account, forms, &FormMisfits::new());
            return TaskPayload::InputRequired { input_requests };
        }
        (Some(WaitEnd::Over(lifecycle::ExecutionOutcome::Cancelled { .. })), _) => {
            return TaskPayload::Cancelled;
        }
        (Some(WaitEnd::Asked(asked)), QuestionChannel::Model) => outbound::paused(asked),
        (Some(WaitEnd::Asked(asked)), QuestionChannel::Browser) => {
            outbound::approval_required(visit, asked.question.id, manner, None)
        }
        (Some(WaitEnd::Over(outcome)), _) => {
            outbound::finished_result(execution, narration, outcome)
        }
        (Some(WaitEnd::Parked), _) => {
            refusals::refusal_result(&RequestError::parked(execution), None)
        }
    };
    TaskPayload::Completed { result: object(&result) }
}

fn object(result: &CallToolResult) -> JsonObject {
    match serde_json::to_value(result) {
        Ok(serde_json::Value::Object(members)) => members,
        Ok(_) | Err(_) => JsonObject::new(),
    }
}

fn task(execution: ExecutionId, narration: &McpExecutionView) -> Task {
    let (began, changed) = (utc(narration.began), utc(narration.changed));
    Task::new(execution.to_string(), TaskStatus::Working, began, changed)
        .with_status_message(narration.doing())
        .with_poll_interval_ms(POLL_MS)
}

/// A time in the protocol's format.
fn utc(at: Timestamp) -> String {
    UtcTime::from(at).exact()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_protocol_does() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_785_196_799_999, "2026-07-27T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (ms, expected) in cases {
            assert_eq!(utc(Timestamp(ms)), expected);
        }
    }
}
