//! One client of a session: it reads and writes frames, and neither direction waits for the other.

use super::redact;
use super::session::AttachRequest;
use futures_util::future::BoxFuture;
use protocols::hotrepl::ValueProfile;
use protocols::hotrepl::wire::FromServer;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;
use transport::{
    CLOSE_TIME_MAX, CloseReason, IncomingMessage, MessageReader, MessageWriter, ReceiveError,
};

/// Maximum number of frames that wait for a client to read. A client that exceeds it is disconnected: a server's
/// memory is not its buffer.
const UNSENT_FRAMES_MAX: usize = 16_384;

/// Maximum number of bytes that wait for a client to read.
const UNSENT_BYTES_MAX: usize = 64 << 20;

/// How long a client that stopped reading may take to resume, so that it can receive the reason for the disconnect.
const STALLED_MAX: Duration = Duration::from_secs(30);

/// One client.
pub(super) struct ReplConnection {
    /// The number of this client in its session: an answer goes only to the client that asked.
    pub(super) number: u64,
    pub(super) profile: ValueProfile,
    /// The host by which the client addresses this server, for links.
    pub(super) host: String,
    reader: Box<dyn MessageReader>,
    writer: Box<dyn MessageWriter>,
    /// Resolves when the connection must end with its credential.
    ended: BoxFuture<'static, ()>,
    is_over: bool,
    /// The limit that it exceeded by not reading.
    stalled: Option<String>,
}

/// A message from a client.
pub(super) enum ClientMessage {
    /// One text frame.
    Frame(String),
    /// A frame that is not text.
    Noise,
    /// A frame that is too long to be read; what follows it cannot be read either.
    TooLong,
    /// The client does not read its frames; the text names the limit that it exceeded.
    Stalled(String),
    /// The connection has ended.
    Gone,
}

impl ReplConnection {
    pub(super) fn new(number: u64, attach: AttachRequest) -> Self {
        let AttachRequest { reader, writer, profile, host, ended } = attach;
        Self { number, profile, host, reader, writer, ended, is_over: false, stalled: None }
    }

    /// Queues a frame, which is sent as soon as the socket accepts it.
    pub(super) fn send_frame(&mut self, frame: &FromServer) {
        self.writer.enqueue(redact::frame(frame));
        let unsent = self.writer.unsent();
        let limit = if unsent.messages > UNSENT_FRAMES_MAX {
            format!("{UNSENT_FRAMES_MAX} frames")
        } else if unsent.bytes > UNSENT_BYTES_MAX {
            format!("{UNSENT_BYTES_MAX} bytes")
        } else {
            return;
        };
        self.stalled.get_or_insert_with(|| {
            format!("More than {limit} waited for this client to read, so the connection is closed. Connect again, and read faster.")
        });
    }

    /// Returns the next frame, and sends queued frames meanwhile. Cancel safe: dropping the future loses nothing.
    pub(super) async fn listen(&mut self) -> ClientMessage {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    /// Sends the last frame, closes the connection, and waits briefly until the client has received it.
    pub(super) async fn dismiss(mut self) {
        let reason = Some(CloseReason::NORMAL);
        tokio::select! {
            () = transport::close(&mut *self.reader, &mut *self.writer, reason, CLOSE_TIME_MAX) => {}
            () = self.ended => {}
        }
    }

    /// Like `dismiss`, for a client that sends too much in one batch. Its messages are no longer processed, but it
    /// may still be sending: if it were cut off now it would receive a connection error and not the reason.
    pub(super) async fn dismiss_unheard(mut self) {
        let reason = Some(CloseReason::SIZE);
        transport::close(&mut *self.reader, &mut *self.writer, reason, CLOSE_TIME_MAX).await;
    }

    /// Sends the reason for the disconnect to a client that does not read, in place of its queued frames, and closes.
    pub(super) async fn dismiss_stalled(mut self, last: FromServer) {
        self.writer.discard_unsent();
        self.send_frame(&last);
        let said = async {
            // Its messages are not read before it reads: further requests would only queue up.
            poll_fn(|context| self.writer.poll_flush(context)).await?;
            let reason = Some(CloseReason::POLICY);
            transport::close(&mut *self.reader, &mut *self.writer, reason, STALLED_MAX).await;
            std::io::Result::Ok(())
        };
        let _ = tokio::time::timeout(STALLED_MAX, said).await;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ClientMessage> {
        if !self.is_over {
            self.is_over = self.ended.as_mut().poll(context).is_ready();
        }
        if self.is_over || matches!(self.writer.poll_flush(context), Poll::Ready(Err(_))) {
            return Poll::Ready(ClientMessage::Gone);
        }
        if let Some(why) = self.stalled.take() {
            return Poll::Ready(ClientMessage::Stalled(why));
        }
        loop {
            return Poll::Ready(match self.reader.poll_arrival(context) {
                Poll::Ready(Ok(())) => match self.reader.take() {
                    IncomingMessage::Whole(bytes) => String::from_utf8(bytes.to_vec())
                        .map_or(ClientMessage::Noise, ClientMessage::Frame),
                    IncomingMessage::Oversized { .. } => ClientMessage::TooLong,
                    IncomingMessage::Pong(_) => continue,
                },
                Poll::Ready(Err(ReceiveError::TooLong(_))) => ClientMessage::TooLong,
                Poll::Ready(Err(ReceiveError::Closed(_) | ReceiveError::Broken(_))) => {
                    ClientMessage::Gone
                }
                Poll::Pending => return Poll::Pending,
            });
        }
    }
}
