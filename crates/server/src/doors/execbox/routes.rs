//! The route of hosts that connect to this server, and who may use it.

use super::ExecboxChannels;
use crate::app::AppState;
use crate::auth::Caller;
use crate::auth::permissions::RoutePermission;
use crate::auth::permissions::access::{RUN, route};
use crate::config::DoorSelection;
use crate::door::{Door, DoorState};
use crate::doors::DoorSettings;
use crate::error::RequestError;
use axum::Router;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::response::Response;
use axum::routing::get;
use std::sync::Arc;

/// The door for hosts that run their programs' tools themselves.
struct ExecboxDoor;

/// Opens the door of a server with these settings.
pub(in crate::doors) fn open_door(settings: &DoorSettings) -> Option<Arc<dyn Door>> {
    (settings.which == DoorSelection::All).then(|| Arc::new(ExecboxDoor) as _)
}

impl Door for ExecboxDoor {
    fn permissions(&self) -> &'static [RoutePermission] {
        PERMISSIONS
    }

    fn routes(&self, app: &Arc<AppState>) -> Router {
        let sandbox = app.engine.sandbox().clone();
        let channels = ExecboxChannels::new(sandbox, app.stopping.clone(), app.tasks.clone());
        Router::new().route("/execbox", get(connect)).with_state(DoorState::new(app, channels))
    }

    fn takes_token_in_url(&self, path: &str) -> bool {
        path == "/execbox"
    }
}

/// The access requirement of this route.
const PERMISSIONS: &[RoutePermission] = &[route("GET", "/execbox", RUN)];

/// `GET /execbox`: upgrades to a WebSocket with one JSON text per frame.
async fn connect(
    State(door): State<DoorState<ExecboxChannels>>,
    caller: Caller,
    upgrade: WebSocketUpgrade,
) -> Result<Response, RequestError> {
    caller.may_run().map_err(|denied| RequestError::denied(denied, ""))?;
    let account = door.app.engine.quotas().account(&caller.name);
    let held = account.hold_runner().map_err(engine::Error::from)?;
    let counted = Some((account, held));
    let watching = Arc::clone(&door.app);
    let ended = async move { watching.credential_end(&caller).await };
    door.own.open(upgrade, counted, ended)
}
