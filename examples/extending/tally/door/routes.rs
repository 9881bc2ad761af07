//! The route of tally, and who may use it.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::routing::get;
use protocols::tally::{read_phase, write_counts};
use server::auth::Scope;
use server::auth::permissions::{RouteAccess, RoutePermission};
use server::{AppState, Caller, Door, DoorSettings, DoorState, RequestError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::ListFilter;

/// Executions that are counted at most.
const COUNTED_MAX: usize = 1_000;

/// The door. Its settings would be its fields.
struct TallyDoor;

/// What all requests of the door share: how many there were.
#[derive(Default)]
struct TallyState {
    n_requests: AtomicU64,
}

/// The door, as a server with these settings has it.
pub(in super::super) fn open_door(_: &DoorSettings) -> Option<Arc<dyn Door>> {
    Some(Arc::new(TallyDoor))
}

impl Door for TallyDoor {
    fn permissions(&self) -> &'static [RoutePermission] {
        &[RoutePermission {
            method: "GET",
            path: "/tally",
            access: RouteAccess::Scoped(Scope::Run),
        }]
    }

    fn routes(&self, app: &Arc<AppState>) -> Router {
        Router::new()
            .route("/tally", get(count))
            .with_state(DoorState::new(app, TallyState::default()))
    }
}

/// `GET /tally?PHASE`: the caller's executions in each phase, or in one.
async fn count(
    State(door): State<DoorState<TallyState>>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<String, RequestError> {
    caller.require(Scope::Run)?;
    let phase = read_phase(query.as_deref().unwrap_or_default())
        .map_err(|bad| RequestError::bad_request(format!("The request names no phase: {bad}.")))?;
    let filter = ListFilter {
        phases: phase.into_iter().collect(),
        caller: Some(caller.name().clone()),
        after: None,
        n_max: COUNTED_MAX,
    };
    let listed = door.app.engine().list_executions(filter).await?;
    let n_requests = door.own.n_requests.fetch_add(1, Ordering::Relaxed) + 1;
    let counts = write_counts(listed.iter().map(|listed| listed.standing.phase));
    Ok(format!("{counts}requests {n_requests}\n"))
}
