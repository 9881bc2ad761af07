//! A listener with this one door: a WebSocket, a loopback port or a socket in the file system.

use super::{ExecboxChannels, serve_lines};
use crate::auth::{RequestAdmission, digest};
use crate::error::RequestError;
use crate::listen::{AcceptControl, accept, upgrade};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use sandbox::Sandbox;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use tokio::net::TcpListener;
use transport::LineListener;

/// The listen address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerAddress {
    /// `ws://IP:PORT`: one JSON text per frame.
    WebSocket(SocketAddr),
    /// `tcp://127.0.0.1:PORT`: one JSON text per line.
    Tcp(SocketAddr),
    /// `unix:PATH`: one JSON text per line, for this user only.
    Unix(PathBuf),
}

/// The text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// The address has an unknown form.
    #[error("an address is ws://IP:PORT, tcp://127.0.0.1:PORT or unix:PATH")]
    Form,
    /// Line transports carry no token.
    #[error("tcp:// has no tokens and listens on loopback only; ws:// has them")]
    NotLoopback,
}

impl FromStr for RunnerAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let socket = |rest: &str| rest.trim_end_matches('/').parse().map_err(|_| BadAddress::Form);
        if let Some(rest) = text.strip_prefix("ws://") {
            return socket(rest).map(Self::WebSocket);
        }
        let rest = text.strip_prefix("tcp://").ok_or(BadAddress::Form)?;
        let address: SocketAddr = socket(rest)?;
        if address.ip().is_loopback() {
            Ok(Self::Tcp(address))
        } else {
            Err(BadAddress::NotLoopback)
        }
    }
}

impl fmt::Display for RunnerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WebSocket(address) => write!(f, "ws://{address}"),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Why a listener could not be started.
#[derive(Debug, thiserror::Error)]
pub enum RunnerListenError {
    /// The address is not available.
    #[error("listen on {0}: {1}")]
    Bind(RunnerAddress, io::Error),
    /// Without a token, any client that can reach it could run programs.
    #[error("{0} is not a loopback address; without a token only those are allowed")]
    OpenToAll(SocketAddr),
}

/// A listener. Dropping it leaves it running; [`shutdown`](Self::shutdown) stops it.
#[derive(Debug)]
pub struct RunnerListener {
    /// The listen address, with the actual port.
    pub address: RunnerAddress,
    accepting: AcceptControl,
}

impl RunnerListener {
    /// Closes all channels and waits until they are gone.
    pub async fn shutdown(self) {
        self.accepting.stopping.cancel();
        self.accepting.tasks.close();
        self.accepting.tasks.wait().await;
        if let RunnerAddress::Unix(path) = &self.address {
            // An error means that the file is already removed.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Starts a listener. `secret` is what hosts of a WebSocket must present; none is for loopback only. Other addresses
/// have none.
pub async fn listen(
    sandbox: Sandbox,
    address: &RunnerAddress,
    secret: Option<&str>,
) -> Result<RunnerListener, RunnerListenError> {
    let accepting = AcceptControl::alone();
    let AcceptControl { stopping, tasks, .. } = accepting.clone();
    let channels = ExecboxChannels::new(sandbox, stopping, tasks.clone());
    let failed = |error| RunnerListenError::Bind(address.clone(), error);
    let address = match address {
        RunnerAddress::WebSocket(at) if secret.is_none() && !at.ip().is_loopback() => {
            return Err(RunnerListenError::OpenToAll(*at));
        }
        RunnerAddress::WebSocket(at) => {
            let listener = TcpListener::bind(at).await.map_err(failed)?;
            let at = listener.local_addr().map_err(failed)?;
            let door = RunnerDoorConfig {
                admission: RequestAdmission::of_lone_door(at),
                secret: secret.map(digest),
                channels,
            };
            let router = Router::new().fallback(accept_socket).with_state(Arc::new(door));
            tasks.spawn(accept(listener, router, accepting.clone()));
            RunnerAddress::WebSocket(at)
        }
        RunnerAddress::Tcp(at) => {
            let listener = TcpListener::bind(at).await.map_err(failed)?;
            let at = listener.local_addr().map_err(failed)?;
            tasks.spawn(channels.accept_lines(LineListener::Tcp(listener)));
            RunnerAddress::Tcp(at)
        }
        RunnerAddress::Unix(path) => {
            let listener = LineListener::bind_private(path).map_err(failed)?;
            tasks.spawn(channels.accept_lines(listener));
            RunnerAddress::Unix(path.clone())
        }
    };
    Ok(RunnerListener { address, accepting })
}

/// The configuration of a stand-alone WebSocket listener.
struct RunnerDoorConfig {
    admission: RequestAdmission,
    secret: Option<[u8; 32]>,
    channels: ExecboxChannels,
}

/// Every path leads to the door.
async fn accept_socket(
    State(door): State<Arc<RunnerDoorConfig>>,
    request: Request,
) -> Result<Response, RequestError> {
    door.admission.check_request(&request)?;
    let upgrade = upgrade(request, door.secret.as_ref()).await?;
    door.channels.open(upgrade, None, std::future::pending())
}

impl ExecboxChannels {
    async fn accept_lines(self, listener: LineListener) {
        loop {
            let (reader, writer) = tokio::select! {
                halves = listener.accept() => halves,
                () = self.stopping.cancelled() => return,
            };
            // A host above the limit is disconnected: lines offer no way to report it before the first `execute`.
            let Some(place) = self.place() else { continue };
            let serving = serve_lines(self.sandbox.clone(), reader, writer, self.stopping.clone());
            self.tasks.spawn(async move {
                serving.await;
                drop(place);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back_as_written() {
        for text in ["ws://127.0.0.1:0", "ws://[::1]:9", "tcp://127.0.0.1:7000", "unix:/run/a.sock"]
        {
            assert_eq!(text.parse::<RunnerAddress>().unwrap().to_string(), text);
        }
        let bad = |text: &str| text.parse::<RunnerAddress>().unwrap_err();
        assert_eq!(bad("tcp://192.168.0.1:1"), BadAddress::NotLoopback);
        for text in
            ["", "unix:", "http://127.0.0.1:1", "ws://localhost:1", "ws://127.0.0.1", "tcp://x"]
        {
            assert_eq!(bad(text), BadAddress::Form, "{text}");
        }
    }
}
