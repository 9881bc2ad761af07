//! The errors of a client.

use std::io;
use std::time::Duration;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ExecServerError {
    /// The server could not be started.
    #[error("start the exec-server: {0}")]
    Spawn(#[source] io::Error),
    /// The WebSocket did not open in time.
    #[error("connect to {url} within {timeout:?}")]
    WebSocketConnectTimeout {
        /// The URL.
        url: String,
        /// The timeout.
        timeout: Duration,
    },
    /// The WebSocket was refused.
    #[error("connect to {url}: {reason}")]
    WebSocketConnect {
        /// The URL.
        url: String,
        /// The error message.
        reason: String,
    },
    /// The server did not answer `initialize` in time.
    #[error("hear from the exec-server within {timeout:?}")]
    InitializeTimedOut {
        /// The timeout.
        timeout: Duration,
    },
    /// The connection is lost and cannot be opened again.
    #[error("exec-server transport closed")]
    Closed,
    /// A message is not valid JSON.
    #[error("read the exec-server's answer: {0}")]
    Json(#[from] serde_json::Error),
    /// A message does not conform to the protocol.
    #[error("understand the exec-server: {0}")]
    Protocol(String),
    /// The server refused the request.
    #[error("exec-server refused ({code}): {message}")]
    Server {
        /// The error code, for programs.
        code: i64,
        /// The message, for people.
        message: String,
    },
}
