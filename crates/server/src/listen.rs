//! The accept loop: bounded, without Nagle, and able to stop while clients are stuck.

use crate::app::App;
use crate::auth::{TokenError, WebOrigin, digest, presented_to_lone_door, same};
use crate::config::{Auth, Config};
use crate::error::Problem;
use crate::front::Front;
use crate::lanes::Spread;
use crate::socket::{Place, Socket};
use crate::tasks::Tasks;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts as _, Request};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Connections at a time, WebSockets included; the next one waits in the kernel's queue.
const CONNECTIONS_MAX: usize = 1_024;

/// Longest time for the head of a request, also between two on one connection.
const HEAD_TIME_MAX: Duration = Duration::from_secs(75);

/// How long a stopping server lets answers go out; whoever has not taken theirs by then is cut off.
const CLOSING_GRACE: Duration = Duration::from_secs(1);

/// How long to wait when the system has no descriptor for a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A server that listens. Dropping it leaves it running; [`shutdown`](Self::shutdown) stops it.
pub struct Server {
    local_addr: SocketAddr,
    app: Arc<App>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be had.
    #[error("listen on {0}: {1}")]
    Bind(SocketAddr, io::Error),
    /// Without tokens anybody who can reach it could run programs.
    #[error("{0} is not a loopback address; without tokens only those are allowed")]
    OpenToAll(SocketAddr),
}

impl Server {
    /// Listens, and answers from now on.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let listener = bind(config.listen).await?;
        Self::start_on(listener, config).await
    }

    /// The same on a socket that [`bind`] has opened.
    pub async fn start_on(listener: TcpListener, mut config: Config) -> Result<Self, StartError> {
        let listen = config.listen;
        if matches!(config.auth, Auth::Off) && !listen.ip().is_loopback() {
            return Err(StartError::OpenToAll(listen));
        }
        let failed = |error| StartError::Bind(listen, error);
        let local_addr = listener.local_addr().map_err(failed)?;
        config.listen = local_addr;
        let lanes = std::mem::take(&mut config.lanes);
        let app = App::new(config);
        let (stopping, tasks) = (app.stopping.clone(), app.tasks.clone());
        let accepting = Accepting { stopping, tasks, lanes, ..Accepting::alone() };
        app.tasks.spawn(accept(listener, Front::of(&app), accepting));
        Ok(Self { local_addr, app })
    }

    /// Where it listens, with the real port.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The same as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.local_addr)
    }

    /// The address of the console, with a code that signs the operator's browser in, once.
    pub async fn sign_in_link(&self) -> Result<String, TokenError> {
        let code = self.app.operator_code().await?;
        let code = code.map(|code| format!("#code={code}")).unwrap_or_default();
        Ok(format!("{}/{code}", self.origin()))
    }

    /// The origin under which people find its pages: that of the public URL, or the address that it listens on.
    pub fn origin(&self) -> &WebOrigin {
        self.app.admission.canonical_origin()
    }

    /// Takes nothing new, tells those who wait, and returns when the last connection is gone, about a
    /// second later at most. The engine is not stopped.
    pub async fn shutdown(self) {
        self.app.stopping.cancel();
        if let Some(exec_server) = &self.app.exec_server {
            exec_server.shutdown().await;
        }
        self.app.tasks.close();
        self.app.tasks.wait().await;
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("local_addr", &self.local_addr).finish_non_exhaustive()
    }
}

/// Opens the socket of a server. Connections wait in it until a server is started on it.
pub async fn bind(listen: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(listen).await.map_err(|error| StartError::Bind(listen, error))
}

/// What ends an accept loop, and who waits for its connections.
#[derive(Debug, Clone)]
pub(crate) struct Accepting {
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: Tasks,
    /// Where connections are served besides here.
    pub(crate) lanes: Vec<Handle>,
    connections_max: usize,
}

impl Accepting {
    /// What a listener needs that is no part of a server.
    pub(crate) fn alone() -> Self {
        Self {
            stopping: CancellationToken::new(),
            tasks: Tasks::new(),
            lanes: vec![],
            connections_max: CONNECTIONS_MAX,
        }
    }
}

/// Answers connections until it is told to stop.
pub(crate) async fn accept(listener: TcpListener, front: Front, accepting: Accepting) {
    let places = Arc::new(Semaphore::new(accepting.connections_max));
    let lanes = Spread::over(Handle::current(), &accepting.lanes);
    let next = async || {
        let place = Arc::clone(&places).acquire_owned().await.expect("nobody closes it");
        (listener.accept().await, place)
    };
    loop {
        let (accepted, place) = tokio::select! {
            next = next() => next,
            () = accepting.stopping.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                let seat = lanes.seat();
                let lane = seat.lane.clone();
                let place = Place { _among_all: place, _in_lane: seat };
                let front = front.for_connection(peer, stream.local_addr().ok());
                let stopping = accepting.stopping.clone();
                // Without its runtime, so that it can join another one.
                let stream = stream.into_std();
                let connection = async move {
                    match stream.and_then(|stream| Socket::new(stream, place)) {
                        Ok(socket) => connection(socket, front, stopping).await,
                        Err(error) => tracing::debug!(%error, "a connection ended before it began"),
                    }
                };
                accepting.tasks.spawn_on(connection, &lane);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

async fn connection(socket: Socket, front: Front, stopping: CancellationToken) {
    let looking = front.clone();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX);
    let serving = http.serve_connection(TokioIo::new(socket), front);
    let mut serving = pin!(serving.with_upgrades());
    let ended = tokio::select! {
        biased;
        ended = serving.as_mut() => ended,
        never = looking.look() => match never {},
        () = stopping.cancelled() => {
            serving.as_mut().graceful_shutdown();
            tokio::time::timeout(CLOSING_GRACE, serving).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// A WebSocket at a listener with one door, for whoever presents its secret.
pub(crate) async fn upgrade(
    request: Request,
    secret: Option<&[u8; 32]>,
) -> Result<WebSocketUpgrade, Problem> {
    let (mut parts, _) = request.into_parts();
    if let Some(secret) = secret {
        let is_known =
            presented_to_lone_door(&parts).is_some_and(|text| same(secret, &digest(&text)));
        if !is_known {
            return Err(Problem::unauthorized());
        }
    }
    WebSocketUpgrade::from_request_parts(&mut parts, &())
        .await
        .map_err(|_| Problem::bad_request("This address speaks WebSocket only."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::{any, get};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    /// Sends the head of a request.
    async fn ask(address: SocketAddr, path: &str, more: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    async fn status(stream: &mut TcpStream) -> String {
        let mut line = [0; 12];
        stream.read_exact(&mut line).await.unwrap();
        String::from_utf8(line.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_web_socket_keeps_its_place_until_it_is_gone() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let open = async |upgrade: WebSocketUpgrade| {
            upgrade.on_upgrade(async |mut socket| while let Some(Ok(_)) = socket.recv().await {})
        };
        let router = Router::new().route("/ws", any(open)).route("/", get(async || "hello"));
        let accepting = Accepting { connections_max: 1, ..Accepting::alone() };
        let (stopping, tasks) = (accepting.stopping.clone(), accepting.tasks.clone());
        tasks.spawn(accept(listener, Front::with(router), accepting));
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let mut first = ask(address, "/ws", upgrade).await;
        assert_eq!(status(&mut first).await, "HTTP/1.1 101");
        let mut second = ask(address, "/", "").await;
        let waiting = tokio::time::timeout(Duration::from_millis(100), status(&mut second)).await;
        assert!(waiting.is_err(), "there is one place, and it is taken: {waiting:?}");
        drop(first);
        assert_eq!(status(&mut second).await, "HTTP/1.1 200");
        drop(second);
        stopping.cancel();
        tasks.close();
        tasks.wait().await;
    }
}
