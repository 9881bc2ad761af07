//! Why a client did not get what it asked for.

use protocols::hotrepl::wire::ErrorEnvelope;

/// Why a client did not get what it asked for.
#[derive(Debug, thiserror::Error)]
pub enum ReplError {
    /// The server cannot be reached, or did not let us in.
    #[error("connect to {url}: {reason}")]
    Connect {
        /// Where, without its query: that may hold a token.
        url: String,
        /// Why.
        reason: String,
    },
    /// The first frame was no handshake, or of another version.
    #[error("the server does not speak protocol version 2")]
    NoHandshake,
    /// Another client has taken the session.
    #[error("another client has taken the session")]
    Evicted,
    /// The connection is gone.
    #[error("the connection is closed")]
    Closed,
    /// The server said no, or what was run failed.
    #[error("{}", .0.message)]
    Failed(Box<ErrorEnvelope>),
    /// An answer of another kind than what was asked for.
    #[error("the server answered something else than was asked")]
    Unexpected,
}
