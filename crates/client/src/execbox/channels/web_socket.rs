//! A runner behind a WebSocket: one message per text frame.

use super::socket::{CONNECT_TIME_MAX, tcp};
use super::{ConnectRunner, MessageChannel, RunnerTransport};
use futures_util::future::BoxFuture;
use protocols::execbox::HOST_MESSAGE_BYTES_MAX;
use std::{fmt, io};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderValue};
use tokio_tungstenite::tungstenite::http::{Request, Uri};
use transport::{ClientReader, ClientWriter, connect_web_socket};

/// A runner at a `ws://` address.
#[derive(Clone)]
pub struct WebSocket {
    url: String,
    token: Option<String>,
}

impl WebSocket {
    /// Sets the address. Encryption is left to a tunnel: `wss://` is refused.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), token: None }
    }

    /// Sets the bearer token for the server.
    #[must_use]
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    fn request(&self) -> io::Result<(Request<()>, String)> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        let url: Uri = self.url.parse().map_err(|_| invalid("not a WebSocket address"))?;
        if url.scheme_str() != Some("ws") {
            return Err(invalid("a WebSocket address begins with ws://"));
        }
        let host = url.host().ok_or_else(|| invalid("a WebSocket address names a host"))?;
        let address = format!("{host}:{}", url.port_u16().unwrap_or(80));
        let mut request = url.into_client_request().map_err(io::Error::other)?;
        if let Some(token) = &self.token {
            let mut bearer = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| invalid("the token cannot be sent in a header"))?;
            bearer.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, bearer);
        }
        Ok((request, address))
    }

    async fn open(&self) -> io::Result<MessageChannel<ClientReader, ClientWriter>> {
        let (request, address) = self.request()?;
        let stream = tcp(&address).await?;
        let connecting = connect_web_socket(request, stream, HOST_MESSAGE_BYTES_MAX);
        Ok(MessageChannel::from_halves(timeout(CONNECT_TIME_MAX, connecting).await??))
    }
}

impl ConnectRunner for WebSocket {
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn RunnerTransport>>> {
        Box::pin(async { Ok(Box::new(self.open().await?) as Box<dyn RunnerTransport>) })
    }
}

// The address may hold a token, as the field does.
impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket").finish_non_exhaustive()
    }
}
