//! The WebSockets of axum: those that a request to a server is upgraded to.

use crate::close::CloseReason;
use crate::frames::{FrameReader, FrameSocket, FrameWriter, IncomingFrame, frames};
use crate::message::ReceiveError;
use crate::web_socket::receive_error;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use bytes::Bytes;
use std::io;
use tokio_tungstenite::tungstenite;

/// The limits on what a server reads from its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameBounds {
    /// Maximum length of a message that is processed.
    pub message_bytes_max: usize,
    /// Maximum length of a message that is read. Messages between the two limits are
    /// [`Oversized`](crate::IncomingMessage::Oversized); a longer one ends the connection.
    pub read_bytes_max: usize,
    /// Maximum length of a frame; a message may consist of several.
    pub frame_bytes_max: usize,
}

impl FrameBounds {
    /// Creates limits by which longer messages and frames end the connection.
    pub const fn strict(bytes_max: usize) -> Self {
        Self { message_bytes_max: bytes_max, read_bytes_max: bytes_max, frame_bytes_max: bytes_max }
    }
}

/// Returns the response that upgrades the request to a WebSocket. `serve` receives both halves of it.
pub fn accept_upgrade<F: Future<Output = ()> + Send + 'static>(
    upgrade: WebSocketUpgrade,
    bounds: FrameBounds,
    serve: impl FnOnce(FrameReader<WebSocket>, FrameWriter<WebSocket>) -> F + Send + 'static,
) -> Response {
    let FrameBounds { message_bytes_max, read_bytes_max, frame_bytes_max } = bounds;
    let upgrade = upgrade.max_message_size(read_bytes_max).max_frame_size(frame_bytes_max);
    upgrade.on_upgrade(move |socket| {
        let (reader, writer) = frames(socket, message_bytes_max);
        serve(reader, writer)
    })
}

impl FrameSocket for WebSocket {
    type Frame = Message;
    type Fault = axum::Error;

    fn read_frame(frame: Message) -> IncomingFrame {
        match frame {
            Message::Text(text) => IncomingFrame::Data(text.into()),
            Message::Binary(bytes) => IncomingFrame::Data(bytes),
            Message::Pong(payload) => IncomingFrame::Pong(payload),
            Message::Close(frame) => IncomingFrame::Close(frame.map(|frame| CloseReason {
                code: frame.code,
                text: frame.reason.as_str().to_owned(),
            })),
            Message::Ping(_) => IncomingFrame::Other,
        }
    }

    fn send_text(text: String) -> Message {
        Message::Text(text.into())
    }

    fn ping(payload: Bytes) -> Message {
        Message::Ping(payload)
    }

    fn close(reason: Option<CloseReason>) -> Message {
        let frame =
            |CloseReason { code, text }: CloseReason| CloseFrame { code, reason: text.into() };
        Message::Close(reason.map(frame))
    }

    fn receive_error(fault: axum::Error) -> ReceiveError {
        match fault.into_inner().downcast::<tungstenite::Error>() {
            Ok(fault) => receive_error(*fault),
            Err(other) => io::Error::other(other.to_string()).into(),
        }
    }
}
