//! The HTTP side: who comes in, by which of rmcp's two services, and whose session it is.

use super::door::Door;
use super::seal::Seal;
use super::short;
use super::terms::{Mode, Terms};
use super::visit::Visit;
use crate::app::App;
use crate::auth::Caller;
use crate::body::{BODY_BYTES_MAX, read};
use crate::config::Config;
use crate::error::Problem;
use crate::guard::guard;
use crate::query::Query;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderName, Method};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::get;
use futures_util::StreamExt as _;
use lifecycle::CallerName;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use store::Records;
use tokio_util::sync::CancellationToken;

/// Sessions at a time, each a task and a few channels; idle ones end after five minutes.
const SESSIONS_MAX: usize = 1_024;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// rmcp's services, and whose sessions they keep.
pub(crate) struct Mcp<H = Door> {
    /// Each request by itself.
    stateless: StreamableHttpService<H, LocalSessionManager>,
    /// Older revisions where the client shows forms.
    sessions: StreamableHttpService<H, LocalSessionManager>,
    keeper: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<Arc<str>, CallerName>>,
    pub(super) seal: Seal,
}

impl Mcp {
    pub(crate) fn new(stopping: &CancellationToken, records: Arc<dyn Records>) -> Self {
        Self::with(Door, stopping, records)
    }
}

impl<H: ServerHandler + Clone> Mcp<H> {
    fn with(handler: H, stopping: &CancellationToken, records: Arc<dyn Records>) -> Self {
        let keeper = Arc::new(LocalSessionManager::default());
        let config = |sessions| {
            // Host and Origin are looked at before anything gets here.
            StreamableHttpServerConfig::default()
                .disable_allowed_hosts()
                .with_legacy_session_mode(sessions)
                .with_json_response(true)
                .with_max_request_body_bytes(BODY_BYTES_MAX)
                .with_cancellation_token(stopping.child_token())
        };
        // Keeps no session. Of the same kind as the other, so that rmcp's code for it is compiled once.
        let never = Arc::new(LocalSessionManager::default());
        let (one, two) = (handler.clone(), handler);
        Self {
            stateless: StreamableHttpService::new(move || Ok(one.clone()), never, config(false)),
            sessions: StreamableHttpService::new(
                move || Ok(two.clone()),
                Arc::clone(&keeper),
                config(true),
            ),
            keeper,
            owners: Mutex::default(),
            seal: Seal::new(records),
        }
    }

    /// Answers by rmcp.
    async fn serve(&self, visit: Arc<Visit>, request: Request<Bytes>) -> Result<Response, Problem> {
        log_hello(&visit, request.body());
        let mut request = request.map(Body::from);
        request.extensions_mut().insert(Arc::clone(&visit));
        if visit.terms.mode != Mode::Native {
            let response = self.stateless.handle(request).await.map(Body::new);
            return Ok(until_credential_end(&visit, response));
        }
        let caller = &visit.caller.name;
        let named = session(request.headers());
        match &named {
            Some(id) => self.owned(id, caller)?,
            None if self.keeper.sessions.read().await.len() >= SESSIONS_MAX => {
                return Err(Problem::no_channel(SESSIONS_MAX));
            }
            None => {}
        }
        let response = self.sessions.handle(request).await;
        if let (None, Some(id)) = (named, session(response.headers())) {
            self.own(id, caller).await;
        }
        Ok(until_credential_end(&visit, response.map(Body::new)))
    }

    /// A session is its opener's; to others it is as if it did not exist.
    fn owned(&self, id: &str, caller: &CallerName) -> Result<(), Problem> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        match owners.get(id) {
            Some(owner) if owner != caller => Err(Problem::no_session()),
            // Whether an unknown one exists, rmcp knows: it answers that there is none.
            Some(_) | None => Ok(()),
        }
    }

    async fn own(&self, id: Arc<str>, caller: &CallerName) {
        let alive = self.keeper.sessions.read().await;
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|id, _| alive.contains_key(id.as_ref()));
        owners.insert(id, caller.clone());
    }
}

/// Ends an event stream with its caller's credential. Answers of one piece are complete when they get here.
fn until_credential_end(visit: &Arc<Visit>, response: Response) -> Response {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return response;
    }
    let ended = Arc::clone(&visit.app).connection_end(visit.caller.clone());
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(ended))))
}

fn session(headers: &HeaderMap) -> Option<Arc<str>> {
    headers.get(SESSION)?.to_str().ok().map(Arc::from)
}

/// `/mcp` by the router: every method but POST, and all of them where there is no socket.
pub(crate) async fn mcp(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Query,
    request: Request,
) -> Result<Response, Problem> {
    answer(app, caller, &query, None, request).await
}

/// Answers a request to `/mcp` that comes from `peer`.
pub(crate) async fn answer(
    app: Arc<App>,
    caller: Caller,
    query: &Query,
    peer: Option<SocketAddr>,
    request: Request,
) -> Result<Response, Problem> {
    let (visit, request) = enter(&app, caller, query, peer, request).await?;
    match short::answer(&visit, &request).await {
        Some(answer) => Ok(answer),
        // In a box: it is large, and seldom needed.
        None => Box::pin(app.mcp.serve(visit, request)).await,
    }
}

/// For `AIRLOCK_MCP_DEBUG`: what a client says of itself as it comes. In the older revisions it says so only then.
fn log_hello(visit: &Visit, body: &[u8]) {
    if !tracing::enabled!(target: "mcp", tracing::Level::DEBUG) {
        return;
    }
    let hello = serde_json::from_slice::<Value>(body).unwrap_or_default();
    if hello["method"] == "initialize" {
        let (caller, params) = (&visit.caller.name, &hello["params"]);
        let (client, capabilities) = (&params["clientInfo"], &params["capabilities"]);
        tracing::debug!(target: "mcp", %caller, %client, %capabilities, "hello");
    }
}

/// Longest name of a session that links repeat.
const SESSION_CHARS_MAX: usize = 128;

/// The session that a request names, where its name can be part of a link as it is.
fn session_name(headers: &HeaderMap) -> Option<String> {
    let name = headers.get("mcp-session-id")?.to_str().ok()?;
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    (is_plain && (1..=SESSION_CHARS_MAX).contains(&name.len())).then(|| name.to_owned())
}

/// Lets a caller in: its visit, and its request with all of the body.
async fn enter(
    app: &Arc<App>,
    caller: Caller,
    query: &Query,
    peer: Option<SocketAddr>,
    request: Request,
) -> Result<(Arc<Visit>, Request<Bytes>), Problem> {
    caller.may_run().map_err(|denied| Problem::denied(denied, ""))?;
    let terms = Terms::read(query, caller.answers)?;
    let host = request.headers().get(HOST).cloned();
    let session = session_name(request.headers());
    let visit = Arc::new(Visit { app: Arc::clone(app), caller, terms, host, peer, session });
    Ok((visit, bounded(request).await?))
}

/// `/mcp` alone, with another handler behind it. Conformance suites call tools that no product has: a
/// test lends them its own, and everything before the handler is as it is served.
#[doc(hidden)]
pub fn mcp_with<H: ServerHandler + Clone>(config: Config, handler: H) -> Router {
    let records = Arc::clone(&config.records);
    let app = App::new(config);
    let lent = Arc::new(Mcp::with(handler, &app.stopping, records));
    let serve =
        async move |State(app): State<Arc<App>>, caller: Caller, query: Query, request: Request| {
            let (visit, request) = enter(&app, caller, &query, None, request).await?;
            lent.serve(visit, request).await
        };
    let methods = get(serve.clone()).post(serve.clone()).delete(serve);
    Router::new()
        .route("/mcp", methods)
        .layer(from_fn_with_state(Arc::clone(&app), guard))
        .with_state(app)
}

/// The body, all of it and in time, before anybody waits for it.
async fn bounded(request: Request) -> Result<Request<Bytes>, Problem> {
    let (parts, body) = request.into_parts();
    let body = match parts.method {
        Method::POST => read(body).await?,
        _ => Bytes::new(),
    };
    Ok(Request::from_parts(parts, body))
}
