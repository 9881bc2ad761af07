//! One client at a session: frames in, frames out, neither waiting for the other.

use super::discreet;
use super::session::Attach;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use futures_util::future::BoxFuture;
use futures_util::{Sink as _, Stream as _};
use protocols::hotrepl::Profile;
use protocols::hotrepl::wire::FromServer;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Frames that wait for a client to read. One that lets more pile up is cut off: a server's memory is not its buffer.
const UNSENT_FRAMES_MAX: usize = 16_384;

/// Bytes that wait for a client to read.
const UNSENT_BYTES_MAX: usize = 64 << 20;

/// How long somebody who is sent away may take to hear it.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

/// How long a client that does not read may take to begin again: then it is told why it is cut off.
const STALLED_MAX: Duration = Duration::from_secs(30);

/// One client.
pub(super) struct Client {
    /// Counts clients of a session: an answer is for whoever asked, and nobody else.
    pub(super) number: u64,
    pub(super) profile: Profile,
    /// What it calls this server, for links.
    pub(super) host: String,
    socket: WebSocket,
    /// Resolves when the connection must end with its credential.
    ended: BoxFuture<'static, ()>,
    unsent: VecDeque<Message>,
    unsent_bytes: usize,
    is_flushed: bool,
    is_over: bool,
    /// The limit that it broke, by not reading.
    stalled: Option<String>,
}

/// What comes from a client.
pub(super) enum Heard {
    /// One frame.
    Frame(Utf8Bytes),
    /// A frame that is no text at all.
    Noise,
    /// A frame that is too long to be read; what follows it cannot be read either.
    TooLong,
    /// It does not read what it is sent; the sentence says which limit it broke.
    Stalled(String),
    /// Nothing more will come.
    Gone,
}

impl Client {
    pub(super) fn new(number: u64, attach: Attach) -> Self {
        let Attach { socket, profile, host, ended } = attach;
        let unsent = VecDeque::new();
        Self {
            number,
            profile,
            host,
            socket,
            ended,
            unsent,
            unsent_bytes: 0,
            is_flushed: true,
            is_over: false,
            stalled: None,
        }
    }

    /// Says something, as soon as the socket takes it.
    pub(super) fn say(&mut self, frame: &FromServer) {
        let text = discreet::frame(frame);
        self.unsent_bytes += text.len();
        self.unsent.push_back(Message::Text(text.into()));
        let limit = if self.unsent.len() > UNSENT_FRAMES_MAX {
            format!("{UNSENT_FRAMES_MAX} frames")
        } else if self.unsent_bytes > UNSENT_BYTES_MAX {
            format!("{UNSENT_BYTES_MAX} bytes")
        } else {
            return;
        };
        self.stalled.get_or_insert_with(|| {
            format!("More than {limit} waited for this client to read, so the connection is closed. Connect again, and read faster.")
        });
    }

    /// The next frame. Sends what waits meanwhile. Dropping the future loses nothing.
    pub(super) async fn listen(&mut self) -> Heard {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    /// Says the last word, closes, and waits a little until that is heard.
    pub(super) async fn dismiss(mut self) {
        self.close(close_code::NORMAL);
        let heard = async { while !matches!(self.listen().await, Heard::Gone) {} };
        let _ = tokio::time::timeout(FAREWELL_MAX, heard).await;
    }

    /// The same for one that sends too much at once. It is not listened to, but may be in the middle of sending: cut
    /// off now it would hear of that and not of the reason.
    pub(super) async fn dismiss_unheard(mut self) {
        self.close(close_code::SIZE);
        let said = std::future::poll_fn(|context| match self.write(context) {
            Ok(()) => Poll::<()>::Pending,
            Err(_) => Poll::Ready(()),
        });
        let _ = tokio::time::timeout(FAREWELL_MAX, said).await;
    }

    /// Says to one that does not read why it is cut off, in place of what waits for it, and closes.
    pub(super) async fn dismiss_stalled(mut self, last: FromServer) {
        self.unsent.clear();
        self.unsent_bytes = 0;
        self.say(&last);
        self.close(close_code::POLICY);
        let mut is_said = false;
        let heard = std::future::poll_fn(|context| {
            if self.write(context).is_err() {
                return Poll::Ready(());
            }
            is_said |= self.unsent.is_empty() && self.is_flushed;
            // A connection that ends before everything is read that the client sent takes the last word with it.
            if is_said { self.drop_frames(context) } else { Poll::Pending }
        });
        let _ = tokio::time::timeout(STALLED_MAX, heard).await;
    }

    fn close(&mut self, code: u16) {
        let frame = CloseFrame { code, reason: Utf8Bytes::default() };
        self.unsent.push_back(Message::Close(Some(frame)));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Heard> {
        if !self.is_over {
            self.is_over = self.ended.as_mut().poll(context).is_ready();
        }
        if self.is_over || self.write(context).is_err() {
            return Poll::Ready(Heard::Gone);
        }
        if let Some(why) = self.stalled.take() {
            return Poll::Ready(Heard::Stalled(why));
        }
        loop {
            return match Pin::new(&mut self.socket).poll_next(context) {
                Poll::Ready(Some(Ok(Message::Text(text)))) => Poll::Ready(Heard::Frame(text)),
                Poll::Ready(Some(Ok(Message::Binary(bytes)))) => {
                    Poll::Ready(Utf8Bytes::try_from(bytes).map_or(Heard::Noise, Heard::Frame))
                }
                // The library answers a Close frame when the socket is read again; then the socket ends.
                Poll::Ready(Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_)))) => {
                    continue;
                }
                Poll::Ready(Some(Err(error))) if is_too_long(&error) => Poll::Ready(Heard::TooLong),
                Poll::Ready(Some(Err(_)) | None) => Poll::Ready(Heard::Gone),
                Poll::Pending => Poll::Pending,
            };
        }
    }

    /// Reads and drops what arrives; ready once nothing more will.
    fn drop_frames(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match Pin::new(&mut self.socket).poll_next(context) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn write(&mut self, context: &mut Context<'_>) -> Result<(), axum::Error> {
        while !self.unsent.is_empty() {
            match Pin::new(&mut self.socket).poll_ready(context) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => return Ok(()),
            }
            if let Some(message) = self.unsent.pop_front() {
                if let Message::Text(text) = &message {
                    self.unsent_bytes -= text.len();
                }
                Pin::new(&mut self.socket).start_send(message)?;
                self.is_flushed = false;
            }
        }
        if !self.is_flushed
            && let Poll::Ready(flushed) = Pin::new(&mut self.socket).poll_flush(context)
        {
            flushed?;
            self.is_flushed = true;
        }
        Ok(())
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    let why = std::error::Error::source(error).and_then(|why| why.downcast_ref());
    matches!(why, Some(tokio_tungstenite::tungstenite::Error::Capacity(_)))
}
