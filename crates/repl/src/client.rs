//! One client at a session: frames in, frames out, neither waiting for the other.

use super::discreet;
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

/// Frames that wait for a client to read. One that lets more pile up is cut off: a server's memory is not its buffer.
const UNSENT_FRAMES_MAX: usize = 16_384;

/// Bytes that wait for a client to read.
const UNSENT_BYTES_MAX: usize = 64 << 20;

/// How long a client that does not read may take to begin again: then it is told why it is cut off.
const STALLED_MAX: Duration = Duration::from_secs(30);

/// One client.
pub(super) struct ReplConnection {
    /// Counts clients of a session: an answer is for whoever asked, and nobody else.
    pub(super) number: u64,
    pub(super) profile: ValueProfile,
    /// What it calls this server, for links.
    pub(super) host: String,
    reader: Box<dyn MessageReader>,
    writer: Box<dyn MessageWriter>,
    /// Resolves when the connection must end with its credential.
    ended: BoxFuture<'static, ()>,
    is_over: bool,
    /// The limit that it broke, by not reading.
    stalled: Option<String>,
}

/// What comes from a client.
pub(super) enum ClientMessage {
    /// One frame.
    Frame(String),
    /// A frame that is no text at all.
    Noise,
    /// A frame that is too long to be read; what follows it cannot be read either.
    TooLong,
    /// It does not read what it is sent; the sentence says which limit it broke.
    Stalled(String),
    /// Nothing more will come.
    Gone,
}

impl ReplConnection {
    pub(super) fn new(number: u64, attach: AttachRequest) -> Self {
        let AttachRequest { reader, writer, profile, host, ended } = attach;
        Self { number, profile, host, reader, writer, ended, is_over: false, stalled: None }
    }

    /// Says something, as soon as the socket takes it.
    pub(super) fn say(&mut self, frame: &FromServer) {
        self.writer.enqueue(discreet::frame(frame));
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

    /// The next frame. Sends what waits meanwhile. Dropping the future loses nothing.
    pub(super) async fn listen(&mut self) -> ClientMessage {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    /// Says the last word, closes, and waits a little until that is heard.
    pub(super) async fn dismiss(mut self) {
        let reason = Some(CloseReason::NORMAL);
        tokio::select! {
            () = transport::close(&mut *self.reader, &mut *self.writer, reason, CLOSE_TIME_MAX) => {}
            () = self.ended => {}
        }
    }

    /// The same for one that sends too much at once. It is not listened to, but may be in the middle of sending: cut
    /// off now it would hear of that and not of the reason.
    pub(super) async fn dismiss_unheard(mut self) {
        let reason = Some(CloseReason::SIZE);
        transport::close(&mut *self.reader, &mut *self.writer, reason, CLOSE_TIME_MAX).await;
    }

    /// Says to one that does not read why it is cut off, in place of what waits for it, and closes.
    pub(super) async fn dismiss_stalled(mut self, last: FromServer) {
        self.writer.discard_unsent();
        self.say(&last);
        let said = async {
            // It is not listened to before it reads: what it asks for would only wait with the rest.
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
