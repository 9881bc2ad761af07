//! Every refusal of this door in its clients' format: `{code, message}`.

use super::outbound::json;
use crate::auth::AccessDenied;
use crate::error::RequestError;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use engine::Fault;
use lifecycle::Rejection;
use protocols::enclave::inbound::EnclaveRefusal;
use protocols::enclave::sealing::{BadHello, BadKey, UnsealError};

/// Why a request was refused.
#[derive(Debug)]
pub(super) enum EnclaveRequestError {
    /// With this door's code and message.
    Said(StatusCode, &'static str, String),
    /// With the server's error.
    Other(RequestError),
}

impl EnclaveRequestError {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self::Said(status, code, message.into())
    }

    pub(super) fn not_found(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", format!("There is no session {id}."))
    }

    /// For a client that sends unencrypted what must be sealed.
    pub(super) fn in_clear() -> Self {
        let message = "Encryption is required: unencrypted messages are refused.";
        Self::new(StatusCode::BAD_REQUEST, "ENCRYPTION_REQUIRED", message)
    }

    /// For a client that returns too late.
    pub(super) fn gone(id: &str) -> Self {
        let message = format!("The events of session {id} are no longer retained.");
        Self::new(StatusCode::GONE, "EVENTS_GONE", message)
    }

    pub(super) fn denied(denied: AccessDenied, id: &str) -> Self {
        match denied {
            AccessDenied::Hidden => Self::not_found(id),
            AccessDenied::Needs(_)
            | AccessDenied::PersonAnswers
            | AccessDenied::NotInAdvance
            | AccessDenied::AcceptNeeds(_) => Self::Other(RequestError::denied(denied, id)),
        }
    }

    /// Code and sentence, for clients of a socket.
    pub(super) fn words(&self) -> (&'static str, String) {
        match self {
            Self::Said(_, code, message) => (code, message.clone()),
            Self::Other(problem) => (status_code(problem.status()), problem.sentence().to_owned()),
        }
    }
}

/// The code of a refusal that is not this door's own.
fn status_code(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "INVALID_REQUEST",
        StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
        StatusCode::FORBIDDEN => "FORBIDDEN",
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::METHOD_NOT_ALLOWED => "METHOD_NOT_ALLOWED",
        StatusCode::REQUEST_TIMEOUT => "REQUEST_TIMEOUT",
        StatusCode::CONFLICT => "CONFLICT",
        StatusCode::PAYLOAD_TOO_LARGE => "PAYLOAD_TOO_LARGE",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "UNSUPPORTED_MEDIA_TYPE",
        StatusCode::TOO_MANY_REQUESTS => "TOO_MANY_REQUESTS",
        StatusCode::SERVICE_UNAVAILABLE => "SERVICE_UNAVAILABLE",
        status if status.is_client_error() => "INVALID_REQUEST",
        _ => "INTERNAL_ERROR",
    }
}

/// Maximum size of a refusal that is converted into this door's format: all refusals of this server are far shorter.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// Whether a path belongs to this door.
pub(crate) fn is_enclave_path(path: &str) -> bool {
    let under = |root: &str| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    ["/sessions", "/execute", "/enclave"].into_iter().any(under)
}

/// Converts a refusal by the server, such as of a missing token or an unsupported method, into this door's format. A
/// body that already has a code and a message is unchanged.
pub(crate) async fn in_enclave_words(response: Response) -> Response {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let body = axum::body::to_bytes(body, REFUSAL_BYTES_MAX).await.unwrap_or_default();
    let said: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    if said["code"].is_string() && said["message"].is_string() && said.get("_tag").is_none() {
        return Response::from_parts(head, body.into());
    }
    let plain = || Some(String::from_utf8_lossy(&body).into_owned()).filter(|it| !it.is_empty());
    let message = said["message"].as_str().map(str::to_owned).or_else(plain);
    let message = message.unwrap_or_else(|| format!("The request was refused: {status}."));
    let body = serde_json::json!({ "code": status_code(status), "message": message }).to_string();
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(head, body.into())
}

impl IntoResponse for EnclaveRequestError {
    fn into_response(self) -> Response {
        match self {
            Self::Said(status, code, message) => {
                json(status, &serde_json::json!({ "code": code, "message": message }))
            }
            Self::Other(problem) => problem.into_response(),
        }
    }
}

impl From<EnclaveRefusal> for EnclaveRequestError {
    fn from(EnclaveRefusal { code, message }: EnclaveRefusal) -> Self {
        let status = match code {
            "NOT_FOUND" => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::Said(status, code, message)
    }
}

impl From<RequestError> for EnclaveRequestError {
    fn from(problem: RequestError) -> Self {
        Self::Other(problem)
    }
}

impl From<Fault> for EnclaveRequestError {
    fn from(fault: Fault) -> Self {
        Self::Other(fault.into())
    }
}

impl From<engine::Error> for EnclaveRequestError {
    fn from(error: engine::Error) -> Self {
        let conflict = |code, message: String| Self::new(StatusCode::CONFLICT, code, message);
        match error {
            engine::Error::Rejected(Rejection::AlreadyStarted) => {
                conflict("SESSION_EXISTS", "You have a session with this id already.".into())
            }
            engine::Error::Rejected(why @ Rejection::NotOutstanding(_)) => {
                conflict("NOT_OUTSTANDING", format!("The result is not taken: {why}."))
            }
            engine::Error::Rejected(Rejection::AlreadyFinished) => {
                conflict("SESSION_ENDED", "The session has ended.".into())
            }
            engine::Error::Rejected(why @ Rejection::QuotaReached { .. }) => {
                let message = format!("The session was not started: {why}.");
                Self::new(StatusCode::TOO_MANY_REQUESTS, "QUOTA_REACHED", message)
            }
            other @ (engine::Error::Rejected(_) | engine::Error::Fault(_)) => {
                Self::Other(other.into())
            }
        }
    }
}

impl From<BadHello> for EnclaveRequestError {
    fn from(bad: BadHello) -> Self {
        let message = format!("The clientHello is not taken: {bad}.");
        Self::new(StatusCode::BAD_REQUEST, "ENCRYPTION_HANDSHAKE_FAILED", message)
    }
}

impl From<BadKey> for EnclaveRequestError {
    fn from(bad: BadKey) -> Self {
        let code = "ENCRYPTION_KEY_DERIVATION_FAILED";
        Self::new(StatusCode::BAD_REQUEST, code, format!("No keys could be derived: {bad}."))
    }
}

impl From<UnsealError> for EnclaveRequestError {
    fn from(why: UnsealError) -> Self {
        let (status, code) = match why {
            UnsealError::Replayed => (StatusCode::CONFLICT, "ENCRYPTION_NONCE_REUSE"),
            UnsealError::Malformed
            | UnsealError::Stranger
            | UnsealError::Broken
            | UnsealError::Relabelled => (StatusCode::BAD_REQUEST, "ENCRYPTION_DECRYPTION_FAILED"),
        };
        Self::new(status, code, format!("The envelope is not opened: {why}."))
    }
}
