//! Runners that listen on a socket of this machine or of the network.

use super::{ConnectRunner, NdjsonChannel, RunnerTransport};
use futures_util::future::BoxFuture;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// A machine that is reachable answers sooner, also across the world.
pub(super) const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// A runner at `host:port`.
#[derive(Debug, Clone)]
pub struct TcpRunner {
    address: String,
}

impl TcpRunner {
    /// Sets the address, `host:port`.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into() }
    }
}

impl ConnectRunner for TcpRunner {
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn RunnerTransport>>> {
        Box::pin(async {
            let (reader, writer) = tcp(&self.address).await?.into_split();
            Ok(Box::new(NdjsonChannel::new(reader, writer)) as Box<dyn RunnerTransport>)
        })
    }
}

/// Connects with `TCP_NODELAY`, so that small messages are sent immediately.
pub(super) async fn tcp(address: &str) -> io::Result<TcpStream> {
    let stream = timeout(CONNECT_TIME_MAX, TcpStream::connect(address)).await??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A runner at a unix socket.
#[derive(Debug, Clone)]
pub struct UnixRunner {
    path: PathBuf,
}

impl UnixRunner {
    /// Sets the path of the socket.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl ConnectRunner for UnixRunner {
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn RunnerTransport>>> {
        Box::pin(async {
            let stream = timeout(CONNECT_TIME_MAX, UnixStream::connect(&self.path)).await??;
            let (reader, writer) = stream.into_split();
            Ok(Box::new(NdjsonChannel::new(reader, writer)) as Box<dyn RunnerTransport>)
        })
    }
}
