//! enclave: `/sessions` and `/enclave/ws`. Its "session" is an execution whose name the caller chose.

mod reader;
mod refused;
mod sessions;
mod socket;
mod tape;

pub(crate) use refused::{in_enclave_words, is_enclave_path};
pub(crate) use sessions::Sessions;
pub(crate) use socket::open as socket;

use crate::app::App;
use crate::auth::Caller;
use crate::body::AnyBody;
use crate::query::{Id, Query};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use engine::Start;
use futures_util::{FutureExt as _, StreamExt as _};
use lifecycle::{
    CallerName, CallerRuns, CodeDialect, Entry, Event, ExecutionId, Limits, Rejection, Seq, Terms,
    ToolPath,
};
use protocols::enclave::inbound::{self, Create, Message, ToolResult, Wanted};
use protocols::enclave::sealing::ServerHello;
use protocols::enclave::{Filter, Note, Sealed, SessionId, Telling, execution_of, is_session};
use reader::{Reader, Wish};
use refused::{Refused, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::ListFilter;

/// Largest result of a tool, in an envelope and in base64.
const RESULT_BODY_BYTES_MAX: usize = 24 << 20;

/// Sessions in one list.
const LISTED_MAX: usize = 100;

const SESSION: HeaderName = HeaderName::from_static("x-session-id");

/// The routes of this door.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/sessions", get(list).post(create))
        .route("/execute", post(create))
        .route("/sessions/{id}", get(show).delete(remove))
        .route("/sessions/{id}/stream", get(stream))
        .route("/sessions/{id}/tool-result", post(tool_result))
        .route("/sessions/{id}/cancel", post(cancel))
        .route("/enclave/ws", get(socket))
        .route("/enclave/identity", get(identity))
}

type Answer = Result<Response, Refused>;

/// `POST /sessions`.
async fn create(State(app): State<Arc<App>>, caller: Caller, AnyBody(body): AnyBody) -> Answer {
    caller.may_run().map_err(|denied| Refused::denied(denied, ""))?;
    let create = inbound::create(&body)?;
    let filter = create.filter.clone();
    let execution = start(&app, &caller.name, create).await?;
    streamed(&app, caller, execution, "", Wish { from: 0, filter }).await
}

/// Starts a session; it is in the journal when this returns.
async fn start(
    app: &Arc<App>,
    caller: &CallerName,
    create: Create,
) -> Result<ExecutionId, Refused> {
    let session = match create.session {
        Some(session) => session,
        None => SessionId::from_uuid(sessions::uuid()?),
    };
    let mut note = Note::new(&session, create.heartbeat_ms);
    note.sealed = seal(app, &session, create.encryption).await?;
    let aliases = aliases(app);
    // A server that has tools of its own is the broker: what it does not have, no one has.
    let usual = if aliases.is_empty() { CallerRuns::Anything } else { CallerRuns::Nothing };
    let terms = Terms {
        caller_runs: create.caller_runs.unwrap_or(usual),
        aliases,
        codes: CodeDialect::Enclave,
        note: Some(note.json()),
    };
    let execution = execution_of(caller, &session);
    // What no request can say is as the server says.
    let usual = app.engine.limits();
    let limits = Limits {
        memory_bytes_max: usual.memory_bytes_max,
        bytes_max: usual.bytes_max,
        ..create.limits
    };
    let start = Start { program: create.program, caller: caller.clone(), limits };
    // A client that leaves now has a session all the same: it can come back for it.
    let engine = app.engine.clone();
    let started = app.tasks.spawn(async move { engine.submit_as(execution, start, terms).await });
    started.await.map_err(|_| Rejection::ShuttingDown).map_err(engine::Error::from)??;
    app.metrics.count_start();
    Ok(execution)
}

/// Other names for tools: those that the server was started with go over those in its files.
fn aliases(app: &App) -> BTreeMap<ToolPath, ToolPath> {
    let configured = app.sources.as_ref().map(|sources| sources.aliases()).unwrap_or_default();
    let mut aliases = Arc::unwrap_or_clone(configured);
    aliases.extend(app.enclave.aliases.clone());
    aliases
}

async fn seal(
    app: &Arc<App>,
    session: &SessionId,
    wanted: Wanted,
) -> Result<Option<Sealed>, Refused> {
    let (required, client) = match wanted {
        Wanted::Clear => return Ok(None),
        Wanted::Optional(client) => (false, client),
        Wanted::Required(client) => (true, client),
    };
    let (secret, identity) = (sessions::secret()?, app.enclave.identity().await?);
    let key_id = format!("k_{}", sessions::uuid()?);
    let hello = match ServerHello::answer(&client, &secret, session, &key_id, Some(&identity)) {
        Ok(hello) => hello,
        Err(_) if !required => return Ok(None),
        Err(bad) => return Err(bad.into()),
    };
    Ok(Some(Sealed::new(required, hello, client.client_key, &secret)))
}

/// `GET /sessions/{id}/stream`.
async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    Id(id): Id,
    query: Query,
    headers: HeaderMap,
) -> Answer {
    let from = from(&query, &headers);
    let filter = match query.text("filter") {
        None | Some("") => None,
        Some(text) => Some(Filter::parse(text).map_err(|bad| {
            Refused::new(StatusCode::BAD_REQUEST, "INVALID_FILTER", bad.to_string())
        })?),
    };
    let found = match find(&app, &caller, &id).await {
        Err(Refused::Said(StatusCode::NOT_FOUND, ..)) if is_gone(&app, &caller, &id).await? => {
            return Err(Refused::gone(&id));
        }
        found => found?,
    };
    streamed(&app, caller, found.execution, &id, Wish { from, filter }).await
}

/// Whether the caller had such a session, and its events are no longer kept.
async fn is_gone(app: &App, caller: &Caller, id: &str) -> Result<bool, Refused> {
    let is_theirs = SessionId::parse(id).is_ok() || caller.sees_all();
    Ok(is_theirs && app.engine.was_forgotten(meant(caller, id)?).await?)
}

/// The first event wanted. What is no number is none, as upstream has it.
fn from(query: &Query, headers: &HeaderMap) -> u64 {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let from = query.text("from").and_then(number).or(query.text("fromSeq").and_then(number));
    let last = headers.get("last-event-id").and_then(|header| header.to_str().ok());
    from.or_else(|| last.and_then(number).map(|last| last.saturating_add(1))).unwrap_or(0)
}

async fn streamed(
    app: &Arc<App>,
    caller: Caller,
    execution: ExecutionId,
    id: &str,
    wish: Wish,
) -> Answer {
    let ended = Arc::clone(app).connection_end(caller).boxed();
    let reader = Reader::open(app, execution, wish, ended).await?;
    let reader = reader.ok_or_else(|| Refused::not_found(id))?;
    let session = HeaderValue::from_str(reader.session().as_str()).ok();
    let body = Body::from_stream(reader.batches());
    // Upstream's word. A stream must not be stored either, but its client looks for this one.
    let headers = [(CONTENT_TYPE, "application/x-ndjson"), (CACHE_CONTROL, "no-cache")];
    let mut response = (headers, body).into_response();
    if let Some(session) = session {
        response.headers_mut().insert(SESSION, session);
    }
    Ok(response)
}

/// A session that this caller may see.
struct Found {
    execution: ExecutionId,
    owner: CallerName,
    session: SessionId,
    note: Note,
}

impl Found {
    /// Whether nothing may be said in clear.
    fn is_required(&self) -> bool {
        self.note.sealed.as_ref().is_some_and(|sealed| sealed.required)
    }
}

async fn find(app: &Arc<App>, caller: &Caller, id: &str) -> Result<Found, Refused> {
    let execution = meant(caller, id)?;
    let first = app.engine.entries(execution, Seq(0), 1).await?.pop();
    let first = first.ok_or_else(|| Refused::not_found(id))?;
    let Event::Started { caller: owner, terms, .. } = &first.event else {
        return Err(Refused::not_found(id));
    };
    caller.may_see(owner, false).map_err(|denied| Refused::denied(denied, id))?;
    let (session, note) = Note::read(terms).ok_or_else(|| Refused::not_found(id))?;
    Ok(Found { execution, owner: owner.clone(), session, note })
}

/// The execution that a caller's word for a session means. Whoever sees everybody's names them by their executions.
fn meant(caller: &Caller, id: &str) -> Result<ExecutionId, Refused> {
    if let Ok(execution) = id.parse::<ExecutionId>() {
        return Ok(execution);
    }
    let session = SessionId::parse(id).map_err(|_| Refused::not_found(id))?;
    Ok(execution_of(&caller.name, &session))
}

/// `POST /sessions/{id}/tool-result`.
async fn tool_result(
    State(app): State<Arc<App>>,
    caller: Caller,
    Id(id): Id,
    AnyBody(body): AnyBody<RESULT_BODY_BYTES_MAX>,
) -> Answer {
    let found = find(&app, &caller, &id).await?;
    let result = read_result(&app, &found, &body)?;
    settle(&app, &caller, &found, result).await?;
    Ok(done(&found))
}

fn read_result(app: &App, found: &Found, body: &[u8]) -> Result<ToolResult, Refused> {
    match opened(app, found, body)? {
        Some(opened) => Ok(inbound::tool_result(&opened)?),
        None if found.is_required() => Err(Refused::in_clear()),
        None => Ok(inbound::tool_result(body)?),
    }
}

/// What is in an envelope; none where the body is no envelope.
fn opened(app: &App, found: &Found, body: &[u8]) -> Result<Option<Vec<u8>>, Refused> {
    let Some(envelope) = inbound::envelope(body) else { return Ok(None) };
    let Some(sealed) = &found.note.sealed else {
        let message = "The session is not sealed, and the body is.";
        let code = "ENCRYPTION_DECRYPTION_FAILED";
        return Err(Refused::new(StatusCode::BAD_REQUEST, code, message));
    };
    app.enclave.open(found.execution, &found.session, sealed, &envelope).map(Some)
}

async fn settle(
    app: &Arc<App>,
    caller: &Caller,
    found: &Found,
    result: ToolResult,
) -> Result<(), Refused> {
    let id = found.session.as_str();
    caller.may_cancel(&found.owner).map_err(|denied| Refused::denied(denied, id))?;
    let elsewhere = result.session.is_some_and(|session| session != found.session);
    if result.execution != found.execution || elsewhere {
        let message = format!("The call belongs to another session than {id}.");
        return Err(Refused::new(StatusCode::NOT_FOUND, "NOT_FOUND", message));
    }
    Ok(app.engine.settle(found.execution, result.call, result.outcome).await?)
}

/// `POST /sessions/{id}/cancel`, whatever the body is: it could only hold a reason, or one in an envelope.
async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Id(id): Id,
    AnyBody(body): AnyBody,
) -> Answer {
    let found = find(&app, &caller, &id).await?;
    let reason = read_reason(&app, &found, &body)?;
    end(&app, &caller, &found, reason).await?;
    Ok(done(&found))
}

fn read_reason(app: &App, found: &Found, body: &[u8]) -> Result<Option<String>, Refused> {
    if let Some(opened) = opened(app, found, body)? {
        return match inbound::message(&opened)? {
            Message::Cancel { reason } => Ok(reason),
            Message::ToolResult(_) => {
                let message = "What is in the envelope is no wish to end the session.";
                Err(Refused::new(StatusCode::BAD_REQUEST, "INVALID_REQUEST", message))
            }
        };
    }
    match inbound::cancel_reason(body) {
        Some(_) if found.is_required() => Err(Refused::in_clear()),
        reason => Ok(reason),
    }
}

/// `DELETE /sessions/{id}`: ended and forgotten.
async fn remove(State(app): State<Arc<App>>, caller: Caller, Id(id): Id) -> Answer {
    let found = find(&app, &caller, &id).await?;
    end(&app, &caller, &found, None).await?;
    let (kept, execution) = (Arc::clone(&app), found.execution);
    // A client that leaves now has asked for it all the same.
    let forgotten = app.tasks.spawn(async move {
        kept.enclave.until_unread(execution).await;
        kept.engine.forget(execution).await
    });
    match forgotten.await.map_err(|_| Rejection::ShuttingDown).map_err(engine::Error::from)? {
        // Somebody else was first.
        Ok(()) | Err(engine::Error::Rejected(Rejection::UnknownExecution(_))) => Ok(done(&found)),
        Err(error) => Err(error.into()),
    }
}

fn done(found: &Found) -> Response {
    let body = serde_json::json!({ "success": true, "sessionId": found.session.as_str() });
    json(StatusCode::OK, &body)
}

async fn end(
    app: &Arc<App>,
    caller: &Caller,
    found: &Found,
    reason: Option<String>,
) -> Result<(), Refused> {
    let id = found.session.as_str();
    caller.may_cancel(&found.owner).map_err(|denied| Refused::denied(denied, id))?;
    match app.engine.cancel_because(found.execution, caller.name.clone(), reason).await {
        // It is over, which is what was wanted.
        Ok(()) | Err(engine::Error::Rejected(Rejection::AlreadyFinished)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// `GET /sessions/{id}`.
async fn show(State(app): State<Arc<App>>, caller: Caller, Id(id): Id) -> Answer {
    let found = find(&app, &caller, &id).await?;
    let shown = described(&app, found.execution).await?;
    Ok(json(StatusCode::OK, &shown.ok_or_else(|| Refused::not_found(&id))?))
}

/// `GET /sessions`.
async fn list(State(app): State<Arc<App>>, caller: Caller) -> Answer {
    caller.may_run().map_err(|denied| Refused::denied(denied, ""))?;
    let owner = if caller.sees_all() { None } else { Some(caller.name.clone()) };
    let (mut shown, mut after) = (vec![], None);
    while shown.len() < LISTED_MAX {
        let filter = ListFilter { phases: vec![], caller: owner.clone(), after, n_max: LISTED_MAX };
        let listed = app.engine.list(filter).await?;
        let Some(last) = listed.last() else { break };
        after = Some(last.execution);
        for line in listed.iter().filter(|line| is_session(line.execution)) {
            shown.extend(described(&app, line.execution).await?);
        }
    }
    shown.truncate(LISTED_MAX);
    let total = shown.len();
    Ok(json(StatusCode::OK, &serde_json::json!({ "sessions": shown, "total": total })))
}

/// A session as its journal tells it now.
async fn described(
    app: &Arc<App>,
    execution: ExecutionId,
) -> Result<Option<serde_json::Value>, Refused> {
    let last = match app.engine.overview(execution).await {
        Ok(overview) => overview.listed.last,
        Err(engine::Error::Rejected(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut telling = Telling::new(execution);
    let mut entries = app.engine.follow(execution, Seq(0));
    let mut ended = app.clock.now();
    while let Some(entry) = entries.next().await {
        let entry: Entry = entry?;
        telling.hear(&entry);
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

/// `GET /enclave/identity`: what a client that wants to know whom it talks to pins.
async fn identity(State(app): State<Arc<App>>, caller: Caller) -> Answer {
    caller.may_run().map_err(|denied| Refused::denied(denied, ""))?;
    let key = protocols::enclave::sealing::public_of(&app.enclave.identity().await?)?;
    Ok(json(StatusCode::OK, &serde_json::json!({ "identityPubKeyB64": key, "curve": "P-256" })))
}
