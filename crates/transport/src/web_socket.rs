//! The WebSockets of tokio-tungstenite: client connections, and connections within this process.

use crate::close::CloseReason;
use crate::frames::{FrameReader, FrameSocket, FrameWriter, IncomingFrame, frames};
use crate::message::{MessageTooLong, ReceiveError};
use bytes::Bytes;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The receiving half of a client connection.
pub type ClientReader = FrameReader<WebSocketStream<TcpStream>>;

/// The sending half of a client connection.
pub type ClientWriter = FrameWriter<WebSocketStream<TcpStream>>;

/// Upgrades a connection to a server to a WebSocket. Messages of more than `bytes_max` bytes fail it.
pub async fn connect_web_socket(
    request: impl IntoClientRequest + Unpin,
    stream: TcpStream,
    bytes_max: usize,
) -> io::Result<(ClientReader, ClientWriter)> {
    let connecting = client_async_with_config(request, stream, Some(limits(bytes_max)));
    let (socket, _) = connecting.await.map_err(io_error)?;
    Ok(frames(socket, bytes_max))
}

pub(crate) fn limits(bytes_max: usize) -> WebSocketConfig {
    let bytes_max = Some(bytes_max);
    WebSocketConfig::default().max_message_size(bytes_max).max_frame_size(bytes_max)
}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> FrameSocket for WebSocketStream<T> {
    type Frame = Message;
    type Fault = tungstenite::Error;

    fn read_frame(frame: Message) -> IncomingFrame {
        match frame {
            Message::Text(text) => IncomingFrame::Data(text.into()),
            Message::Binary(bytes) => IncomingFrame::Data(bytes),
            Message::Pong(payload) => IncomingFrame::Pong(payload),
            Message::Close(frame) => IncomingFrame::Close(frame.map(|frame| CloseReason {
                code: frame.code.into(),
                text: frame.reason.as_str().to_owned(),
            })),
            Message::Ping(_) | Message::Frame(_) => IncomingFrame::Other,
        }
    }

    fn send_text(text: String) -> Message {
        Message::Text(text.into())
    }

    fn ping(payload: Bytes) -> Message {
        Message::Ping(payload)
    }

    fn close(reason: Option<CloseReason>) -> Message {
        let frame = |reason: CloseReason| CloseFrame {
            code: reason.code.into(),
            reason: reason.text.into(),
        };
        Message::Close(reason.map(frame))
    }

    fn receive_error(fault: tungstenite::Error) -> ReceiveError {
        receive_error(fault)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all other errors have a text of their own")]
pub(crate) fn receive_error(fault: tungstenite::Error) -> ReceiveError {
    match fault {
        tungstenite::Error::ConnectionClosed
        | tungstenite::Error::AlreadyClosed
        // A peer that was killed sends no Close frame, which is not a connection error.
        | tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            ReceiveError::Closed(None)
        }
        tungstenite::Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => {
            MessageTooLong { bytes: Some(size), bytes_max: max_size }.into()
        }
        fault => io_error(fault).into(),
    }
}

fn io_error(fault: tungstenite::Error) -> io::Error {
    if let tungstenite::Error::Io(error) = fault {
        error
    } else {
        io::Error::other(fault.to_string())
    }
}
