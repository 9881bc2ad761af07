//! The route of MCP, its permissions, the choice between rmcp's two services, and the ownership of sessions.

use super::McpState;
use super::handler::McpHandler;
use super::inbound::{ConnectionTerms, ElicitationMode};
use super::native_sessions::NativeSessions;
use super::seal::RequestStateSealer;
use super::session_records::SessionRecords;
use super::visit::McpRequestContext;
use crate::app::AppState;
use crate::auth::Caller;
use crate::auth::permissions::RoutePermission;
use crate::auth::permissions::access::{RUN, route};
use crate::body::{BODY_BYTES_MAX, read};
use crate::config::{Config, DoorSelection};
use crate::connection_service::ConnectionEndpoints;
use crate::door::{Door, DoorState};
use crate::doors::DoorSettings;
use crate::error::RequestError;
use crate::guard::guard;
use crate::journal_views::JournalViews;
use crate::query::QueryMembers;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::StreamExt as _;
use lifecycle::CallerName;
use protocols::mcp::unreadable_message;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::RecordStore;
use tokio_util::sync::CancellationToken;

/// Maximum number of sessions in memory, each a task and a few channels. A session that is idle for five minutes
/// leaves memory; its record restores it.
pub(super) const SESSIONS_MAX: usize = 1_024;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The door for MCP clients.
struct McpDoor;

/// Opens the door of a server with these settings.
pub(in crate::doors) fn open_door(settings: &DoorSettings) -> Option<Arc<dyn Door>> {
    (settings.which == DoorSelection::All).then(|| Arc::new(McpDoor) as _)
}

impl Door for McpDoor {
    fn permissions(&self) -> &'static [RoutePermission] {
        PERMISSIONS
    }

    fn routes(&self, app: &Arc<AppState>) -> Router {
        served_by(McpHandler, app)
    }

    fn takes_token_in_url(&self, path: &str) -> bool {
        path == "/mcp"
    }
}

/// The access requirement of each of these routes.
const PERMISSIONS: &[RoutePermission] =
    &[route("GET", "/mcp", RUN), route("POST", "/mcp", RUN), route("DELETE", "/mcp", RUN)];

/// The routes with this handler.
fn served_by<H: ServerHandler + Clone>(handler: H, app: &Arc<AppState>) -> Router {
    let own = McpService::new(handler, &app.stopping, Arc::clone(&app.stores.records));
    Router::new()
        .route("/mcp", get(mcp::<H>).post(mcp::<H>).delete(mcp::<H>))
        .with_state(DoorState::new(app, own))
}

/// rmcp's services, and the owners of their sessions.
struct McpService<H> {
    /// Serves each request by itself.
    stateless: StreamableHttpService<H, NativeSessions>,
    /// Serves older revisions of clients that show forms.
    sessions: StreamableHttpService<H, NativeSessions>,
    keeper: Arc<NativeSessions>,
    owners: Mutex<HashMap<Arc<str>, CallerName>>,
    /// Restores sessions after a restart.
    session_records: SessionRecords,
    state: Arc<McpState>,
}

impl<H: ServerHandler + Clone> McpService<H> {
    fn new(handler: H, stopping: &CancellationToken, records: Arc<dyn RecordStore>) -> Self {
        let keeper = Arc::new(NativeSessions::default());
        let session_records = SessionRecords::new(Arc::clone(&records));
        let config = |sessions| {
            // Host and Origin are checked before a request arrives here.
            let mut config = StreamableHttpServerConfig::default()
                .disable_allowed_hosts()
                .with_legacy_session_mode(sessions)
                .with_json_response(true)
                .with_max_request_body_bytes(BODY_BYTES_MAX)
                .with_cancellation_token(stopping.child_token());
            config.session_store = sessions.then(|| Arc::new(session_records.clone()) as _);
            config
        };
        // Has no session. Of the same type as the other, so that rmcp's code for it is compiled once.
        let never = Arc::new(NativeSessions::default());
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
            session_records,
            state: Arc::new(McpState {
                narrations: JournalViews::default(),
                seal: RequestStateSealer::new(records),
            }),
        }
    }

    /// Passes a request to rmcp.
    async fn serve(
        &self,
        visit: Arc<McpRequestContext>,
        request: Request<Bytes>,
    ) -> Result<Response, RequestError> {
        log_hello(&visit, request.body());
        let (method, body) = (request.method().clone(), request.body().clone());
        let is_json = is_json(request.headers());
        let mut request = request.map(Body::from);
        request.extensions_mut().insert(Arc::clone(&visit));
        let response = match visit.terms.mode {
            ElicitationMode::Native => self.serve_in_session(&visit, request, &body).await?,
            ElicitationMode::Model | ElicitationMode::Browser => {
                self.stateless.handle(request).await.map(Body::new)
            }
        };
        Ok(match (method, response.status()) {
            // rmcp answers unreadable bodies with 415 and a sentence, regardless of their content type.
            (Method::POST, StatusCode::UNSUPPORTED_MEDIA_TYPE) if is_json => unreadable(&body),
            // The session is already gone: nothing remains to be done later.
            (Method::DELETE, StatusCode::ACCEPTED) => StatusCode::NO_CONTENT.into_response(),
            (_, _) => until_credential_end(&visit, response),
        })
    }

    async fn serve_in_session(
        &self,
        visit: &McpRequestContext,
        request: Request,
        body: &[u8],
    ) -> Result<Response, RequestError> {
        let caller = &visit.caller.name;
        let named = session(request.headers());
        match &named {
            Some(id) => self.check_owner(id, caller).await?,
            None if self.keeper.n_open().await >= SESSIONS_MAX => {
                return Err(RequestError::no_channel(SESSIONS_MAX));
            }
            None => {}
        }
        let response = self.sessions.handle(request).await;
        if let (None, Some(id)) = (named, session(response.headers())) {
            let now = visit.app.clock.now();
            self.session_records.add(&id, caller, body, now).await;
            self.own(id, caller).await;
        }
        Ok(response.map(Body::new))
    }

    /// A session belongs to its opener; for others it is treated as if it did not exist.
    async fn check_owner(&self, id: &Arc<str>, caller: &CallerName) -> Result<(), RequestError> {
        let known = {
            let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
            owners.get(id).cloned()
        };
        let is_known = known.is_some();
        let owner = match known {
            Some(owner) => Some(owner),
            None => self.session_records.owner(id).await.map_err(engine::Fault::from)?,
        };
        match owner {
            Some(owner) if owner != *caller => Err(RequestError::no_session()),
            Some(_) if !is_known => {
                self.own(Arc::clone(id), caller).await;
                Ok(())
            }
            // rmcp answers requests for an unknown session.
            Some(_) | None => Ok(()),
        }
    }

    async fn own(&self, id: Arc<str>, caller: &CallerName) {
        let open = self.keeper.open().await;
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        // Above this number, owners are read from the records again.
        if owners.len() >= SESSIONS_MAX {
            owners.retain(|id, _| open.contains(id.as_ref()));
        }
        owners.insert(id, caller.clone());
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// The JSON-RPC error for a body that is not a message.
fn unreadable(body: &[u8]) -> Response {
    let answer = unreadable_message(body).error_response();
    (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "application/json")], answer).into_response()
}

/// Ends an event stream with its caller's credential. Answers in one piece are already complete here.
fn until_credential_end(visit: &Arc<McpRequestContext>, response: Response) -> Response {
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

/// `/mcp`.
async fn mcp<H: ServerHandler + Clone>(
    State(door): State<DoorState<McpService<H>>>,
    caller: Caller,
    query: QueryMembers,
    request: Request,
) -> Result<Response, RequestError> {
    let (visit, request) = handle_request(&door, caller, &query, request).await?;
    // Boxed, because it is large.
    Box::pin(door.own.serve(visit, request)).await
}

/// For `AIRLOCK_MCP_DEBUG`: logs the client's description of itself. Older revisions only send it in `initialize`.
fn log_hello(visit: &McpRequestContext, body: &[u8]) {
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

/// Maximum length of a session name that is repeated in links.
const SESSION_CHARS_MAX: usize = 128;

/// The session of a request, if its name can be part of a link unchanged.
fn session_name(headers: &HeaderMap) -> Option<String> {
    let name = headers.get("mcp-session-id")?.to_str().ok()?;
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    (is_plain && (1..=SESSION_CHARS_MAX).contains(&name.len())).then(|| name.to_owned())
}

/// Admits a caller: returns its context, and its request with the whole body.
async fn handle_request<H>(
    door: &DoorState<McpService<H>>,
    caller: Caller,
    query: &QueryMembers,
    request: Request,
) -> Result<(Arc<McpRequestContext>, Request<Bytes>), RequestError> {
    caller.may_run().map_err(|denied| RequestError::denied(denied, ""))?;
    let terms = ConnectionTerms::read(query, caller.answers)?;
    let host = request.headers().get(HOST).cloned();
    let session = session_name(request.headers());
    let endpoints = request.extensions().get::<ConnectionEndpoints>();
    let peer = endpoints.map(|endpoints| endpoints.peer);
    let visit = Arc::new(McpRequestContext {
        app: Arc::clone(&door.app),
        state: Arc::clone(&door.own.state),
        caller,
        terms,
        host,
        peer,
        session,
    });
    Ok((visit, bounded(request).await?))
}

/// `/mcp` alone, with another handler. Conformance suites call tools that no product has: a test provides them, and
/// everything before the handler is the same as in the server.
#[doc(hidden)]
pub fn mcp_with<H: ServerHandler + Clone>(config: Config, handler: H) -> Router {
    let app = AppState::new(config);
    served_by(handler, &app).layer(from_fn_with_state(app, guard))
}

/// Reads the whole body within its time limit, before the handler waits for it.
async fn bounded(request: Request) -> Result<Request<Bytes>, RequestError> {
    let (parts, body) = request.into_parts();
    let body = match parts.method {
        Method::POST => read(body).await?,
        _ => Bytes::new(),
    };
    Ok(Request::from_parts(parts, body))
}
