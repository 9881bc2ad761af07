//! Connections that carry whole messages: lines of a byte stream, or frames of a WebSocket. Both sides of every
//! socket protocol use them, through one pair of traits. The crate knows no protocol and no message.
//!
//! Three rules hold for every transport. A message has a maximum length, and a longer one is an error that names the
//! limit. Outgoing messages wait in a queue whose size is known, so that its owner can stop producing or reject a
//! slow reader. A connection is closed by a handshake if the transport has one, and a handshake that the peer starts
//! is answered.

mod close;
mod frames;
mod lines;
mod listen;
pub mod memory;
mod message;
pub mod stdio;
#[cfg(feature = "axum")]
mod upgrade;
mod web_socket;

pub use close::{CLOSE_TIME_MAX, CloseReason, close};
pub use frames::{FrameReader, FrameSocket, FrameWriter, IncomingFrame, frames};
pub use lines::{LineReader, LineWriter, lines};
pub use listen::{ByteSink, ByteSource, LineListener};
pub use message::{
    IncomingMessage, MessageReader, MessageTooLong, MessageWriter, ReceiveError, UnsentAmount,
};
#[cfg(feature = "axum")]
pub use upgrade::{FrameBounds, accept_upgrade};
pub use web_socket::{ClientReader, ClientWriter, connect_web_socket};
