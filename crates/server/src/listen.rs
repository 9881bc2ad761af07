//! The accept loop: bounded, without Nagle, and able to stop while clients are stuck.

use crate::app::AppState;
use crate::auth::{TokenError, WebOrigin, digest, presented_to_lone_door, same};
use crate::config::{AuthMode, Config};
use crate::connection_service::{ConnectionEndpoints, ConnectionService};
use crate::edge::{
    ConnectionEntry, ConnectionLimits, ConnectionPhase, ConnectionRefusal, ConnectionTable,
};
use crate::error::RequestError;
use crate::routes;
use crate::socket::AcceptedSocket;
use crate::tasks::TaskSpawner;
use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts as _, Request};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::errno::Errno;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Maximum time for the head of a later request on a connection, and between two requests.
const LATER_HEAD_TIME_MAX: Duration = Duration::from_secs(75);

/// How long a stopping server waits for answers to be sent; then it closes the remaining connections.
const CLOSING_GRACE: Duration = Duration::from_secs(1);

/// How long to wait if the system has no descriptor for a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A running server. Dropping it leaves it running; [`shutdown`](Self::shutdown) stops it.
pub struct RunningServer {
    local_addr: SocketAddr,
    app: Arc<AppState>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerStartError {
    /// The address is not available.
    #[error("listen on {0}: {1}")]
    Bind(SocketAddr, io::Error),
    /// Without tokens, any client that can reach it could run programs.
    #[error("{0} is not a loopback address; without tokens only those are allowed")]
    OpenToAll(SocketAddr),
}

impl RunningServer {
    /// Starts the server, which accepts connections from now on.
    pub async fn start(config: Config) -> Result<Self, ServerStartError> {
        let listener = bind(config.listen).await?;
        Self::start_on(listener, config).await
    }

    /// Like `start`, on a socket that [`bind`] has opened.
    pub async fn start_on(
        listener: TcpListener,
        mut config: Config,
    ) -> Result<Self, ServerStartError> {
        let listen = config.listen;
        if matches!(config.auth, AuthMode::Off) && !listen.ip().is_loopback() {
            return Err(ServerStartError::OpenToAll(listen));
        }
        let failed = |error| ServerStartError::Bind(listen, error);
        let local_addr = listener.local_addr().map_err(failed)?;
        config.listen = local_addr;
        let app = AppState::new(config);
        let (stopping, tasks) = (app.stopping.clone(), app.tasks.clone());
        let table = Arc::clone(&app.connections);
        let accepting = AcceptControl { stopping, tasks, table };
        app.tasks.spawn(accept(listener, routes::build(&app), accepting));
        Ok(Self { local_addr, app })
    }

    /// The listen address, with the actual port.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The listen address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.local_addr)
    }

    /// The address of the console, with a one-use code that signs in the operator's browser.
    pub async fn sign_in_link(&self) -> Result<String, TokenError> {
        let code = self.app.operator_code().await?;
        let code = code.map(|code| format!("#code={code}")).unwrap_or_default();
        Ok(format!("{}/{code}", self.origin()))
    }

    /// The origin under which people find its pages: that of the public URL, or the listen address.
    pub fn origin(&self) -> &WebOrigin {
        self.app.admission.canonical_origin()
    }

    /// Accepts no new connections, notifies waiting clients, and returns when the last connection is closed, at most
    /// about a second later. The engine is not stopped.
    pub async fn shutdown(self) {
        self.app.stopping.cancel();
        for door in &self.app.doors {
            door.shutdown().await;
        }
        self.app.tasks.close();
        self.app.tasks.wait().await;
    }
}

impl std::fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("local_addr", &self.local_addr).finish_non_exhaustive()
    }
}

/// Opens the socket of a server. Connections wait in its backlog until a server is started on it.
pub async fn bind(listen: SocketAddr) -> Result<TcpListener, ServerStartError> {
    TcpListener::bind(listen).await.map_err(|error| ServerStartError::Bind(listen, error))
}

/// The signals that end an accept loop, and the tracker of its connections.
#[derive(Debug, Clone)]
pub(crate) struct AcceptControl {
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: TaskSpawner,
    /// Every connection and its peer.
    pub(crate) table: Arc<ConnectionTable>,
}

impl AcceptControl {
    /// Creates what a stand-alone listener needs.
    pub(crate) fn alone() -> Self {
        Self {
            stopping: CancellationToken::new(),
            tasks: TaskSpawner::new(),
            table: ConnectionTable::new(ConnectionLimits::default()),
        }
    }
}

/// Accepts connections until the loop is stopped.
pub(crate) async fn accept(listener: TcpListener, router: Router, accepting: AcceptControl) {
    let next = async || {
        accepting.table.ready().await;
        listener.accept().await
    };
    loop {
        let accepted = tokio::select! {
            accepted = next() => accepted,
            () = accepting.stopping.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => admit_stream(stream, peer, &router, &accepting),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                match error.raw_os_error().map(Errno::from_raw) {
                    Some(Errno::EMFILE | Errno::ENFILE) => {
                        accepting.table.make_way(ACCEPT_RETRY).await;
                    }
                    _ => tokio::time::sleep(ACCEPT_RETRY).await,
                }
            }
        }
    }
}

/// Serves a connection in its own task, or answers why it has no slot.
fn admit_stream(stream: TcpStream, peer: SocketAddr, router: &Router, accepting: &AcceptControl) {
    let place = match accepting.table.admit_connection(peer) {
        Ok(place) => place,
        Err(refusal) => {
            if let Some(answer) = accepting.table.count_refusal().answer_stream(stream, refusal) {
                accepting.tasks.spawn(answer);
            }
            return;
        }
    };
    let entry = Arc::clone(&place.0);
    let endpoints = ConnectionEndpoints { peer, local: stream.local_addr().ok() };
    let service = ConnectionService::new(router, endpoints, &entry);
    let stopping = accepting.stopping.clone();
    let serving = async move {
        match AcceptedSocket::new(stream, place) {
            Ok(socket) => connection(socket, service, (&entry, stopping)).await,
            Err(error) => tracing::debug!(%error, "a connection ended before it began"),
        }
    };
    accepting.tasks.spawn(serving);
}

async fn connection(
    socket: AcceptedSocket,
    service: ConnectionService,
    (entry, stopping): (&ConnectionEntry, CancellationToken),
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(LATER_HEAD_TIME_MAX);
    let serving = http.serve_connection(TokioIo::new(socket), service);
    let mut serving = pin!(serving.with_upgrades());
    let ended = tokio::select! {
        biased;
        ended = serving.as_mut() => ended,
        () = entry.ended() => {
            serving.as_mut().graceful_shutdown();
            close(serving, entry).await
        }
        () = first_head_missed(entry) => {
            entry.end_connection(ConnectionRefusal::Head(entry.limits().head_time_max));
            close(serving, entry).await
        }
        () = stopping.cancelled() => {
            serving.as_mut().graceful_shutdown();
            tokio::time::timeout(CLOSING_GRACE, serving).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

/// Gives a connection that lost its slot time to receive the remaining data. One of an unauthenticated caller gets
/// none.
async fn close(
    serving: impl Future<Output = hyper::Result<()>>,
    entry: &ConnectionEntry,
) -> hyper::Result<()> {
    if entry.is_authenticated() || entry.phase() == ConnectionPhase::FirstHead {
        return tokio::time::timeout(CLOSING_GRACE, serving).await.unwrap_or(Ok(()));
    }
    Ok(())
}

/// Returns when the first head has not arrived in time; pending forever once it has.
async fn first_head_missed(entry: &ConnectionEntry) {
    tokio::time::sleep(entry.limits().head_time_max).await;
    if entry.phase() != ConnectionPhase::FirstHead {
        std::future::pending().await
    }
}

/// Accepts a WebSocket at a listener with one door, for clients that present its secret.
pub(crate) async fn upgrade(
    request: Request,
    secret: Option<&[u8; 32]>,
) -> Result<WebSocketUpgrade, RequestError> {
    let (mut parts, _) = request.into_parts();
    if let Some(secret) = secret {
        let is_known =
            presented_to_lone_door(&parts).is_some_and(|text| same(secret, &digest(&text)));
        if !is_known {
            return Err(RequestError::unauthorized());
        }
    }
    WebSocketUpgrade::from_request_parts(&mut parts, &())
        .await
        .map_err(|_| RequestError::bad_request("This address speaks WebSocket only."))
}

#[cfg(test)]
mod tests;
