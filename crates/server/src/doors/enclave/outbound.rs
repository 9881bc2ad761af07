//! Answers to clients: a session's events as a stream, or its current state.

use super::EnclaveState;
use super::follow::{ReaderOptions, SessionReader};
use super::inbound::VisibleSession;
use super::refusals::EnclaveRequestError;
use crate::auth::Caller;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::{FutureExt as _, StreamExt as _};
use lifecycle::{Entry, ExecutionId, Seq};
use protocols::enclave::EventRenderer;
use std::sync::Arc;

const SESSION: HeaderName = HeaderName::from_static("x-session-id");

pub(super) async fn streamed(
    door: &EnclaveState,
    caller: Caller,
    execution: ExecutionId,
    id: &str,
    wish: ReaderOptions,
) -> Result<Response, EnclaveRequestError> {
    let ended = Arc::clone(&door.app).connection_end(caller).boxed();
    let reader = SessionReader::open(door, execution, wish, ended).await?;
    let reader = reader.ok_or_else(|| EnclaveRequestError::not_found(id))?;
    let session = HeaderValue::from_str(reader.session().as_str()).ok();
    let body = Body::from_stream(reader.batches());
    // The upstream implementation's value. A stream must not be stored either, but its client checks for this one.
    let headers = [(CONTENT_TYPE, "application/x-ndjson"), (CACHE_CONTROL, "no-cache")];
    let mut response = (headers, body).into_response();
    if let Some(session) = session {
        response.headers_mut().insert(SESSION, session);
    }
    Ok(response)
}

pub(super) fn done(found: &VisibleSession) -> Response {
    let body = serde_json::json!({ "success": true, "sessionId": found.session.as_str() });
    json(StatusCode::OK, &body)
}

/// Describes a session's current state from its journal.
pub(super) async fn described(
    door: &EnclaveState,
    execution: ExecutionId,
) -> Result<Option<serde_json::Value>, EnclaveRequestError> {
    let last = match door.app.engine.overview(execution).await {
        Ok(overview) => overview.listed.last,
        Err(engine::Error::Rejected(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut telling = EventRenderer::new(execution);
    let mut entries = door.app.engine.follow(execution, Seq(0));
    let mut ended = door.app.clock.now();
    while let Some(entry) = entries.next().await {
        let entry: Entry = entry?;
        telling.handle_entry(&entry);
        if telling.standing().is_over() {
            ended = entry.at;
        }
        if entry.seq >= last {
            break;
        }
    }
    let (begun, expires) = telling.span();
    let Some((session, _)) = telling.session() else { return Ok(None) };
    Ok(Some(serde_json::json!({
        "sessionId": session.as_str(),
        "executionId": execution.to_string(),
        "state": telling.standing().name(),
        "createdAt": begun.0,
        "expiresAt": expires.0,
        "lastSeq": telling.last(),
        "stats": { "duration": ended.ms_since(begun), "toolCallCount": telling.n_calls() },
    })))
}

/// A JSON answer.
pub(super) fn json(status: StatusCode, body: &serde_json::Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
