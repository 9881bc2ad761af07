//! `/api/executions/{id}/journal`: the journal as it is recorded, so that it can be replayed elsewhere.

use crate::app::AppState;
use crate::auth::Caller;
use crate::error::RequestError;
use crate::query::{PathId, QueryMembers};
use crate::turns::TurnMeter;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use lifecycle::{ExecutionId, ExecutionPhase, QuestionId, Seq};
use std::sync::Arc;
use store::ExecutionOverview;

/// Maximum number of entries of one page, unless its byte limit is reached first.
const PAGE_ENTRIES_MAX: usize = 200;

/// Approximate maximum size of one page: the last entry may exceed it.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// `GET /api/executions/{id}/journal?after=SEQ`: `{"entries":[…],"last":SEQ}`.
pub(crate) async fn journal(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(id): PathId,
    query: QueryMembers,
) -> Result<Response, RequestError> {
    let execution = match id.parse::<QuestionId>() {
        Ok(question) => app.engine.asked_by(question).await?,
        Err(_) => id.parse::<ExecutionId>().map_err(|_| RequestError::no_execution(&id))?,
    };
    let ExecutionOverview { listed, has_asked } = app.engine.overview(execution).await?;
    let may = caller.may_see(&listed.standing.caller, has_asked);
    may.map_err(|denied| RequestError::denied(denied, &id))?;
    if listed.standing.phase != ExecutionPhase::Finished {
        // The journal includes the seed, which predicts the random values of a running program.
        let message = format!("{execution} is not over; its journal can be read once it is.");
        return Err(RequestError::conflict(message));
    }
    let after = Seq(query.get::<u64>("after", "the number of an event")?.unwrap_or(0));
    let entries = app.engine.entries(execution, after, PAGE_ENTRIES_MAX).await?;
    let (mut body, mut last) = (String::from("{\"entries\":["), after);
    let mut meter = TurnMeter::default();
    for entry in entries {
        if body.len() > PAGE_BYTES_MAX {
            break;
        }
        if last > after {
            body.push(',');
        }
        let line = serde_json::to_string(&entry).map_err(|error| RequestError::broken(&error))?;
        body.push_str(&line);
        meter.count(line.len()).await;
        last = entry.seq;
    }
    body.push_str(&format!("],\"last\":{last}}}"));
    Ok((StatusCode::OK, [(CONTENT_TYPE, "application/json")], body).into_response())
}
