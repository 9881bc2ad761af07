//! Why a client did not get what it asked for.

use std::io;
use std::time::Duration;

/// Why a client did not get what it asked for.
#[derive(Debug, thiserror::Error)]
pub enum ExecServerError {
    /// The server could not be started.
    #[error("start the exec-server: {0}")]
    Spawn(#[source] io::Error),
    /// The WebSocket was not there in time.
    #[error("connect to {url} within {timeout:?}")]
    WebSocketConnectTimeout {
        /// Where.
        url: String,
        /// How long was waited.
        timeout: Duration,
    },
    /// The WebSocket was refused.
    #[error("connect to {url}: {reason}")]
    WebSocketConnect {
        /// Where.
        url: String,
        /// Why.
        reason: String,
    },
    /// The server did not greet in time.
    #[error("hear from the exec-server within {timeout:?}")]
    InitializeTimedOut {
        /// How long was waited.
        timeout: Duration,
    },
    /// The connection is gone, and so is the hope to get it back.
    #[error("exec-server transport closed")]
    Closed,
    /// What was said cannot be read.
    #[error("read the exec-server's answer: {0}")]
    Json(#[from] serde_json::Error),
    /// What was said makes no sense here.
    #[error("understand the exec-server: {0}")]
    Protocol(String),
    /// The server said no.
    #[error("exec-server refused ({code}): {message}")]
    Server {
        /// For programs.
        code: i64,
        /// For people.
        message: String,
    },
}
