//! The result of an execution: `GET …/result`; and `DELETE`, which removes the execution.

use super::follow::{ExecutionWaiter, WaitUntil};
use super::inbound::{find, owner, patience, see};
use super::{follow, outbound};
use crate::app::AppState;
use crate::auth::Caller;
use crate::error::RequestError;
use crate::query::{PathId, QueryMembers};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use protocols::executor::WaitEnd;
use std::sync::Arc;
use std::time::Duration;

/// `GET /api/executions/{id}/result`: the whole value, of any size.
pub(crate) async fn result(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(id): PathId,
    query: QueryMembers,
) -> Result<Response, RequestError> {
    use protocols::executor::outbound::{not_over, running};
    let (execution, _) = find(&app, &id).await?;
    let account = follow::caught_up(&app, execution).await?;
    see(&caller, &account, &id)?;
    let wait = patience(&query)?.unwrap_or(Duration::ZERO);
    if account.wait_end().is_none() && !wait.is_zero() {
        let attendant = ExecutionWaiter::new(&app, &caller, execution);
        let waited =
            follow::wait_response(attendant, WaitUntil::Now(account.last()), Some(wait)).await?;
        if waited.status() == StatusCode::UNAUTHORIZED {
            return Ok(waited);
        }
    }
    let account = follow::caught_up(&app, execution).await?;
    let body = match account.now() {
        Some(WaitEnd::Over(outcome)) => return Ok(outbound::result(execution, outcome)),
        Some(WaitEnd::Asked(asked)) => not_over(asked),
        Some(WaitEnd::Parked) => return Err(RequestError::parked(execution)),
        None => running(execution),
    };
    Ok(outbound::envelope(execution, StatusCode::ACCEPTED, body))
}

/// `DELETE /api/executions/{id}`.
pub(crate) async fn remove(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Response, RequestError> {
    let (execution, _) = find(&app, &id).await?;
    let owner = owner(&app, execution).await?;
    caller.may_cancel(&owner).map_err(|denied| RequestError::denied(denied, &id))?;
    app.engine.delete_execution(execution).await?;
    let json = [(CONTENT_TYPE, "application/json")];
    Ok((StatusCode::OK, json, r#"{"removed":true}"#).into_response())
}
