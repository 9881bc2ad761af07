//! A client that waits for each answer, without an async runtime.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::net::TcpStream;
use std::time::Duration;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Message, WebSocket};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connection.
pub(super) struct Client {
    socket: WebSocket<TcpStream>,
}

impl Client {
    /// Connects to `address`, with a token where one is given.
    pub(super) fn connect(address: &str, path: &str, token: Option<&str>) -> Result<Self> {
        let mut request = format!("ws://{address}{path}").into_client_request()?;
        if let Some(token) = token {
            let bearer = format!("Bearer {token}").parse()?;
            request.headers_mut().insert("Authorization", bearer);
        }
        let stream = TcpStream::connect(address).context("connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (socket, _) = tokio_tungstenite::tungstenite::client(request, stream)
            .map_err(|error| anyhow::anyhow!("upgrade: {error}"))?;
        Ok(Self { socket })
    }

    pub(super) fn send(&mut self, frame: &str) -> Result<()> {
        Ok(self.socket.send(Message::Text(frame.to_owned().into()))?)
    }

    /// Returns the next frame, unparsed.
    pub(super) fn next(&mut self) -> Result<String> {
        loop {
            match self.socket.read()? {
                Message::Text(text) => return Ok(text.as_str().to_owned()),
                Message::Close(_) => bail!("the server closed the connection"),
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    /// Sends a frame and waits for the next one, which must hold `expected`.
    pub(super) fn ask(&mut self, frame: &str, expected: &str) -> Result<()> {
        self.send(frame)?;
        let told = self.next()?;
        if !told.contains(expected) {
            bail!("{frame} was answered by {told}");
        }
        Ok(())
    }

    /// Returns the next frame, parsed.
    pub(super) fn frame(&mut self) -> Result<Value> {
        Ok(serde_json::from_str(&self.next()?)?)
    }
}
