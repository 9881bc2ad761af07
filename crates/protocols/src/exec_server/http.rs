//! `http/request`: a request made from the machine that the server runs on.

use super::ByteChunk;
use serde::{Deserialize, Serialize};

/// `http/request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRequestParams {
    /// GET, POST, and so on.
    pub method: String,
    /// http: or https:.
    pub url: String,
    /// In order, names may repeat.
    #[serde(default)]
    pub headers: Vec<HttpHeader>,
    /// What is sent.
    #[serde(default)]
    pub body_base64: Option<ByteChunk>,
    /// How long it may take.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Whether redirects are followed.
    #[serde(default)]
    pub redirect_policy: Option<RedirectPolicy>,
    /// What the client calls it.
    pub request_id: String,
    /// Whether the body comes piece by piece.
    #[serde(default)]
    pub stream_response: bool,
}

/// Whether redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RedirectPolicy {
    /// They are.
    Follow,
    /// They are answers.
    Stop,
}

/// A header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpHeader {
    /// Its name.
    pub name: String,
    /// What it says.
    #[serde(default)]
    pub value: String,
    /// The variable of the server whose value follows, so that a client need not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_env_var: Option<String>,
}

/// What `http/request` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRequestResponse {
    /// The status.
    pub status: u16,
    /// In order.
    pub headers: Vec<HttpHeader>,
    /// Empty when it comes piece by piece.
    pub body_base64: ByteChunk,
}

/// `http/request/bodyDelta`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpBodyDelta {
    /// Of which request.
    pub request_id: String,
    /// From 1.
    pub seq: u64,
    /// The next piece.
    pub delta_base64: ByteChunk,
    /// Whether it was the last.
    pub done: bool,
    /// Why there is no more, if that was not the end.
    pub error: Option<String>,
}
