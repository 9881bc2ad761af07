//! How messages travel: one JSON text per line of a stream, or one per message of a WebSocket.

use axum::extract::ws::{Message, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use protocols::exec_server::MESSAGE_BYTES_MAX;
use protocols::ndjson::Lines;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// How much is read at once: what a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// A message that is written as it is instead of being copied to its neighbours.
const LARGE_BYTES: usize = 16 << 10;

/// What a client sends.
pub(super) enum Received {
    /// A message.
    Text(String),
    /// It has read everything up to the ping of this number.
    Heard(u64),
    /// Nothing to look at.
    Nothing,
}

/// Where a client's messages come from.
pub(super) trait Incoming: Send {
    /// The next one; `None` at the end, or after nonsense. Dropping the future loses nothing.
    fn next(&mut self) -> impl Future<Output = Option<Received>> + Send;
}

/// Where its answers go.
pub(super) trait Outgoing: Send {
    /// Whether a ping can be sent, and is answered.
    const PINGS: bool;
    /// Takes messages over and sends them.
    fn send(&mut self, texts: Vec<String>) -> impl Future<Output = io::Result<()>> + Send;
    /// Asks to be told when everything before it was read.
    fn ping(&mut self, number: u64) -> impl Future<Output = io::Result<()>> + Send;
    /// Says goodbye.
    fn close(&mut self) -> impl Future<Output = ()> + Send;
}

/// Messages as lines.
pub(super) fn lines<R, W>(reader: R, writer: W) -> (LinesIn<R>, LinesOut<W>) {
    (LinesIn { reader, lines: Lines::new(MESSAGE_BYTES_MAX + 1) }, LinesOut { writer })
}

pub(super) struct LinesIn<R> {
    reader: R,
    lines: Lines,
}

impl<R: AsyncRead + Unpin + Send> Incoming for LinesIn<R> {
    async fn next(&mut self) -> Option<Received> {
        while !self.lines.has_line().ok()? {
            let n = self.reader.read(self.lines.room(READ_BYTES)).await.ok()?;
            if n == 0 {
                return None;
            }
            self.lines.filled(n);
        }
        let line = self.lines.take().ok()??;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = String::from_utf8_lossy(line);
        if text.trim().is_empty() {
            return Some(Received::Nothing);
        }
        Some(Received::Text(text.into_owned()))
    }
}

pub(super) struct LinesOut<W> {
    writer: W,
}

impl<W: AsyncWrite + Unpin + Send> Outgoing for LinesOut<W> {
    const PINGS: bool = false;

    async fn send(&mut self, texts: Vec<String>) -> io::Result<()> {
        // One write for all small ones that wait: a system call for each would cost more than the messages.
        let mut small = vec![];
        for mut text in texts {
            text.push('\n');
            if text.len() < LARGE_BYTES {
                small.extend_from_slice(text.as_bytes());
                continue;
            }
            self.writer.write_all(&small).await?;
            small.clear();
            self.writer.write_all(text.as_bytes()).await?;
        }
        self.writer.write_all(&small).await?;
        self.writer.flush().await
    }

    async fn ping(&mut self, _number: u64) -> io::Result<()> {
        Ok(())
    }

    async fn close(&mut self) {
        // Whoever does not hear it hears nothing at all.
        let _ = self.writer.shutdown().await;
    }
}

/// Messages as frames.
pub(super) fn frames(socket: WebSocket) -> (FramesIn, FramesOut) {
    let (sink, stream) = socket.split();
    (FramesIn(stream), FramesOut(sink))
}

pub(super) struct FramesIn(SplitStream<WebSocket>);

impl Incoming for FramesIn {
    async fn next(&mut self) -> Option<Received> {
        Some(match self.0.next().await?.ok()? {
            Message::Text(text) => Received::Text(text.as_str().to_owned()),
            Message::Binary(bytes) => Received::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Message::Pong(payload) => match <[u8; 8]>::try_from(payload.as_ref()) {
                Ok(number) => Received::Heard(u64::from_be_bytes(number)),
                Err(_) => Received::Nothing,
            },
            // The library answers a Close frame when the socket is read again; then the socket ends.
            Message::Ping(_) | Message::Close(_) => Received::Nothing,
        })
    }
}

pub(super) struct FramesOut(SplitSink<WebSocket, Message>);

impl Outgoing for FramesOut {
    const PINGS: bool = true;

    async fn send(&mut self, texts: Vec<String>) -> io::Result<()> {
        for text in texts {
            self.0.feed(Message::Text(text.into())).await.map_err(io::Error::other)?;
        }
        self.0.flush().await.map_err(io::Error::other)
    }

    async fn ping(&mut self, number: u64) -> io::Result<()> {
        let payload = number.to_be_bytes().to_vec();
        self.0.send(Message::Ping(payload.into())).await.map_err(io::Error::other)
    }

    async fn close(&mut self) {
        let _ = self.0.close().await;
    }
}
