//! Errors of following a session. A failure of its program is not such an error.

use http_body_util::{BodyExt as _, Limited};
use hyper::Response;
use hyper::body::Incoming;
use serde_json::Value;

/// Longest refusal that is read.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// Why a session could not be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnclaveError {
    /// An invalid URL, token or id.
    #[error("{0}")]
    Unusable(String),
    /// The connection broke, and reconnection is disabled or failed.
    #[error("the connection broke off: {0}")]
    Broken(String),
    /// The server refused the request.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// For programs, such as `SESSION_EXISTS`; empty where there is none.
        code: String,
        /// A message for people.
        message: String,
    },
    /// The server is not the pinned one, or its messages were modified in transit.
    #[error("a message of the server cannot be trusted: {0}")]
    Untrusted(String),
    /// A message that is not a valid event.
    #[error("the server sent a message that is not an event: {0}")]
    Nonsense(String),
}

/// Returns the answer, unless it is a refusal.
pub(super) async fn check_status(
    answer: Response<Incoming>,
) -> Result<Response<Incoming>, EnclaveError> {
    if answer.status().is_success() {
        return Ok(answer);
    }
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), REFUSAL_BYTES_MAX).collect().await;
    let body = body.map_err(|error| EnclaveError::Broken(error.to_string()))?.to_bytes();
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |name: &str| said[name].as_str().map(str::to_owned);
    Err(EnclaveError::Refused {
        status,
        code: text("code").unwrap_or_default(),
        message: text("message").unwrap_or_else(|| format!("the server answered {status}")),
    })
}
