//! `GET /api/questions`: the questions that wait for a person, once or as a stream of changes.

use crate::app::AppState;
use crate::auth::Caller;
use crate::error::RequestError;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _, stream};
use lifecycle::ExecutionPhase;
use serde_json::{Value, json};
use sources::SourceRegistry;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use store::ListFilter;
use tokio::sync::watch;

/// Maximum number of executions that are searched for open questions: an inbox is read by a person.
const EXECUTIONS_LOOKED_AT_MAX: usize = 100;

/// Minimum interval between two lists, which coalesces bursts of questions.
const BETWEEN_TWO_LISTS: Duration = Duration::from_millis(200);

/// Proxies close connections that are silent for a minute; some after half of that.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(crate) async fn questions(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, RequestError> {
    let accepts = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if !accepts.contains("text/event-stream") {
        let body = open(&app, &caller).await?.to_string();
        return Ok(([(CONTENT_TYPE, "application/json")], body).into_response());
    }
    let heartbeat = KeepAlive::new().interval(HEARTBEAT).text("");
    Ok(Sse::new(lists(app, caller)).keep_alive(heartbeat).into_response())
}

/// The state of a stream of lists.
struct QuestionListStream {
    app: Arc<AppState>,
    caller: Caller,
    changes: watch::Receiver<u64>,
    is_first: bool,
}

/// Sends the current list, and a new one after each question that was asked or closed, until the server stops or the
/// caller's credential ends.
fn lists(
    app: Arc<AppState>,
    caller: Caller,
) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    let ended = Arc::clone(&app).connection_end(caller.clone());
    let mut changes = app.engine.question_changes();
    changes.mark_changed();
    let lists = QuestionListStream { app, caller, changes, is_first: true };
    stream::unfold(lists, QuestionListStream::next).take_until(Box::pin(ended))
}

impl QuestionListStream {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        self.changes.changed().await.ok()?;
        if !std::mem::take(&mut self.is_first) {
            tokio::time::sleep(BETWEEN_TWO_LISTS).await;
        }
        // Marked before the list is built: later changes are sent with the next list.
        self.changes.borrow_and_update();
        // A store error ends the stream; the page reconnects.
        let list = open(&self.app, &self.caller).await.ok()?;
        Some((Ok(Event::default().data(list.to_string())), self))
    }
}

/// The number of open questions, and whether all were counted.
pub(crate) async fn count_open_questions(
    app: &AppState,
    caller: &Caller,
) -> Result<(usize, bool), RequestError> {
    let list = open(app, caller).await?;
    Ok((list["questions"].as_array().map_or(0, Vec::len), list["complete"] == true))
}

async fn open(app: &AppState, caller: &Caller) -> Result<Value, RequestError> {
    let owner = (!caller.sees_all_questions()).then(|| caller.name.clone());
    let phases = vec![ExecutionPhase::Running, ExecutionPhase::Paused, ExecutionPhase::Parked];
    let n_max = EXECUTIONS_LOOKED_AT_MAX;
    let listed = app
        .engine
        .list_executions(ListFilter { phases, caller: owner, after: None, n_max })
        .await?;
    let is_all = listed.len() < n_max;
    let mut open = vec![];
    for listed in listed {
        let overview = match app.engine.overview(listed.execution).await {
            Ok(overview) if overview.has_asked => overview,
            // It has asked nothing, or was removed since it was listed.
            Ok(_) | Err(engine::Error::Rejected(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        let account = app.execution_views.read_up_to(&app.engine, &overview).await?;
        for asked in account.open() {
            open.push(json!({
                "executionId": asked.question.id,
                "execution": listed.execution,
                "caller": listed.standing.caller,
                "address": format!("tools.{}", asked.tool),
                "message": asked.question.message,
                "created": listed.created,
            }));
        }
    }
    let mut list = json!({ "questions": open, "complete": is_all, "time": app.clock.now() });
    // For callers that decide: which part of the configuration has no effect, and what to do about it.
    let notice = app.sources.as_ref().and_then(SourceRegistry::trouble);
    if let Some(notice) = notice.filter(|_| caller.sees_all_questions()) {
        list["notice"] = notice.into();
    }
    Ok(list)
}
