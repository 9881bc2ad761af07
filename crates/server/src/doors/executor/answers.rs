//! All questions of an execution in one request: `GET …/questions`, `POST …/answers`.

use super::follow::{ExecutionWaiter, WaitUntil};
use super::inbound::{find, patience, result_limit, see};
use super::{follow, outbound};
use crate::answering::{AnswerPath, PageOrigin, authorize, is_first_answer};
use crate::app::AppState;
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::error::RequestError;
use crate::query::{PathId, QueryMembers};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;

/// `GET /api/executions/{id}/questions`.
pub(crate) async fn questions(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    pages: PageOrigin,
    PathId(id): PathId,
) -> Result<Response, RequestError> {
    let (execution, _) = find(&app, &id).await?;
    let account = follow::caught_up(&app, execution).await?;
    see(&caller, &account, &id)?;
    let owner = account.owner().ok_or_else(|| RequestError::no_execution(&id))?;
    let reader = pages.reader(&caller, owner, AnswerPath::Request);
    let body = protocols::executor::outbound::questions(account.open(), &reader);
    Ok(outbound::envelope(execution, StatusCode::OK, body))
}

/// `POST /api/executions/{id}/answers`.
pub(crate) async fn answers(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(id): PathId,
    query: QueryMembers,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    let answers = protocols::executor::answers(&body)?;
    let (wait, limit) = (patience(&query)?, result_limit(&query)?);
    let (execution, _) = find(&app, &id).await?;
    let questions: Vec<_> = answers.iter().map(|given| given.question).collect();
    let given: Vec<_> = answers.iter().map(|given| (given.question, &given.answer)).collect();
    let author = authorize(&app, &caller, AnswerPath::Request, execution, &given).await?;
    let answers =
        answers.into_iter().map(|given| (given.question, given.answer, given.rider)).collect();
    let answering = Arc::clone(&app);
    follow::detached(&app, async move {
        let taking = answering.engine.answer_all(execution, answers, author);
        let counts = match is_first_answer(follow::unless_stopping(&answering, taking).await) {
            Ok(counts) => counts,
            Err(problem) => return Ok(outbound::about(execution, problem.into_response())),
        };
        let attendant = ExecutionWaiter {
            counts,
            limit,
            ..ExecutionWaiter::new(&answering, &caller, execution)
        };
        follow::attended(attendant, WaitUntil::AfterAll(questions), wait).await
    })
    .await
}
