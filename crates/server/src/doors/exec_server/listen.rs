//! A listener with this one door: a WebSocket at `/`, and `/readyz`.

use super::routes::{no_page, serve_upgraded};
use crate::auth::{RequestAdmission, digest};
use crate::error::RequestError;
use crate::listen::{AcceptControl, accept, upgrade};
use ::exec_server::ExecServer;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Why a listener could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ExecListenError {
    /// The address is not available.
    #[error("listen on {0}: {1}")]
    Bind(SocketAddr, io::Error),
    /// Without a token, any client that can reach it could run programs.
    #[error("listen on {0} without a token: it is no loopback address")]
    OpenToAll(SocketAddr),
}

/// A listener. Dropping it leaves it running; [`shutdown`](Self::shutdown) stops it.
#[derive(Debug)]
pub struct ExecListener {
    /// The listen address, with the actual port.
    pub address: SocketAddr,
    server: ExecServer,
    accepting: AcceptControl,
}

impl ExecListener {
    /// Closes all connections, ends all processes and waits until they are gone.
    pub async fn shutdown(self) {
        self.accepting.stopping.cancel();
        self.server.shutdown().await;
        self.accepting.tasks.close();
        self.accepting.tasks.wait().await;
    }
}

/// Starts a listener. `secret` is what clients must present; none is for loopback only.
pub async fn listen(
    server: ExecServer,
    address: SocketAddr,
    secret: Option<&str>,
) -> Result<ExecListener, ExecListenError> {
    if secret.is_none() && !address.ip().is_loopback() {
        return Err(ExecListenError::OpenToAll(address));
    }
    let failed = |error| ExecListenError::Bind(address, error);
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // Clients that may send requests from here may not send them back to this listener.
    server.address_rules().add_listener(address);
    let accepting = AcceptControl::alone();
    let admission = RequestAdmission::of_lone_door(address);
    let door = ExecDoorConfig { admission, secret: secret.map(digest), server: server.clone() };
    let router = Router::new()
        .route("/", get(accept_socket))
        .route("/readyz", get(ready))
        .fallback(nowhere)
        .with_state(Arc::new(door));
    accepting.tasks.spawn(accept(listener, router, accepting.clone()));
    Ok(ExecListener { address, server, accepting })
}

/// The configuration of a stand-alone listener.
struct ExecDoorConfig {
    admission: RequestAdmission,
    secret: Option<[u8; 32]>,
    server: ExecServer,
}

impl ExecDoorConfig {
    fn admit_request(&self, request: &Request) -> Result<(), RequestError> {
        no_page(request.headers())?;
        self.admission.check_request(request)
    }
}

async fn accept_socket(
    State(door): State<Arc<ExecDoorConfig>>,
    request: Request,
) -> Result<Response, RequestError> {
    door.admit_request(&request)?;
    let upgrade = upgrade(request, door.secret.as_ref()).await?;
    serve_upgraded(&door.server, String::new(), upgrade, std::future::pending())
}

async fn ready(
    State(door): State<Arc<ExecDoorConfig>>,
    request: Request,
) -> Result<Response, RequestError> {
    door.admit_request(&request)?;
    Ok(StatusCode::OK.into_response())
}

async fn nowhere(
    State(door): State<Arc<ExecDoorConfig>>,
    request: Request,
) -> Result<Response, RequestError> {
    door.admit_request(&request)?;
    Ok(StatusCode::NOT_FOUND.into_response())
}
