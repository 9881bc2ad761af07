//! One message per frame of a WebSocket, whichever library made the socket.

use crate::close::{CLOSE_TIME_MAX, CloseReason};
use crate::lines::HEAD_BYTES_MAX;
use crate::message::{
    IncomingMessage, MessageReader, MessageTooLong, MessageWriter, ReceiveError, UnsentAmount,
};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{Sink, Stream, StreamExt as _};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::Sleep;

/// The meaning of a WebSocket frame.
#[derive(Debug)]
pub enum IncomingFrame {
    /// A message.
    Data(Bytes),
    /// The answer to a ping.
    Pong(Bytes),
    /// The peer closes the connection.
    Close(Option<CloseReason>),
    /// Requires no action: the library answers pings.
    Other,
}

/// A WebSocket of some library. It answers pings and Close frames while it is read, and fails on messages above its
/// own limit.
pub trait FrameSocket:
    Stream<Item = Result<Self::Frame, Self::Fault>>
    + Sink<Self::Frame, Error = Self::Fault>
    + Send
    + Unpin
{
    /// The library's type of frames.
    type Frame: Send;
    /// The library's type of errors.
    type Fault: Send;

    /// Converts a frame of the library.
    fn read_frame(frame: Self::Frame) -> IncomingFrame;
    /// Creates a text frame.
    fn send_text(text: String) -> Self::Frame;
    /// Creates a ping frame.
    fn ping(payload: Bytes) -> Self::Frame;
    /// Creates a Close frame.
    fn close(reason: Option<CloseReason>) -> Self::Frame;
    /// Converts an error of the library.
    fn receive_error(fault: Self::Fault) -> ReceiveError;
}

/// Both halves of a connection over a socket. A message of more than `bytes_max` bytes is
/// [`IncomingMessage::Oversized`]; the socket should have the same limit, or a larger one for messages that are answered.
pub fn frames<S: FrameSocket>(socket: S, bytes_max: usize) -> (FrameReader<S>, FrameWriter<S>) {
    let (sink, stream) = socket.split();
    let reader = FrameReader { stream, bytes_max, arrival: None, data: vec![], ending: None };
    (reader, FrameWriter::new(sink))
}

/// Reads messages as text or binary frames.
pub struct FrameReader<S> {
    stream: SplitStream<S>,
    bytes_max: usize,
    arrival: Option<FrameArrival>,
    /// The last message that arrived.
    data: Vec<u8>,
    ending: Option<ReadEnd>,
}

enum FrameArrival {
    Data,
    Pong(u64),
}

/// Why reading has ended.
enum ReadEnd {
    /// The peer closes. The socket is read further for a short time, until its Close frame is answered.
    Closing(Option<CloseReason>, Pin<Box<Sleep>>),
    TooLong(MessageTooLong),
    Over,
}

impl<S: FrameSocket> FrameReader<S> {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ReceiveError>> {
        let Some(next) = ready!(self.stream.poll_next_unpin(context)) else {
            return self.end_reason(ReceiveError::Closed(None));
        };
        match next.map(S::read_frame) {
            Ok(IncomingFrame::Data(bytes)) => {
                self.data = bytes.into();
                self.arrival = Some(FrameArrival::Data);
            }
            Ok(IncomingFrame::Pong(payload)) => {
                let number = <[u8; 8]>::try_from(payload.as_ref()).ok();
                self.arrival = number.map(|number| FrameArrival::Pong(u64::from_be_bytes(number)));
            }
            Ok(IncomingFrame::Close(reason)) => {
                let deadline = Box::pin(tokio::time::sleep(CLOSE_TIME_MAX));
                self.ending = Some(ReadEnd::Closing(reason, deadline));
            }
            Ok(IncomingFrame::Other) => {}
            Err(fault) => return self.end_reason(S::receive_error(fault)),
        }
        Poll::Ready(Ok(()))
    }

    fn end_reason(&mut self, error: ReceiveError) -> Poll<Result<(), ReceiveError>> {
        self.ending = Some(match &error {
            ReceiveError::TooLong(size) => ReadEnd::TooLong(*size),
            ReceiveError::Closed(_) | ReceiveError::Broken(_) => ReadEnd::Over,
        });
        Poll::Ready(Err(error))
    }
}

impl<S: FrameSocket> MessageReader for FrameReader<S> {
    fn poll_arrival(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ReceiveError>> {
        while self.arrival.is_none() {
            match &mut self.ending {
                None => ready!(self.poll_frame(context))?,
                Some(ReadEnd::Closing(reason, deadline)) => {
                    match self.stream.poll_next_unpin(context) {
                        Poll::Ready(Some(Ok(_))) => continue,
                        Poll::Ready(Some(Err(_)) | None) => {}
                        Poll::Pending => ready!(deadline.as_mut().poll(context)),
                    }
                    let reason = reason.take();
                    return self.end_reason(ReceiveError::Closed(reason));
                }
                Some(ReadEnd::TooLong(size)) => {
                    return Poll::Ready(Err(ReceiveError::TooLong(*size)));
                }
                Some(ReadEnd::Over) => return Poll::Ready(Err(ReceiveError::Closed(None))),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn take(&mut self) -> IncomingMessage<'_> {
        let (bytes, bytes_max) = (self.data.len(), self.bytes_max);
        match self.arrival.take() {
            Some(FrameArrival::Pong(number)) => IncomingMessage::Pong(number),
            Some(FrameArrival::Data) if bytes > bytes_max => {
                let head = &self.data[..bytes.min(HEAD_BYTES_MAX)];
                let size = MessageTooLong { bytes: Some(bytes), bytes_max };
                IncomingMessage::Oversized { head, size }
            }
            Some(FrameArrival::Data) | None => IncomingMessage::Whole(&mut self.data),
        }
    }
}

impl<S> fmt::Debug for FrameReader<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameReader").field("bytes_max", &self.bytes_max).finish_non_exhaustive()
    }
}

/// Writes messages as text frames.
pub struct FrameWriter<S: FrameSocket> {
    sink: SplitSink<S, S::Frame>,
    queue: VecDeque<QueuedFrame>,
    /// Bytes of the messages in `queue`.
    queued_bytes: usize,
    n_messages: usize,
    /// Length of the last message that the socket took and may not have sent. Those before it are in its buffer at most.
    taken_bytes: usize,
    is_flushed: bool,
    is_closing: bool,
}

enum QueuedFrame {
    Text(String),
    Ping(u64),
    Close(Option<CloseReason>),
}

impl<S: FrameSocket> FrameWriter<S> {
    const fn new(sink: SplitSink<S, S::Frame>) -> Self {
        Self {
            sink,
            queue: VecDeque::new(),
            queued_bytes: 0,
            n_messages: 0,
            taken_bytes: 0,
            is_flushed: true,
            is_closing: false,
        }
    }

    /// Passes the first frame of the queue to the socket.
    fn start_send(&mut self) -> Result<(), S::Fault> {
        let Some(first) = self.queue.pop_front() else { return Ok(()) };
        let frame = match first {
            QueuedFrame::Text(text) => {
                self.queued_bytes -= text.len();
                self.n_messages -= 1;
                self.taken_bytes = text.len();
                S::send_text(text)
            }
            QueuedFrame::Ping(number) => S::ping(number.to_be_bytes().to_vec().into()),
            QueuedFrame::Close(reason) => S::close(reason),
        };
        self.is_flushed = false;
        Pin::new(&mut self.sink).start_send(frame)
    }

    fn poll_sink(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Fault>> {
        while !self.queue.is_empty() {
            ready!(Pin::new(&mut self.sink).poll_ready(context))?;
            self.start_send()?;
        }
        if !self.is_flushed {
            ready!(Pin::new(&mut self.sink).poll_flush(context))?;
            self.is_flushed = true;
            self.taken_bytes = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: FrameSocket> MessageWriter for FrameWriter<S> {
    fn enqueue(&mut self, text: String) {
        if !self.is_closing {
            self.queued_bytes += text.len();
            self.n_messages += 1;
            self.queue.push_back(QueuedFrame::Text(text));
        }
    }

    fn enqueue_ping(&mut self, number: u64) {
        if !self.is_closing {
            self.queue.push_back(QueuedFrame::Ping(number));
        }
    }

    fn enqueue_close(&mut self, reason: Option<CloseReason>) {
        if !self.is_closing {
            self.is_closing = true;
            self.queue.push_back(QueuedFrame::Close(reason));
        }
    }

    fn unsent(&self) -> UnsentAmount {
        UnsentAmount { messages: self.n_messages, bytes: self.queued_bytes + self.taken_bytes }
    }

    fn discard_unsent(&mut self) {
        self.queue.clear();
        (self.queued_bytes, self.n_messages) = (0, 0);
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sink(context).map_err(|fault| match S::receive_error(fault) {
            ReceiveError::Broken(error) => error,
            ReceiveError::Closed(_) => io::ErrorKind::NotConnected.into(),
            ReceiveError::TooLong(size) => io::Error::other(size),
        })
    }

    fn has_control_frames(&self) -> bool {
        true
    }
}

impl<S: FrameSocket> fmt::Debug for FrameWriter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameWriter").field("unsent", &self.unsent()).finish_non_exhaustive()
    }
}
