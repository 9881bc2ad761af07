//! The routes of the enclave protocol, and who may use them.

use super::EnclaveState;
use super::follow::ReaderOptions;
use super::inbound::{
    end_session, find, from, is_gone, read_reason, read_result, settle_call, start,
};
use super::outbound::{described, done, json, streamed};
use super::refusals::{EnclaveRequestError, in_enclave_words, is_enclave_path};
use super::sessions::EnclaveSessions;
use super::socket::open as socket;
use crate::app::AppState;
use crate::auth::Caller;
use crate::auth::permissions::RoutePermission;
use crate::auth::permissions::access::{OWN, RUN, route};
use crate::body::AnyBody;
use crate::config::DoorSelection;
use crate::door::{Door, ResponseRewrite};
use crate::doors::DoorSettings;
use crate::query::{PathId, QueryMembers};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::FutureExt as _;
use lifecycle::{Rejection, ToolPath};
use protocols::enclave::inbound;
use protocols::enclave::{EventFilter, is_session};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::ListFilter;

/// Maximum number of sessions in one list.
const LISTED_MAX: usize = 100;

/// Maximum size of a tool's result, in an envelope and in base64.
const RESULT_BODY_BYTES_MAX: usize = 24 << 20;

/// The door for enclave clients.
struct EnclaveDoor {
    /// Aliases by which programs call tools of the catalogue.
    aliases: BTreeMap<ToolPath, ToolPath>,
}

/// Opens the door of a server with these settings.
pub(in crate::doors) fn open_door(settings: &DoorSettings) -> Option<Arc<dyn Door>> {
    (settings.which == DoorSelection::All)
        .then(|| Arc::new(EnclaveDoor { aliases: settings.enclave_tools.clone() }) as _)
}

impl Door for EnclaveDoor {
    fn permissions(&self) -> &'static [RoutePermission] {
        PERMISSIONS
    }

    fn routes(&self, app: &Arc<AppState>) -> Router {
        let records = Arc::clone(&app.stores.records);
        let sessions = EnclaveSessions::new(self.aliases.clone(), records, app.clock.clone());
        let watching = Arc::clone(&sessions).watch(app.engine.clone(), app.stopping.clone());
        app.tasks.spawn(watching);
        Router::new()
            .route("/sessions", get(list_sessions).post(create))
            .route("/execute", post(create))
            .route("/sessions/{id}", get(show_session).delete(remove))
            .route("/sessions/{id}/stream", get(stream))
            .route("/sessions/{id}/tool-result", post(tool_result))
            .route("/sessions/{id}/cancel", post(cancel))
            .route("/enclave/ws", get(socket))
            .route("/enclave/identity", get(identity))
            .with_state(EnclaveState { app: Arc::clone(app), own: sessions })
    }

    fn takes_token_in_url(&self, path: &str) -> bool {
        path == "/enclave/ws"
    }

    fn response_rewrite(&self, path: &str) -> Option<ResponseRewrite> {
        is_enclave_path(path).then_some(|response| in_enclave_words(response).boxed())
    }
}

/// The access requirement of each of these routes.
const PERMISSIONS: &[RoutePermission] = &[
    route("GET", "/sessions", RUN),
    route("POST", "/sessions", RUN),
    route("POST", "/execute", RUN),
    route("GET", "/sessions/{id}", OWN),
    route("DELETE", "/sessions/{id}", OWN),
    route("GET", "/sessions/{id}/stream", OWN),
    route("POST", "/sessions/{id}/tool-result", OWN),
    route("POST", "/sessions/{id}/cancel", OWN),
    route("GET", "/enclave/ws", RUN),
    route("GET", "/enclave/identity", RUN),
];

type HandlerResult = Result<Response, EnclaveRequestError>;

/// `POST /sessions`.
async fn create(
    State(door): State<EnclaveState>,
    caller: Caller,
    AnyBody(body): AnyBody,
) -> HandlerResult {
    caller.may_run().map_err(|denied| EnclaveRequestError::denied(denied, ""))?;
    let create = inbound::create(&body)?;
    let filter = create.filter.clone();
    let execution = start(&door, &caller.name, create).await?;
    streamed(&door, caller, execution, "", ReaderOptions { from: 0, filter }).await
}

/// `GET /sessions/{id}/stream`.
async fn stream(
    State(door): State<EnclaveState>,
    caller: Caller,
    PathId(id): PathId,
    query: QueryMembers,
    headers: HeaderMap,
) -> HandlerResult {
    let from = from(&query, &headers);
    let filter = match query.text_member("filter") {
        None | Some("") => None,
        Some(text) => Some(EventFilter::parse(text).map_err(|bad| {
            EnclaveRequestError::new(StatusCode::BAD_REQUEST, "INVALID_FILTER", bad.to_string())
        })?),
    };
    let found = match find(&door, &caller, &id).await {
        Err(EnclaveRequestError::Said(StatusCode::NOT_FOUND, ..))
            if is_gone(&door, &caller, &id).await? =>
        {
            return Err(EnclaveRequestError::gone(&id));
        }
        found => found?,
    };
    streamed(&door, caller, found.execution, &id, ReaderOptions { from, filter }).await
}

/// `POST /sessions/{id}/tool-result`.
async fn tool_result(
    State(door): State<EnclaveState>,
    caller: Caller,
    PathId(id): PathId,
    AnyBody(body): AnyBody<RESULT_BODY_BYTES_MAX>,
) -> HandlerResult {
    let found = find(&door, &caller, &id).await?;
    let result = read_result(&door, &found, &body)?;
    settle_call(&door, &caller, &found, result).await?;
    Ok(done(&found))
}

/// `POST /sessions/{id}/cancel`, with any body: it could only contain a reason, or one in an envelope.
async fn cancel(
    State(door): State<EnclaveState>,
    caller: Caller,
    PathId(id): PathId,
    AnyBody(body): AnyBody,
) -> HandlerResult {
    let found = find(&door, &caller, &id).await?;
    let reason = read_reason(&door, &found, &body)?;
    end_session(&door, &caller, &found, reason).await?;
    Ok(done(&found))
}

/// `DELETE /sessions/{id}`: ends and removes the session.
async fn remove(
    State(door): State<EnclaveState>,
    caller: Caller,
    PathId(id): PathId,
) -> HandlerResult {
    let found = find(&door, &caller, &id).await?;
    end_session(&door, &caller, &found, None).await?;
    let (kept, execution) = (door.clone(), found.execution);
    // The session is removed even if the client disconnects now.
    let forgotten = door.app.tasks.spawn(async move {
        kept.own.until_unread(execution).await;
        kept.app.engine.delete_execution(execution).await
    });
    match forgotten.await.map_err(|_| Rejection::ShuttingDown).map_err(engine::Error::from)? {
        // Another request was first.
        Ok(()) | Err(engine::Error::Rejected(Rejection::UnknownExecution(_))) => Ok(done(&found)),
        Err(error) => Err(error.into()),
    }
}

/// `GET /sessions/{id}`.
async fn show_session(
    State(door): State<EnclaveState>,
    caller: Caller,
    PathId(id): PathId,
) -> HandlerResult {
    let found = find(&door, &caller, &id).await?;
    let shown = described(&door, found.execution).await?;
    Ok(json(StatusCode::OK, &shown.ok_or_else(|| EnclaveRequestError::not_found(&id))?))
}

/// `GET /sessions`.
async fn list_sessions(State(door): State<EnclaveState>, caller: Caller) -> HandlerResult {
    caller.may_run().map_err(|denied| EnclaveRequestError::denied(denied, ""))?;
    let owner = if caller.sees_all() { None } else { Some(caller.name.clone()) };
    let (mut shown, mut after) = (vec![], None);
    while shown.len() < LISTED_MAX {
        let filter = ListFilter { phases: vec![], caller: owner.clone(), after, n_max: LISTED_MAX };
        let listed = door.app.engine.list_executions(filter).await?;
        let Some(last) = listed.last() else { break };
        after = Some(last.execution);
        for line in listed.iter().filter(|line| is_session(line.execution)) {
            shown.extend(described(&door, line.execution).await?);
        }
    }
    shown.truncate(LISTED_MAX);
    let total = shown.len();
    Ok(json(StatusCode::OK, &serde_json::json!({ "sessions": shown, "total": total })))
}

/// `GET /enclave/identity`: the server's public key, which clients pin to authenticate it.
async fn identity(State(door): State<EnclaveState>, caller: Caller) -> HandlerResult {
    caller.may_run().map_err(|denied| EnclaveRequestError::denied(denied, ""))?;
    let key = protocols::enclave::sealing::public_of(&door.own.identity().await?)?;
    Ok(json(StatusCode::OK, &serde_json::json!({ "identityPubKeyB64": key, "curve": "P-256" })))
}
