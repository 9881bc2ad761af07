//! `continue`: an administrator continues a parked execution.

use super::follow;
use super::inbound::find;
use crate::app::AppState;
use crate::auth::{Caller, require_admin};
use crate::body::json_response;
use crate::error::RequestError;
use crate::query::PathId;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use std::sync::Arc;

/// `POST /api/executions/{id}/continue`.
pub(crate) async fn continue_one(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let (execution, _) = find(&app, &id).await?;
    let continuing = app.engine.continue_parked(execution, caller.name);
    follow::unless_stopping(&app, continuing).await?;
    Ok(json_response(
        StatusCode::OK,
        &json!({ "executionId": execution.to_string(), "continued": true }),
    ))
}

/// `POST /api/executions/continue`: continues all executions that are parked because entries may be lost.
pub(crate) async fn continue_all(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let continuing = app.engine.continue_all(&caller.name);
    let n_continued = follow::unless_stopping(&app, continuing).await?;
    Ok(json_response(StatusCode::OK, &json!({ "continued": n_continued })))
}
