//! The routes of the REPL, and who may use them.

use crate::app::AppState;
use crate::auth::Caller;
use crate::auth::permissions::RoutePermission;
use crate::auth::permissions::access::{RUN, SECRET, route};
use crate::config::DoorSelection;
use crate::door::{Door, DoorState};
use crate::doors::DoorSettings;
use crate::error::RequestError;
use crate::query::QueryMembers;
use axum::Router;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;
use protocols::hotrepl::{MESSAGE_BYTES_MAX, ValueProfile};
use repl::{AttachRequest, ReplSessions, ReplSettings, SESSIONS_MAX, SessionOpenRefusal};
use std::sync::Arc;
use transport::{FrameBounds, accept_upgrade};

/// Maximum length of a session's name.
const NAME_BYTES_MAX: usize = 128;

/// Maximum size of a frame that is read: a slightly oversized frame is answered instead of closing the connection.
const FRAME_BYTES_MAX: usize = 4 * MESSAGE_BYTES_MAX;

/// The door for HotRepl's clients.
struct ReplDoor {
    /// Alone it serves every path: its clients know an address and no path.
    which: DoorSelection,
    settings: ReplSettings,
}

/// Opens the door of a server with these settings.
pub(in crate::doors) fn open_door(settings: &DoorSettings) -> Option<Arc<dyn Door>> {
    Some(Arc::new(ReplDoor { which: settings.which, settings: settings.repl.clone() }))
}

impl Door for ReplDoor {
    fn permissions(&self) -> &'static [RoutePermission] {
        PERMISSIONS
    }

    fn routes(&self, app: &Arc<AppState>) -> Router {
        let commands = match &app.sources {
            Some(sources) => sources.commands(),
            None => tokio::sync::watch::Sender::default().subscribe(),
        };
        let stores = app.stores.clone();
        let repl = ReplSessions::start(repl::Config {
            engine: app.engine.clone(),
            clock: app.clock.clone(),
            settings: self.settings.clone(),
            records: stores.records,
            blobs: stores.blobs,
            notes: stores.notes,
            commands,
            stopping: app.stopping.clone(),
            tasks: app.tasks.tracker(),
        });
        let routes = Router::new()
            .route("/repl", get(connect))
            .route("/repl/artifacts/{capability}/{name}", get(artifact));
        let routes = match self.which {
            DoorSelection::All => routes,
            DoorSelection::Repl => routes.fallback(get(connect)),
        };
        routes.with_state(DoorState::new(app, repl))
    }

    fn takes_token_in_url(&self, path: &str) -> bool {
        match self.which {
            DoorSelection::All => path == "/repl",
            DoorSelection::Repl => !path.starts_with("/api/") && !path.starts_with("/repl/"),
        }
    }
}

/// The access requirement of each of these routes.
const PERMISSIONS: &[RoutePermission] =
    &[route("GET", "/repl", RUN), route("GET", "/repl/artifacts/{capability}/{name}", SECRET)];

/// `GET /repl`: upgrades to a WebSocket with one JSON object per text frame.
async fn connect(
    State(door): State<DoorState<ReplSessions>>,
    caller: Caller,
    query: QueryMembers,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, RequestError> {
    caller.may_run().map_err(|denied| RequestError::denied(denied, ""))?;
    let name = query.text_member("session").unwrap_or_default().to_owned();
    if name.len() > NAME_BYTES_MAX {
        let message = format!("The name of a session has at most {NAME_BYTES_MAX} bytes.");
        return Err(RequestError::bad_request(message));
    }
    let profile = match query.text_member("values") {
        Some("native") => ValueProfile::Native,
        Some(_) | None => ValueProfile::Text,
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let host = host.to_owned();
    door.own.open(&caller.name, &name).map_err(session_refusal)?;
    let token = door.app.tasks.token();
    let bounds = FrameBounds::strict(FRAME_BYTES_MAX);
    Ok(accept_upgrade(upgrade, bounds, async move |reader, writer| {
        let (watching, owner) = (Arc::clone(&door.app), caller.clone());
        let ended = Box::pin(async move { watching.credential_end(&owner).await });
        let (reader, writer) = (Box::new(reader), Box::new(writer));
        let attach = AttachRequest { reader, writer, profile, host, ended };
        if let Err(refusal) = door.own.attach(&caller.name, &name, attach).await {
            tracing::debug!(%refusal, "a client lost its session while it connected");
        }
        drop(token);
    }))
}

fn session_refusal(refusal: SessionOpenRefusal) -> RequestError {
    match refusal {
        SessionOpenRefusal::TooMany => RequestError::no_channel(SESSIONS_MAX),
        SessionOpenRefusal::Engine(error) => error.into(),
    }
}

/// `GET /repl/artifacts/{capability}/{name}`: the file that the capability opens. The capability is the
/// authorization.
async fn artifact(
    State(door): State<DoorState<ReplSessions>>,
    Path((capability, _)): Path<(String, String)>,
) -> Result<Response, RequestError> {
    let found = door.own.artifact(&capability).await;
    let artifact = found.ok_or_else(|| RequestError::no_route("/repl/artifacts"))?;
    Response::builder()
        .status(StatusCode::OK)
        .header(CONTENT_TYPE, header_safe(&artifact.content_type))
        // A guest wrote the file: a browser must not show it as a page of this server.
        .header(CONTENT_DISPOSITION, format!("attachment; filename=\"{}\"", artifact.name))
        .header("Content-Security-Policy", "sandbox; default-src 'none'")
        .body(Body::from(artifact.bytes))
        .map_err(|error| RequestError::broken(&error))
}

fn header_safe(content_type: &str) -> &str {
    let is_safe = content_type.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if is_safe { content_type } else { "application/octet-stream" }
}
