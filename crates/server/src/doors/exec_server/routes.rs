//! The route of the server's own exec-server, and who may use it.

use crate::app::AppState;
use crate::auth::permissions::RoutePermission;
use crate::auth::permissions::access::{PROCESS, route};
use crate::auth::{Caller, Scope};
use crate::config::DoorSelection;
use crate::door::{Door, DoorState};
use crate::doors::DoorSettings;
use crate::error::RequestError;
use ::exec_server::{CONNECTIONS_MAX, ExecServer};
use axum::Router;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::HeaderMap;
use axum::http::header::ORIGIN;
use axum::response::Response;
use axum::routing::get;
use futures_util::future::{BoxFuture, FutureExt as _};
use protocols::exec_server::{FRAME_BYTES_MAX, MESSAGE_BYTES_MAX};
use std::sync::Arc;
use transport::{FrameBounds, accept_upgrade};

/// Limits on what is read from a client over a WebSocket.
const FRAME_BOUNDS: FrameBounds = FrameBounds {
    message_bytes_max: MESSAGE_BYTES_MAX,
    read_bytes_max: MESSAGE_BYTES_MAX,
    frame_bytes_max: FRAME_BYTES_MAX,
};

/// The door for clients that control processes.
struct ExecServerDoor {
    /// None if the door is closed.
    server: Option<ExecServer>,
}

/// Opens the door of a server with these settings.
pub(in crate::doors) fn open_door(settings: &DoorSettings) -> Option<Arc<dyn Door>> {
    (settings.which == DoorSelection::All)
        .then(|| Arc::new(ExecServerDoor { server: settings.exec_server.clone() }) as _)
}

impl Door for ExecServerDoor {
    fn permissions(&self) -> &'static [RoutePermission] {
        PERMISSIONS
    }

    fn routes(&self, app: &Arc<AppState>) -> Router {
        Router::new()
            .route("/exec", get(connect))
            .with_state(DoorState::new(app, self.server.clone()))
    }

    fn takes_token_in_url(&self, path: &str) -> bool {
        path == "/exec"
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        match &self.server {
            Some(server) => server.shutdown().boxed(),
            None => std::future::ready(()).boxed(),
        }
    }
}

/// The access requirement of this route.
const PERMISSIONS: &[RoutePermission] = &[route("GET", "/exec", PROCESS)];

/// `GET /exec`: upgrades to a WebSocket with one JSON text per frame.
async fn connect(
    State(door): State<DoorState<Option<ExecServer>>>,
    caller: Caller,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, RequestError> {
    let Some(server) = &*door.own else { return Err(RequestError::no_route("/exec")) };
    caller.may_spawn().map_err(|_| RequestError::needs(Scope::Process))?;
    no_page(&headers)?;
    let owner = caller.name.0.clone();
    let watching = Arc::clone(&door.app);
    let ended = async move { watching.credential_end(&caller).await };
    serve_upgraded(server, owner, upgrade, ended)
}

/// Refuses every web page, even one of this machine.
pub(super) fn no_page(headers: &HeaderMap) -> Result<(), RequestError> {
    match headers.contains_key(ORIGIN) {
        true => Err(RequestError::forbidden("Web pages may not talk to an exec-server.")),
        false => Ok(()),
    }
}

/// Upgrades a request to a connection, and serves its client until it leaves or `ended` resolves.
pub(super) fn serve_upgraded(
    server: &ExecServer,
    owner: String,
    upgrade: WebSocketUpgrade,
    ended: impl Future<Output = ()> + Send + 'static,
) -> Result<Response, RequestError> {
    let place = server.admit_client().map_err(|_| RequestError::no_channel(CONNECTIONS_MAX))?;
    let server = server.clone();
    Ok(accept_upgrade(upgrade, FRAME_BOUNDS, async move |reader, writer| {
        server.serve(place, owner, (reader, writer), ended).await;
    }))
}
