//! `http/request`: a request from the machine on which the server runs.

use super::ByteChunk;
use serde::{Deserialize, Serialize};

/// Parameters of `http/request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRequestParams {
    /// The method: GET, POST, and so on.
    pub method: String,
    /// The URL, with the scheme http: or https:.
    pub url: String,
    /// The headers, in order; names may repeat.
    #[serde(default)]
    pub headers: Vec<HttpHeader>,
    /// The request body.
    #[serde(default)]
    pub body_base64: Option<ByteChunk>,
    /// The timeout.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Whether redirects are followed.
    #[serde(default)]
    pub redirect_policy: Option<RedirectPolicy>,
    /// The client's id for the request.
    pub request_id: String,
    /// Whether the body is sent in pieces.
    #[serde(default)]
    pub stream_response: bool,
}

/// Whether redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RedirectPolicy {
    /// They are followed.
    Follow,
    /// They are returned as responses.
    Stop,
}

/// A header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpHeader {
    /// The header's name.
    pub name: String,
    /// The header's value.
    #[serde(default)]
    pub value: String,
    /// The server's environment variable whose value is appended, so that a client need not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_env_var: Option<String>,
}

/// The result of `http/request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRequestResponse {
    /// The status code.
    pub status: u16,
    /// The headers, in order.
    pub headers: Vec<HttpHeader>,
    /// The body; empty if it is sent in pieces.
    pub body_base64: ByteChunk,
}

/// Parameters of the notification `http/request/bodyDelta`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpBodyDelta {
    /// The client's id for the request.
    pub request_id: String,
    /// The number of the piece, from 1.
    pub seq: u64,
    /// The next piece.
    pub delta_base64: ByteChunk,
    /// Whether this is the last piece.
    pub done: bool,
    /// Why the body ended early, if it did.
    pub error: Option<String>,
}
