//! `/api/mcp-sessions/{session}/executions/{id}`: used by Executor's approval page. Questions do not belong to
//! sessions in this server, so that any session name leads to them.

use super::inbound::{find, see};
use super::{follow, outbound};
use crate::answering::{AnswerPath, PageOrigin, authorize, is_first_answer};
use crate::app::AppState;
use crate::auth::Caller;
use crate::body::AnyBody;
use crate::error::RequestError;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use lifecycle::{Answer, ExecutionId, QuestionId};
use protocols::executor::ExecutionView;
use serde_json::{Value, json};
use std::sync::Arc;

/// The session, which is ignored, and the question.
type SessionQuestionPath = Path<(String, String)>;

/// `GET /api/mcp-sessions/{session}/executions/{id}`.
pub(crate) async fn show_in_session(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    pages: PageOrigin,
    Path((_, id)): SessionQuestionPath,
) -> Result<Response, RequestError> {
    let (execution, account, question) = match open_question(&app, &caller, &id).await {
        Ok(found) => found,
        Err(problem) => return missing_or(problem),
    };
    let owner = account.owner().ok_or_else(|| RequestError::no_execution(&id))?;
    let reader = pages.reader(&caller, owner, AnswerPath::Request);
    match account.question(question) {
        Some(asked) => Ok(outbound::execution_json(execution, asked, &reader)),
        None => missing_or(RequestError::no_execution(&id)),
    }
}

/// `POST /api/mcp-sessions/{session}/executions/{id}/resume {action, content?}`: accepts the decision and does not
/// wait for what follows it.
pub(crate) async fn resume_in_session(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    Path((_, id)): SessionQuestionPath,
    AnyBody(body): AnyBody,
) -> Result<Response, RequestError> {
    let (execution, _, question) = match open_question(&app, &caller, &id).await {
        Ok(found) => found,
        Err(problem) => return missing_or(problem),
    };
    let Ok(answer) = protocols::executor::resume(&body) else {
        return Ok(plain(
            StatusCode::BAD_REQUEST,
            &json!({ "error": "Invalid approval response" }),
        ));
    };
    let path = AnswerPath::Request;
    let author = authorize(&app, &caller, path, execution, &[(question, &answer)]).await?;
    let (status, text) = match &answer {
        Answer::Accept { .. } => ("approved", "I've approved it"),
        Answer::Decline => ("denied", "I've denied it"),
        Answer::Cancel => ("canceled", "I've canceled it"),
    };
    let body = json!({
        "status": "completed",
        "text": text,
        "structured": { "status": status, "executionId": id },
        "isError": false,
    });
    let resuming = Arc::clone(&app);
    follow::detached(&app, async move {
        let answering = resuming.engine.answer_question(question, answer, author);
        is_first_answer(follow::unless_stopping(&resuming, answering).await)?;
        Ok(outbound::about(execution, plain(StatusCode::OK, &body)))
    })
    .await
}

/// The open question that an id refers to. An answered question is no longer paused.
async fn open_question(
    app: &AppState,
    caller: &Caller,
    id: &str,
) -> Result<(ExecutionId, Arc<ExecutionView>, QuestionId), RequestError> {
    let (execution, question) = find(app, id).await?;
    let account = follow::caught_up(app, execution).await?;
    see(caller, &account, id)?;
    let is_meant = |open: &QuestionId| question.is_none_or(|question| question == *open);
    let open = account.open().map(|asked| asked.question.id).find(is_meant);
    Ok((execution, account, open.ok_or_else(|| RequestError::no_execution(id))?))
}

/// The refusal that Executor's page understands, if there is nothing to decide.
fn missing_or(problem: RequestError) -> Result<Response, RequestError> {
    match problem.is_not_found() {
        true => {
            let body = json!({ "error": "Paused execution not found" });
            Ok(plain(StatusCode::NOT_FOUND, &body))
        }
        false => Err(problem),
    }
}

fn plain(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
