//! The trait of a door: the front end of one protocol, as a value with its routes, its state and its settings.

use crate::app::AppState;
use crate::auth::permissions::RoutePermission;
use axum::Router;
use axum::extract::FromRef;
use axum::response::Response;
use futures_util::future::{BoxFuture, FutureExt as _};
use std::sync::Arc;

/// Converts a response of the server into a door's own format.
pub type ResponseRewrite = fn(Response) -> BoxFuture<'static, Response>;

/// The front end of one protocol. The value holds the door's settings; its routes hold its state.
///
/// `docs/extending.md` describes how to add one.
pub trait Door: Send + Sync {
    /// The access requirement of each of the door's routes: one row for each method and path.
    fn permissions(&self) -> &'static [RoutePermission];

    /// The door's routes, with their state inside. Called once for each server.
    fn routes(&self, app: &Arc<AppState>) -> Router;

    /// Whether a token is accepted in the URL of this path. Only for clients of a protocol that cannot send headers:
    /// histories and logs store URLs.
    fn takes_token_in_url(&self, _path: &str) -> bool {
        false
    }

    /// How the server's own refusals at this path are converted into the door's format; none if clients read them
    /// unchanged.
    fn response_rewrite(&self, _path: &str) -> Option<ResponseRewrite> {
        None
    }

    /// Ends everything that outlives the door's connections, when the server stops.
    fn shutdown(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

/// The state of a door's handlers: the server's, and the door's own.
#[derive(Debug)]
pub struct DoorState<S> {
    /// The state that every request can access.
    pub app: Arc<AppState>,
    /// The door's own state.
    pub own: Arc<S>,
}

impl<S> DoorState<S> {
    /// The state of a door that serves requests of `app`.
    pub fn new(app: &Arc<AppState>, own: S) -> Self {
        Self { app: Arc::clone(app), own: Arc::new(own) }
    }
}

impl<S> Clone for DoorState<S> {
    fn clone(&self) -> Self {
        Self { app: Arc::clone(&self.app), own: Arc::clone(&self.own) }
    }
}

/// Lets extractors that need the server, such as `Caller`, work in the handlers of every door.
impl<S> FromRef<DoorState<S>> for Arc<AppState> {
    fn from_ref(state: &DoorState<S>) -> Self {
        Self::clone(&state.app)
    }
}
