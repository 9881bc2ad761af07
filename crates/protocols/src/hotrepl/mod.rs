//! hotrepl: a persistent evaluator over a WebSocket, one JSON object per text frame. Protocol version 2.
//!
//! The frames are those of the published schemas, which are closed: members of later revisions are only
//! sent to a client that requests [`ValueProfile::Native`].

pub mod inbound;
pub mod outbound;
pub mod wire;

#[cfg(test)]
mod tests;

pub use inbound::{RefusedFrame, ReplRequest};

/// The version in a handshake.
pub const PROTOCOL_VERSION: u32 = 2;

/// Longest frame of a client.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Longest value of an eval or a watch, and longest output of a command, in bytes of UTF-8.
pub const RESULT_BYTES_MAX: usize = 102_400;

/// How values are serialized for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ValueProfile {
    /// As in the schemas: a value is JSON text in a string.
    #[default]
    Text,
    /// As in later revisions: a value is JSON itself, with a flag for values that were too long.
    Native,
}
