//! How messages travel: one JSON text per line of a stream, or one per frame of a WebSocket.

use super::run::Frames;
use axum::extract::ws::{Message, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{Sink, StreamExt as _};
use protocols::execbox::HOST_MESSAGE_BYTES_MAX;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// How much is read at once: what a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// Largest frame that is read at all. What is longer than a message and no longer than this is answered; a socket breaks
/// off at what is longer still.
pub(super) const FRAME_BYTES_MAX: usize = 2 * HOST_MESSAGE_BYTES_MAX;

/// What is kept of the beginning of a message that is too long: its type and its id are looked for in it.
const HEAD_BYTES_MAX: usize = 4 << 10;

/// What a host has sent.
pub(super) enum HostMessage<'b> {
    /// A message, in a buffer that may be written to.
    Whole(&'b mut [u8]),
    /// The beginning of one that is too long.
    TooLong(&'b [u8]),
}

impl<'b> HostMessage<'b> {
    fn of(message: &'b mut [u8]) -> Self {
        if message.len() > HOST_MESSAGE_BYTES_MAX {
            return Self::TooLong(&message[..HEAD_BYTES_MAX]);
        }
        Self::Whole(message)
    }
}

/// Where a host's messages come from.
pub(super) trait Incoming: Send {
    /// The next one; `None` at the end. Dropping the future loses nothing.
    fn next(&mut self) -> impl Future<Output = Option<HostMessage<'_>>> + Send;
}

/// Where a host's answers go.
pub(super) trait Outgoing: Send {
    /// Takes lines over, to be sent.
    fn enqueue(&mut self, frames: &mut Frames);
    /// What is not sent yet.
    fn unsent_bytes(&self) -> usize;
    /// Sends what is enqueued. Dropping the future loses nothing.
    fn send(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}

/// Messages as lines of a stream. Of a line that is too long only the beginning is kept.
pub(super) struct LinesIn<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where the first line not yet handed out begins.
    start: usize,
    /// No line break lies before this.
    searched: usize,
    /// The beginning of the line that is arriving, which has already proved too long.
    skipping: Option<Vec<u8>>,
    /// The beginning of a line that was too long and has ended.
    skipped: Vec<u8>,
}

/// A line that has arrived.
enum ArrivedLine {
    Whole(std::ops::Range<usize>),
    /// Its beginning is in `skipped`.
    TooLong,
}

impl<R> LinesIn<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            skipping: None,
            skipped: Vec::new(),
        }
    }

    /// The next line that has arrived.
    fn take(&mut self) -> Option<ArrivedLine> {
        let unsearched = &self.buffer[self.searched..];
        let Some(found) = memchr::memchr(b'\n', unsearched) else {
            self.searched = self.buffer.len();
            if self.skipping.is_none() && self.searched - self.start > HOST_MESSAGE_BYTES_MAX {
                self.skipping = Some(self.buffer[self.start..][..HEAD_BYTES_MAX].to_vec());
            }
            if self.skipping.is_some() {
                self.buffer.clear();
                (self.start, self.searched) = (0, 0);
            }
            return None;
        };
        let line = self.start..self.searched + found;
        self.start = line.end + 1;
        self.searched = self.start;
        if let Some(head) = self.skipping.take() {
            self.skipped = head;
            return Some(ArrivedLine::TooLong);
        }
        if line.len() > HOST_MESSAGE_BYTES_MAX {
            self.skipped = self.buffer[line][..HEAD_BYTES_MAX].to_vec();
            return Some(ArrivedLine::TooLong);
        }
        Some(ArrivedLine::Whole(line))
    }

    /// Moves an unfinished line to the front.
    fn close_up(&mut self) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.reserve(READ_BYTES);
    }
}

impl<R: AsyncRead + Unpin + Send> Incoming for LinesIn<R> {
    async fn next(&mut self) -> Option<HostMessage<'_>> {
        loop {
            match self.take() {
                Some(ArrivedLine::Whole(line)) => {
                    return Some(HostMessage::Whole(&mut self.buffer[line]));
                }
                Some(ArrivedLine::TooLong) => return Some(HostMessage::TooLong(&self.skipped)),
                None => {}
            }
            self.close_up();
            if self.reader.read_buf(&mut self.buffer).await.ok()? == 0 {
                return None;
            }
        }
    }
}

/// Answers as lines of a stream.
pub(super) struct LinesOut<W> {
    writer: W,
    unsent: Vec<u8>,
    sent: usize,
}

impl<W> LinesOut<W> {
    pub(super) const fn new(writer: W) -> Self {
        Self { writer, unsent: Vec::new(), sent: 0 }
    }
}

impl<W: AsyncWrite + Unpin + Send> Outgoing for LinesOut<W> {
    fn enqueue(&mut self, frames: &mut Frames) {
        for frame in frames.drain(..) {
            if self.unsent.is_empty() {
                self.unsent = frame;
            } else {
                self.unsent.extend_from_slice(&frame);
            }
        }
    }

    fn unsent_bytes(&self) -> usize {
        self.unsent.len() - self.sent
    }

    async fn send(&mut self) -> io::Result<()> {
        while self.sent < self.unsent.len() {
            let n = self.writer.write(&self.unsent[self.sent..]).await?;
            if n == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.sent += n;
        }
        self.unsent.clear();
        self.sent = 0;
        self.writer.flush().await
    }
}

/// Both halves of a WebSocket.
pub(super) fn frames(socket: WebSocket) -> (FramesIn, FramesOut) {
    let (sink, stream) = socket.split();
    let frames_in = FramesIn { stream, message: Vec::new() };
    (frames_in, FramesOut { sink, unsent: VecDeque::new(), unsent_bytes: 0 })
}

/// Messages as frames.
pub(super) struct FramesIn {
    stream: SplitStream<WebSocket>,
    message: Vec<u8>,
}

impl Incoming for FramesIn {
    async fn next(&mut self) -> Option<HostMessage<'_>> {
        loop {
            match self.stream.next().await?.ok()? {
                Message::Text(text) => self.message = axum::body::Bytes::from(text).into(),
                Message::Binary(bytes) => self.message = bytes.into(),
                // The library answers a Close frame when the socket is read again; then the socket ends.
                Message::Ping(_) | Message::Pong(_) | Message::Close(_) => continue,
            }
            return Some(HostMessage::of(&mut self.message));
        }
    }
}

/// Answers as frames.
pub(super) struct FramesOut {
    sink: SplitSink<WebSocket, Message>,
    unsent: VecDeque<Message>,
    /// Counts what the socket has taken and not yet sent, too.
    unsent_bytes: usize,
}

impl Outgoing for FramesOut {
    fn enqueue(&mut self, frames: &mut Frames) {
        for mut frame in frames.drain(..) {
            // A frame needs no line break.
            frame.pop();
            self.unsent_bytes += frame.len();
            if let Ok(text) = String::from_utf8(frame) {
                self.unsent.push_back(Message::Text(text.into()));
            }
        }
    }

    fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    async fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            poll_fn(|context| Pin::new(&mut self.sink).poll_ready(context))
                .await
                .map_err(broken)?;
            if let Some(message) = self.unsent.pop_front() {
                Pin::new(&mut self.sink).start_send(message).map_err(broken)?;
            }
        }
        poll_fn(|context| Pin::new(&mut self.sink).poll_flush(context)).await.map_err(broken)?;
        self.unsent_bytes = 0;
        Ok(())
    }
}

fn broken(error: axum::Error) -> io::Error {
    io::Error::other(error)
}
