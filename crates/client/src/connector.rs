//! Connections of the HTTP client. Where the server must prove that it knows the token, each new connection begins with the
//! proof.

use crate::address::BaseAddress;
use crate::proof::{ServerToken, prove_server};
use futures_util::future::BoxFuture;
use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use std::error::Error as StdError;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower_service::Service;

/// A machine that is reachable answers sooner, also across the world.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// A program may take hours to answer; keep-alive probes detect a machine that has gone in the meantime.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Any error of a connection.
pub(crate) type ConnectorError = Box<dyn StdError + Send + Sync>;

/// Connects to one server.
#[derive(Clone)]
pub(crate) struct ProvenConnector {
    tcp: HttpConnector,
    server: BaseAddress,
    token: Option<Arc<ServerToken>>,
}

impl ProvenConnector {
    pub(crate) fn new(server: BaseAddress, token: Option<ServerToken>) -> Self {
        let mut tcp = HttpConnector::new();
        // A request is one small write: Nagle's algorithm would only delay it.
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIME_MAX));
        tcp.set_keepalive(Some(KEEP_ALIVE));
        Self { tcp, server, token: token.map(Arc::new) }
    }

    async fn connect(self, uri: Uri) -> Result<TokioIo<TcpStream>, ConnectorError> {
        let Self { mut tcp, server, token } = self;
        let stream = tcp.call(uri.clone()).await?.into_inner();
        let proven = match token {
            Some(token) => prove_server(&server, &token, stream).await?,
            None => Some(stream),
        };
        match proven {
            Some(stream) => Ok(TokioIo::new(stream)),
            None => Ok(tcp.call(uri).await?),
        }
    }
}

impl Service<Uri> for ProvenConnector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectorError;
    type Future = BoxFuture<'static, Result<TokioIo<TcpStream>, ConnectorError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectorError>> {
        Service::<Uri>::poll_ready(&mut self.tcp, context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}
