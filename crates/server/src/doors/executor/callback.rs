//! `GET /api/callback`: an external service reports that a person has finished there.
//!
//! Needs no token: an external page redirects a browser here. The secret in `state` belongs to the question.

use crate::answering::is_first_answer;
use crate::app::AppState;
use crate::auth::{digest, same};
use crate::error::RequestError;
use axum::extract::{RawQuery, State};
use axum::response::{Html, IntoResponse as _, Response};
use lifecycle::{
    Answer, BuiltinCaller, CallerName, Event, Json, QuestionId, QuestionKind, Seq, callback_state,
};
use std::sync::Arc;

const DONE: &str = "<!doctype html><meta charset=\"utf-8\"><title>Done</title>\
                    <p>Done. You can close this page.</p>";

/// `GET /api/callback`.
pub(crate) async fn callback(
    State(app): State<Arc<AppState>>,
    RawQuery(query): RawQuery,
) -> Result<Response, RequestError> {
    let query = query.unwrap_or_default();
    let mut members: serde_json::Map<_, _> = form_urlencoded::parse(query.as_bytes())
        .map(|(name, value)| (name.into_owned(), value.into_owned().into()))
        .collect();
    let state = members.remove("state");
    let state = state.as_ref().and_then(|state| state.as_str()).unwrap_or_default();
    let question = awaited(&app, state).await?;
    let answer = match members.contains_key("error") {
        true => Answer::Decline,
        false => Answer::Accept { content: Json::from_value(&members).ok() },
    };
    // A reloaded page receives the same answer.
    is_first_answer(
        app.engine
            .answer_question(question, answer, CallerName::from(BuiltinCaller::Callback))
            .await,
    )?;
    Ok(Html(DONE).into_response())
}

/// The question that `state` completes. Every error looks the same from outside.
async fn awaited(app: &AppState, state: &str) -> Result<QuestionId, RequestError> {
    let question = state.split('.').next().and_then(|id| id.parse::<QuestionId>().ok());
    let question = question.ok_or_else(RequestError::no_callback)?;
    let execution =
        app.engine.asked_by(question).await.map_err(|error| unknown_question(error.into()))?;
    let account =
        app.execution_views.read(&app.engine, execution).await.map_err(unknown_question)?;
    let asked = account.question(question).map(|asked| &asked.question.kind);
    let first = app.engine.entries(execution, Seq(0), 1).await?.pop().map(|entry| entry.event);
    let (Some(QuestionKind::Link { .. }), Some(Event::Started { seed, .. })) = (asked, &first)
    else {
        return Err(RequestError::no_callback());
    };
    let expected = callback_state(seed, question);
    match same(&digest(&expected), &digest(state)) {
        true => Ok(question),
        false => Err(RequestError::no_callback()),
    }
}

fn unknown_question(problem: RequestError) -> RequestError {
    if problem.is_not_found() { RequestError::no_callback() } else { problem }
}
