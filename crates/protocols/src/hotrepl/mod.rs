//! hotrepl: a persistent evaluator at a WebSocket, one JSON object per text frame. Protocol version 2.
//!
//! The frames are those of the published schemas, which are closed: what later revisions added is said only to a
//! client that asks for [`ValueProfile::Native`].

pub mod inbound;
pub mod outbound;
pub mod wire;

#[cfg(test)]
mod tests;

pub use inbound::{RefusedFrame, ReplRequest};

/// The version that a handshake names.
pub const PROTOCOL_VERSION: u32 = 2;

/// Longest frame that a client may send.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Longest value of an eval or a watch, and longest output of a command, in bytes of UTF-8.
pub const RESULT_BYTES_MAX: usize = 102_400;

/// How values are written for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ValueProfile {
    /// As the schemas have it: a value is JSON text in a string.
    #[default]
    Text,
    /// As later revisions have it: a value is JSON itself, and says whether it was too long.
    Native,
}
