//! The accept loop: bounded, without Nagle, and able to stop while clients are stuck.

use crate::app::App;
use crate::auth::{TokenError, digest, presented, same};
use crate::config::{Auth, Config};
use crate::error::Problem;
use crate::front::Front;
use crate::lanes::Spread;
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
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Connections at a time; the next one waits in the kernel's queue.
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
    pub async fn start(mut config: Config) -> Result<Self, StartError> {
        let listen = config.listen;
        if matches!(config.auth, Auth::Off) && !listen.ip().is_loopback() {
            return Err(StartError::OpenToAll(listen));
        }
        let failed = |error| StartError::Bind(listen, error);
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let local_addr = listener.local_addr().map_err(failed)?;
        config.listen = local_addr;
        let lanes = std::mem::take(&mut config.lanes);
        let app = App::new(config);
        let (stopping, tasks) = (app.stopping.clone(), app.tasks.clone());
        let accepting = Accepting { stopping, tasks, lanes };
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
        Ok(format!("{}/{code}", self.url()))
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

/// What ends an accept loop, and who waits for its connections.
#[derive(Debug, Clone)]
pub(crate) struct Accepting {
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: Tasks,
    /// Where connections are served besides here.
    pub(crate) lanes: Vec<Handle>,
}

impl Accepting {
    /// What a listener needs that is no part of a server.
    pub(crate) fn alone() -> Self {
        Self { stopping: CancellationToken::new(), tasks: Tasks::new(), lanes: vec![] }
    }
}

/// Answers connections until it is told to stop.
pub(crate) async fn accept(listener: TcpListener, front: Front, accepting: Accepting) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
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
            Ok((stream, _)) => {
                let seat = lanes.seat();
                let lane = seat.lane.clone();
                let (front, stopping) = (front.for_connection(), accepting.stopping.clone());
                // Without its runtime, so that it can join another one.
                let stream = stream.into_std();
                let connection = async move {
                    connection(stream, front, stopping).await;
                    drop((place, seat));
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

async fn connection(
    stream: io::Result<std::net::TcpStream>,
    front: Front,
    stopping: CancellationToken,
) {
    let stream = match stream.and_then(prepared) {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(%error, "a connection ended before it began"),
    };
    let looking = front.clone();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX);
    let serving = http.serve_connection(TokioIo::new(stream), front);
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

fn prepared(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    // An answer is one small write: waiting for more to send would only delay it.
    stream.set_nodelay(true)?;
    TcpStream::from_std(stream)
}

/// A WebSocket at a listener with one door, for whoever presents its secret.
pub(crate) async fn upgrade(
    request: Request,
    secret: Option<&[u8; 32]>,
) -> Result<WebSocketUpgrade, Problem> {
    let (mut parts, _) = request.into_parts();
    if let Some(secret) = secret {
        let is_known = presented(&parts).is_some_and(|text| same(secret, &digest(&text)));
        if !is_known {
            return Err(Problem::unauthorized());
        }
    }
    WebSocketUpgrade::from_request_parts(&mut parts, &())
        .await
        .map_err(|_| Problem::bad_request("This address speaks WebSocket only."))
}
