//! The errors of a client.

use protocols::hotrepl::wire::ErrorEnvelope;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplError {
    /// The server cannot be reached, or refused the connection.
    #[error("connect to {url}: {reason}")]
    Connect {
        /// The URL without its query, which may contain a token.
        url: String,
        /// The error message.
        reason: String,
    },
    /// The first frame was not a handshake, or had another version.
    #[error("the server does not speak protocol version 2")]
    NoHandshake,
    /// Another client has taken over the session.
    #[error("another client has taken the session")]
    Evicted,
    /// The connection has closed.
    #[error("the connection is closed")]
    Closed,
    /// The server refused the request, or the evaluated program failed.
    #[error("{}", .0.message)]
    Failed(Box<ErrorEnvelope>),
    /// An answer of an unexpected kind.
    #[error("the server answered something else than was asked")]
    Unexpected,
}
