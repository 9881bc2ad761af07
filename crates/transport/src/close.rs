//! Closing a connection from this side.

use crate::message::{MessageReader, MessageWriter, ReceiveError};
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a peer may take to read what is queued for it and to answer a Close frame.
pub const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);

/// Why a connection is closed, with WebSocket close codes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseReason {
    /// The WebSocket close code.
    pub code: u16,
    /// A sentence for people, of at most 123 bytes; may be empty.
    pub text: String,
}

impl CloseReason {
    /// Normal closure: all messages were sent.
    pub const NORMAL: Self = Self::from_code(1000);
    /// This side is stopping.
    pub const AWAY: Self = Self::from_code(1001);
    /// The peer violated the protocol.
    pub const POLICY: Self = Self::from_code(1008);
    /// The peer sent a message that is too long.
    pub const SIZE: Self = Self::from_code(1009);

    const fn from_code(code: u16) -> Self {
        Self { code, text: String::new() }
    }
}

/// Sends what is queued and closes the connection: with a Close frame, to which the peer's answer is awaited, or with the
/// end of the stream. Messages that still arrive are read and dropped, because a connection that ends with unread bytes is
/// reset, and the peer may lose what it was sent last. Gives up after `time_max`.
pub async fn close(
    reader: &mut (impl MessageReader + ?Sized),
    writer: &mut (impl MessageWriter + ?Sized),
    reason: Option<CloseReason>,
    time_max: Duration,
) {
    writer.enqueue_close(reason);
    let mut is_readable = true;
    let closed = poll_fn(|context| poll_close(context, reader, writer, &mut is_readable));
    // A peer that does not take part in the handshake receives nothing more.
    let _ = tokio::time::timeout(time_max, closed).await;
}

fn poll_close(
    context: &mut Context<'_>,
    reader: &mut (impl MessageReader + ?Sized),
    writer: &mut (impl MessageWriter + ?Sized),
    is_readable: &mut bool,
) -> Poll<()> {
    let is_sent = match writer.poll_flush(context) {
        Poll::Ready(Ok(())) => true,
        Poll::Ready(Err(_)) => return Poll::Ready(()),
        Poll::Pending => false,
    };
    let has_answer = writer.has_control_frames();
    if is_sent && !has_answer {
        return Poll::Ready(());
    }
    while *is_readable {
        match reader.poll_arrival(context) {
            Poll::Ready(Ok(())) => drop(reader.take()),
            // The peer may still be sending that message, and reads meanwhile.
            Poll::Ready(Err(ReceiveError::TooLong(_))) => *is_readable = false,
            Poll::Ready(Err(_)) if has_answer => return Poll::Ready(()),
            Poll::Ready(Err(_)) => *is_readable = false,
            Poll::Pending => break,
        }
    }
    Poll::Pending
}
