//! A listener with this one door: a WebSocket, a loopback port or a socket in the file system.

use super::{Channels, serve_lines};
use crate::auth::{RequestAdmission, digest};
use crate::error::Problem;
use crate::listen::{Accepting, accept, upgrade};
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use sandbox::Sandbox;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};

/// How long to wait when the system has no descriptor for a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `ws://IP:PORT`: one JSON text per frame.
    WebSocket(SocketAddr),
    /// `tcp://127.0.0.1:PORT`: one JSON text per line.
    Tcp(SocketAddr),
    /// `unix:PATH`: the same, for this user only.
    Unix(PathBuf),
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// Of no known form.
    #[error("an address is ws://IP:PORT, tcp://127.0.0.1:PORT or unix:PATH")]
    Form,
    /// Lines carry no token.
    #[error("tcp:// has no tokens and listens on loopback only; ws:// has them")]
    NotLoopback,
}

impl FromStr for Address {
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

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WebSocket(address) => write!(f, "ws://{address}"),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Why nobody listens.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address cannot be had.
    #[error("listen on {0}: {1}")]
    Bind(Address, io::Error),
    /// Without a token anybody who can reach it could run programs.
    #[error("{0} is not a loopback address; without a token only those are allowed")]
    OpenToAll(SocketAddr),
}

/// A listener. Dropping it leaves it running; [`shutdown`](Self::shutdown) stops it.
#[derive(Debug)]
pub struct Listening {
    /// Where, with the real port.
    pub address: Address,
    accepting: Accepting,
}

impl Listening {
    /// Closes all channels and waits until they are gone.
    pub async fn shutdown(self) {
        self.accepting.stopping.cancel();
        self.accepting.tasks.close();
        self.accepting.tasks.wait().await;
        if let Address::Unix(path) = &self.address {
            // Whoever removed it before us did the same.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Listens. `secret` is what hosts of a WebSocket must present; none is for loopback only. Other addresses have none.
pub async fn listen(
    sandbox: Sandbox,
    address: &Address,
    secret: Option<&str>,
) -> Result<Listening, ListenError> {
    let accepting = Accepting::alone();
    let Accepting { stopping, tasks, .. } = accepting.clone();
    let channels = Channels::new(sandbox, stopping, tasks.clone());
    let failed = |error| ListenError::Bind(address.clone(), error);
    let address = match address {
        Address::WebSocket(at) if secret.is_none() && !at.ip().is_loopback() => {
            return Err(ListenError::OpenToAll(*at));
        }
        Address::WebSocket(at) => {
            let listener = TcpListener::bind(at).await.map_err(failed)?;
            let at = listener.local_addr().map_err(failed)?;
            let door = Door {
                admission: RequestAdmission::of_lone_door(at),
                secret: secret.map(digest),
                channels,
            };
            let router = Router::new().fallback(enter).with_state(Arc::new(door));
            tasks.spawn(accept(listener, router, accepting.clone()));
            Address::WebSocket(at)
        }
        Address::Tcp(at) => {
            let listener = TcpListener::bind(at).await.map_err(failed)?;
            let at = listener.local_addr().map_err(failed)?;
            tasks.spawn(channels.accept_tcp(listener));
            Address::Tcp(at)
        }
        Address::Unix(path) => {
            let listener = bind_private(path).map_err(failed)?;
            tasks.spawn(channels.accept_unix(listener));
            Address::Unix(path.clone())
        }
    };
    Ok(Listening { address, accepting })
}

/// What a lone WebSocket door knows.
struct Door {
    admission: RequestAdmission,
    secret: Option<[u8; 32]>,
    channels: Channels,
}

/// Every path is the door.
async fn enter(State(door): State<Arc<Door>>, request: Request) -> Result<Response, Problem> {
    door.admission.admit(&request)?;
    let upgrade = upgrade(request, door.secret.as_ref()).await?;
    door.channels.open(upgrade, None, std::future::pending())
}

impl Channels {
    async fn accept_tcp(self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.stopping.cancelled() => return,
            };
            match accepted.and_then(|(stream, _)| stream.set_nodelay(true).map(|()| stream)) {
                Ok(stream) => self.serve(stream.into_split()),
                Err(error) => pause(&error).await,
            }
        }
    }

    async fn accept_unix(self, listener: UnixListener) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.stopping.cancelled() => return,
            };
            match accepted {
                Ok((stream, _)) => self.serve(stream.into_split()),
                Err(error) => pause(&error).await,
            }
        }
    }

    /// A host too many is hung up on: lines have no other way to say it before the first `execute`.
    fn serve<R, W>(&self, (reader, writer): (R, W))
    where
        R: tokio::io::AsyncRead + Unpin + Send + 'static,
        W: tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let Some(place) = self.place() else { return };
        let serving = serve_lines(self.sandbox.clone(), reader, writer, self.stopping.clone());
        self.tasks.spawn(async move {
            serving.await;
            drop(place);
        });
    }
}

async fn pause(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(ACCEPT_RETRY).await;
}

/// A socket that only this user can reach: it is made in a folder that only this user can enter, then moved.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    if std::fs::symlink_metadata(path).is_ok_and(|there| there.file_type().is_socket()) {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        // Left behind by a listener that was killed.
        std::fs::remove_file(path)?;
    }
    let mut folder = path.as_os_str().to_owned();
    folder.push(format!(".{}", std::process::id()));
    let folder = PathBuf::from(folder);
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let listener = bind_in(&folder, path);
    std::fs::remove_dir(&folder)?;
    listener
}

fn bind_in(folder: &Path, path: &Path) -> io::Result<UnixListener> {
    let private = folder.join("s");
    let listener = UnixListener::bind(&private)?;
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&private, path)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back_as_written() {
        for text in ["ws://127.0.0.1:0", "ws://[::1]:9", "tcp://127.0.0.1:7000", "unix:/run/a.sock"]
        {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        let bad = |text: &str| text.parse::<Address>().unwrap_err();
        assert_eq!(bad("tcp://192.168.0.1:1"), BadAddress::NotLoopback);
        for text in
            ["", "unix:", "http://127.0.0.1:1", "ws://localhost:1", "ws://127.0.0.1", "tcp://x"]
        {
            assert_eq!(bad(text), BadAddress::Form, "{text}");
        }
    }
}
