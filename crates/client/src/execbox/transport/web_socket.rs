//! A runner behind a WebSocket: one message per text frame.

use super::socket::{CONNECT_TIME_MAX, tcp};
use super::{Connect, Ended, Incoming, Outgoing, Transport};
use futures_util::future::BoxFuture;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use protocols::execbox::HOST_MESSAGE_BYTES_MAX;
use std::time::Duration;
use std::{fmt, io};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderValue};
use tokio_tungstenite::tungstenite::http::{Request, Uri};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// How long a farewell may take; nobody waits for the answer to it.
const FAREWELL_TIME_MAX: Duration = Duration::from_millis(250);

/// A runner at a `ws://` address.
#[derive(Clone)]
pub struct WebSocket {
    url: String,
    token: Option<String>,
}

impl WebSocket {
    /// At this address. Encryption is left to a tunnel: `wss://` is refused.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), token: None }
    }

    /// The same with a token for the server's door.
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

    async fn open(&self) -> io::Result<Channel> {
        let (request, address) = self.request()?;
        let stream = tcp(&address).await?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(HOST_MESSAGE_BYTES_MAX))
            .max_frame_size(Some(HOST_MESSAGE_BYTES_MAX));
        let handshake = client_async_with_config(request, stream, Some(limits));
        let (frames, _) = timeout(CONNECT_TIME_MAX, handshake).await?.map_err(io_error)?;
        let (sink, frames) = frames.split();
        let incoming = FramesIn { frames: Some(frames), last: Bytes::new() };
        Ok(Channel { outgoing: FramesOut(Some(sink)), incoming })
    }
}

impl Connect for WebSocket {
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn Transport>>> {
        Box::pin(async { Ok(Box::new(self.open().await?) as Box<dyn Transport>) })
    }
}

// The address may hold a token, as the field does.
impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket").finish_non_exhaustive()
    }
}

struct Channel {
    outgoing: FramesOut,
    incoming: FramesIn,
}

impl Transport for Channel {
    fn halves(&mut self) -> (&mut dyn Outgoing, &mut dyn Incoming) {
        (&mut self.outgoing, &mut self.incoming)
    }

    fn terminate(&mut self) -> BoxFuture<'_, ()> {
        // Both halves gone, the connection is gone.
        self.outgoing.0 = None;
        self.incoming.frames = None;
        Box::pin(async {})
    }

    fn dispose(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Some(mut sink) = self.outgoing.0.take() {
                // Whether the runner hears it does not matter: the connection closes anyway.
                drop(timeout(FAREWELL_TIME_MAX, sink.send(Message::Close(None))).await);
            }
        })
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebSocket channel")
    }
}

struct FramesOut(Option<SplitSink<WebSocketStream<TcpStream>, Message>>);

impl Outgoing for FramesOut {
    fn send<'a>(&'a mut self, line: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let sink = self.0.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let text = Bytes::copy_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
            let text = Utf8Bytes::try_from(text).map_err(io::Error::other)?;
            sink.send(Message::Text(text)).await.map_err(io_error)
        })
    }
}

struct FramesIn {
    /// `None` once closed.
    frames: Option<SplitStream<WebSocketStream<TcpStream>>>,
    last: Bytes,
}

impl Incoming for FramesIn {
    fn receive(&mut self) -> BoxFuture<'_, Result<&[u8], Ended>> {
        Box::pin(async {
            let frames = self.frames.as_mut().ok_or(Ended::Closed)?;
            loop {
                match frames.next().await {
                    Some(Ok(Message::Text(text))) => {
                        self.last = text.into();
                        return Ok(&self.last[..]);
                    }
                    // A runner that writes bytes means the same.
                    Some(Ok(Message::Binary(bytes))) => {
                        self.last = bytes;
                        return Ok(&self.last[..]);
                    }
                    // The library answers pings.
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                    Some(Ok(Message::Close(_))) | None => return Err(Ended::Closed),
                    Some(Err(error)) => return Err(ended(error)),
                }
            }
        })
    }
}

fn ended(error: Error) -> Ended {
    // A runner that is killed does not say farewell; that is no fault of the channel.
    let is_end = matches!(
        error,
        Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
    );
    if is_end { Ended::Closed } else { Ended::Broken(io_error(error)) }
}

fn io_error(error: Error) -> io::Error {
    if let Error::Io(error) = error { error } else { io::Error::other(error.to_string()) }
}
