//! The routes of `/api/executions`, and who may use them.

use super::answers::{answers, questions};
use super::callback::callback;
use super::continuing::{continue_all, continue_one};
use super::ended::{remove, result};
use super::events::events;
use super::follow::{self, ExecutionWaiter, WaitUntil};
use super::inbound::{self, WAIT_MS_MAX, find, oldest_open, owner, patience, result_limit};
use super::outbound;
use super::session_routes::{resume_in_session, show_in_session};
use crate::answering::{AnswerPath, AnswerSubject, PageOrigin, authorize, is_first_answer, permit};
use crate::app::AppState;
use crate::auth::Caller;
use crate::auth::permissions::RoutePermission;
use crate::auth::permissions::access::{ADMIN, ANY, END, REPLY, RUN, SECRET, SEE, route};
use crate::body::{JsonBody, NeededJson};
use crate::config::DoorSelection;
use crate::door::Door;
use crate::doors::DoorSettings;
use crate::error::RequestError;
use crate::query::{PathId, QueryMembers};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use engine::ExecutionStart;
use lifecycle::{CallerName, RefusedLimit, Rejection};
use std::sync::Arc;
use std::time::Duration;

/// The door for Executor's HTTP clients.
struct ExecutorDoor {
    /// Beside a REPL alone, it only has what people need to answer the REPL's questions.
    which: DoorSelection,
}

/// Opens the door of a server with these settings.
pub(in crate::doors) fn open_door(settings: &DoorSettings) -> Option<Arc<dyn Door>> {
    Some(Arc::new(ExecutorDoor { which: settings.which }))
}

impl Door for ExecutorDoor {
    fn permissions(&self) -> &'static [RoutePermission] {
        PERMISSIONS
    }

    fn routes(&self, app: &Arc<AppState>) -> Router {
        let routes = match self.which {
            DoorSelection::All => all().merge(session_aliases()),
            DoorSelection::Repl => answering(),
        };
        routes.with_state(Arc::clone(app))
    }

    /// Browsers open event streams and cannot add a header to these requests.
    fn takes_token_in_url(&self, path: &str) -> bool {
        let is_stream = path.starts_with("/api/executions/") && path.ends_with("/events");
        is_stream && self.which == DoorSelection::All
    }
}

fn all() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/executions", get(list_executions).post(execute))
        .route("/api/executions/{id}", get(show_execution).delete(remove))
        .route("/api/executions/{id}/resume", post(resume))
        .route("/api/executions/{id}/questions", get(questions))
        .route("/api/executions/{id}/answers", post(answers))
        .route("/api/executions/{id}/result", get(result))
        .route("/api/executions/{id}/cancel", post(cancel))
        .route("/api/executions/{id}/continue", post(continue_one))
        .route("/api/executions/continue", post(continue_all))
        .route("/api/executions/{id}/events", get(events))
        .route("/api/callback", get(callback))
}

/// The routes that people need to answer questions.
fn answering() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/executions", get(list_executions))
        .route("/api/executions/{id}", get(show_execution))
        .route("/api/executions/{id}/resume", post(resume))
        .route("/api/executions/{id}/cancel", post(cancel))
}

/// The aliases by which Executor's pages read and answer an execution of an MCP session.
fn session_aliases() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/mcp-sessions/{session}/executions/{id}", get(show_in_session))
        .route("/api/mcp-sessions/{session}/executions/{id}/resume", post(resume_in_session))
}

/// The access requirement of each of these routes.
const PERMISSIONS: &[RoutePermission] = &[
    route("GET", "/api/executions", ANY),
    route("POST", "/api/executions", RUN),
    route("GET", "/api/executions/{id}", SEE),
    route("DELETE", "/api/executions/{id}", END),
    route("POST", "/api/executions/{id}/resume", REPLY),
    route("GET", "/api/mcp-sessions/{session}/executions/{id}", SEE),
    route("POST", "/api/mcp-sessions/{session}/executions/{id}/resume", REPLY),
    route("GET", "/api/executions/{id}/questions", SEE),
    route("POST", "/api/executions/{id}/answers", REPLY),
    route("GET", "/api/executions/{id}/result", SEE),
    route("POST", "/api/executions/{id}/cancel", END),
    route("POST", "/api/executions/{id}/continue", ADMIN),
    route("POST", "/api/executions/continue", ADMIN),
    route("GET", "/api/executions/{id}/events", SEE),
    route("GET", "/api/callback", SECRET),
];

/// `POST /api/executions`.
async fn execute(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    pages: PageOrigin,
    query: QueryMembers,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    caller.may_run().map_err(|denied| RequestError::denied(denied, ""))?;
    let order = protocols::executor::execute(&body)?;
    let (wait, limit) = (patience(&query)?, result_limit(&query)?);
    if order.auto_approve {
        // Approving in advance is answering: an answer that would be refused later is refused now.
        let subject = AnswerSubject { owner: &caller.name, asked: None };
        let may = permit(&caller, AnswerPath::InAdvance, subject);
        may.map_err(|denied| RequestError::denied(denied, ""))?;
    }
    let refused = |refused: RefusedLimit| RequestError::bad_request(format!("{refused}."));
    let limits = order.limits.within(app.engine.limits()).map_err(refused)?;
    let start = ExecutionStart { program: order.program, caller: caller.name.clone(), limits };
    let reader = pages.reader(&caller, &caller.name, AnswerPath::Request);
    let approves_in_advance = order.auto_approve;
    let starting = Arc::clone(&app);
    follow::detached(&app, async move {
        let submitting = starting.engine.submit(start);
        let execution = follow::unless_stopping(&starting, submitting).await?;
        starting.metrics.count_start();
        let usual = ExecutionWaiter::new(&starting, &caller, execution);
        let attendant =
            ExecutionWaiter { approves_in_advance, counts: true, reader, limit, ..usual };
        follow::attended(attendant, WaitUntil::START, wait).await
    })
    .await
}

/// `GET /api/executions/{id}`.
async fn show_execution(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    pages: PageOrigin,
    PathId(id): PathId,
    query: QueryMembers,
) -> Result<Response, RequestError> {
    let wait = query.get::<u64>("wait", "a number of milliseconds")?.unwrap_or(0);
    let limit = result_limit(&query)?;
    let (execution, question) = find(&app, &id).await?;
    let account = follow::caught_up(&app, execution).await?;
    let owner = account.owner().cloned().unwrap_or(CallerName(String::new()));
    caller
        .may_see(&owner, account.has_asked())
        .map_err(|denied| RequestError::denied(denied, &id))?;
    let reader = pages.reader(&caller, &owner, AnswerPath::Request);
    let named = question.and_then(|id| account.question(id)).filter(|asked| asked.is_open());
    if account.wait_end().is_none()
        && let Some(asked) = named
    {
        return Ok(outbound::execution_json(execution, asked, &reader));
    }
    match account.now() {
        Some(told) => Ok(outbound::now(execution, &account, told, (&reader, limit))),
        None if wait == 0 => Ok(outbound::running(execution)),
        None => {
            let wait = Duration::from_millis(wait.min(WAIT_MS_MAX));
            let until = WaitUntil::Now(account.last());
            let attendant =
                ExecutionWaiter { reader, limit, ..ExecutionWaiter::new(&app, &caller, execution) };
            follow::wait_response(attendant, until, Some(wait)).await
        }
    }
}

/// `POST /api/executions/{id}/resume`.
async fn resume(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(id): PathId,
    query: QueryMembers,
    NeededJson(body): NeededJson,
) -> Result<Response, RequestError> {
    let answer = protocols::executor::resume(&body)?;
    let rider = protocols::executor::rider(&body)?;
    let (wait, limit) = (patience(&query)?, result_limit(&query)?);
    let (execution, question) = find(&app, &id).await?;
    let path = AnswerPath::Request;
    let given = question.map(|question| (question, &answer));
    authorize(&app, &caller, path, execution, given.as_slice()).await?;
    let Some(question) = (match question {
        Some(question) => Some(question),
        None => oldest_open(&app, &caller, execution).await?,
    }) else {
        let attendant = ExecutionWaiter { limit, ..ExecutionWaiter::new(&app, &caller, execution) };
        return follow::wait_response(attendant, WaitUntil::Over, wait).await;
    };
    let author = authorize(&app, &caller, path, execution, &[(question, &answer)]).await?;
    let resuming = Arc::clone(&app);
    follow::detached(&app, async move {
        let answering = resuming.engine.answer_with(question, answer, author, rider);
        let counts = match is_first_answer(follow::unless_stopping(&resuming, answering).await) {
            Ok(counts) => counts,
            Err(problem) => return Ok(outbound::about(execution, problem.into_response())),
        };
        let attendant = ExecutionWaiter {
            counts,
            limit,
            ..ExecutionWaiter::new(&resuming, &caller, execution)
        };
        follow::attended(attendant, WaitUntil::After(question), wait).await
    })
    .await
}

/// `POST /api/executions/{id}/cancel`.
async fn cancel(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Response, RequestError> {
    let (execution, _) = find(&app, &id).await?;
    let owner = owner(&app, execution).await?;
    caller.may_cancel(&owner).map_err(|denied| RequestError::denied(denied, &id))?;
    let cancelling = app.engine.cancel(execution, caller.name.clone());
    let counts = match follow::unless_stopping(&app, cancelling).await {
        Ok(()) => true,
        // It is already over, as requested.
        Err(engine::Error::Rejected(Rejection::AlreadyFinished)) => false,
        Err(error) => return Err(error.into()),
    };
    let attendant = ExecutionWaiter { counts, ..ExecutionWaiter::new(&app, &caller, execution) };
    follow::wait_response(attendant, WaitUntil::Over, None).await
}

/// `GET /api/executions`.
async fn list_executions(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    query: QueryMembers,
) -> Result<Response, RequestError> {
    let now = app.clock.now();
    let search = inbound::search(&query, &caller, now)?;
    let page = app.engine.search(search).await?;
    Ok(outbound::list_response(&page, now))
}
