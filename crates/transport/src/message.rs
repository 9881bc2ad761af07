//! What every transport can do: receive messages in order, and queue and send messages.

use crate::close::CloseReason;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

/// Something that the peer sent.
#[derive(Debug, PartialEq, Eq)]
pub enum IncomingMessage<'r> {
    /// A whole message, in a buffer that the receiver may write to.
    Whole(&'r mut [u8]),
    /// The first bytes of an oversized message. The rest was dropped, and the connection continues.
    Oversized {
        /// Enough bytes to identify the message.
        head: &'r [u8],
        /// The message's length and the limit.
        size: MessageTooLong,
    },
    /// The peer has received everything that was sent before the ping of this number.
    Pong(u64),
}

/// A message that exceeds its receiver's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageTooLong {
    /// The message's length; none if its end was not waited for.
    pub bytes: Option<usize>,
    /// The receiver's limit.
    pub bytes_max: usize,
}

impl fmt::Display for MessageTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes_max = self.bytes_max;
        match self.bytes {
            Some(bytes) => write!(f, "a message has {bytes} bytes, {bytes_max} at most are read"),
            None => write!(f, "a line is longer than {bytes_max} bytes"),
        }
    }
}

impl std::error::Error for MessageTooLong {}

/// Why nothing more can be received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The peer closed the connection, or is gone. Its Close frame, if it sent one, has been answered.
    #[error("the connection is closed")]
    Closed(Option<CloseReason>),
    /// The peer sent an oversized message, and what follows it cannot be read.
    #[error(transparent)]
    TooLong(#[from] MessageTooLong),
    /// The connection failed.
    #[error(transparent)]
    Broken(#[from] io::Error),
}

/// The receiving half of a connection.
pub trait MessageReader: Send {
    /// Waits for something to [`take`](Self::take). Ready until it is taken.
    fn poll_arrival(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ReceiveError>>;

    /// Returns what has arrived. Call it after [`poll_arrival`](Self::poll_arrival) was ready.
    fn take(&mut self) -> IncomingMessage<'_>;

    /// Receives the next message or pong. Cancel safe: dropping the future loses nothing.
    fn receive(&mut self) -> impl Future<Output = Result<IncomingMessage<'_>, ReceiveError>> + Send
    where
        Self: Sized,
    {
        async {
            poll_fn(|context| self.poll_arrival(context)).await?;
            Ok(self.take())
        }
    }
}

/// The amount that waits in a [`MessageWriter`] for its peer to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnsentAmount {
    /// Messages that the stream or socket has not accepted.
    pub messages: usize,
    /// Bytes that are not known to be sent.
    pub bytes: usize,
}

/// The sending half of a connection: a queue, and the methods that flush it. The queue has no limit of its own: its
/// owner checks [`unsent`](Self::unsent), and then waits, refuses, or reports to the peer that it reads too slowly.
pub trait MessageWriter: Send {
    /// Queues a message. Messages after [`enqueue_close`](Self::enqueue_close) are dropped.
    fn enqueue(&mut self, text: String);

    /// Queues a ping, which is answered by [`IncomingMessage::Pong`]; no effect if the transport has no pings.
    fn enqueue_ping(&mut self, number: u64);

    /// Queues the end: a Close frame with this reason, or the end of the stream.
    fn enqueue_close(&mut self, reason: Option<CloseReason>);

    /// Returns the amount that is queued and not yet sent.
    fn unsent(&self) -> UnsentAmount;

    /// Drops queued messages whose sending has not begun.
    fn discard_unsent(&mut self);

    /// Sends all that is queued. `Pending` loses nothing.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Whether the transport has pings and a close handshake. Line transports have neither.
    fn has_control_frames(&self) -> bool;

    /// Sends all that is queued. Cancel safe: dropping the future loses nothing.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> + Send
    where
        Self: Sized,
    {
        poll_fn(|context| self.poll_flush(context))
    }

    /// Queues a message and sends all that is queued.
    fn send(&mut self, text: String) -> impl Future<Output = io::Result<()>> + Send
    where
        Self: Sized,
    {
        self.enqueue(text);
        self.flush()
    }
}

impl<T: MessageReader + ?Sized> MessageReader for &mut T {
    fn poll_arrival(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ReceiveError>> {
        (**self).poll_arrival(context)
    }

    fn take(&mut self) -> IncomingMessage<'_> {
        (**self).take()
    }
}

impl<T: MessageWriter + ?Sized> MessageWriter for &mut T {
    fn enqueue(&mut self, text: String) {
        (**self).enqueue(text);
    }

    fn enqueue_ping(&mut self, number: u64) {
        (**self).enqueue_ping(number);
    }

    fn enqueue_close(&mut self, reason: Option<CloseReason>) {
        (**self).enqueue_close(reason);
    }

    fn unsent(&self) -> UnsentAmount {
        (**self).unsent()
    }

    fn discard_unsent(&mut self) {
        (**self).discard_unsent();
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_flush(context)
    }

    fn has_control_frames(&self) -> bool {
        (**self).has_control_frames()
    }
}

/// A half that can be dropped early: `None` is closed.
impl<T: MessageReader> MessageReader for Option<T> {
    fn poll_arrival(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ReceiveError>> {
        match self {
            Some(reader) => reader.poll_arrival(context),
            None => Poll::Ready(Err(ReceiveError::Closed(None))),
        }
    }

    fn take(&mut self) -> IncomingMessage<'_> {
        match self {
            Some(reader) => reader.take(),
            None => IncomingMessage::Whole(&mut []),
        }
    }
}

impl<T: MessageWriter> MessageWriter for Option<T> {
    fn enqueue(&mut self, text: String) {
        if let Some(writer) = self {
            writer.enqueue(text);
        }
    }

    fn enqueue_ping(&mut self, number: u64) {
        if let Some(writer) = self {
            writer.enqueue_ping(number);
        }
    }

    fn enqueue_close(&mut self, reason: Option<CloseReason>) {
        if let Some(writer) = self {
            writer.enqueue_close(reason);
        }
    }

    fn unsent(&self) -> UnsentAmount {
        self.as_ref().map(MessageWriter::unsent).unwrap_or_default()
    }

    fn discard_unsent(&mut self) {
        if let Some(writer) = self {
            writer.discard_unsent();
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Some(writer) => writer.poll_flush(context),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn has_control_frames(&self) -> bool {
        self.as_ref().is_some_and(MessageWriter::has_control_frames)
    }
}
