//! The payloads of events: members that enclave's client requires, and further ones that its documentation
//! promises.

use super::sealing::ServerHello;
use lifecycle::Json;
use serde::Serialize;

/// The payload of `session_init`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct SessionInit<'a> {
    pub cancel_url: String,
    pub replay_url: String,
    pub expires_at: String,
    pub encryption: Encryption<'a>,
    pub limits: Limits,
}

/// Whether and how a session is sealed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct Encryption<'a> {
    pub enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_hello: Option<&'a ServerHello>,
}

/// The limits of a session.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct Limits {
    pub max_duration_ms: u64,
    pub max_tool_calls: u32,
    pub max_stdout_bytes: u64,
    pub max_tool_result_bytes: u64,
    pub per_tool_deadline_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    pub grace_ms: u64,
    pub heartbeat_interval_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
}

/// The payload of `stdout`.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct Stdout<'a> {
    pub chunk: &'a str,
    pub data: &'a str,
}

/// The payload of `log`.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct Log<'a, D> {
    pub level: &'a str,
    pub message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<D>,
}

/// The question that a `log` reports.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are ours")]
pub struct About {
    pub call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// The payload of `tool_call`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct ToolCall<'a> {
    pub call_id: String,
    pub tool_name: &'a str,
    pub tool: &'a str,
    /// The catalogue's address, if the program called the tool by an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<&'a str>,
    pub args: &'a Json,
}

/// The payload of `tool_progress`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct ToolProgress {
    pub call_id: String,
    pub phase: &'static str,
    pub elapsed_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
}

/// The payload of `tool_result_applied`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct ToolResultApplied<'a> {
    pub call_id: String,
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failed<'a>>,
}

/// The payload of `partial_result`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct PartialResult<'a> {
    pub path: [String; 1],
    pub has_next: bool,
    pub data: &'a Json,
}

/// The payload of `deadline_exceeded`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct DeadlineExceeded {
    pub elapsed_ms: u64,
    pub budget_ms: u64,
}

/// The payload of `catalog_changed`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct CatalogChanged<'a> {
    pub version: &'a str,
    pub added_actions: &'a [String],
    pub removed_actions: &'a [String],
}

/// The payload of `heartbeat`.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct Heartbeat {
    pub ts: String,
}

/// The payload of `error`.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct ErrorNotice<'a> {
    pub message: &'a str,
    pub code: &'a str,
    pub recoverable: bool,
}

/// The payload of `final`.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct Final<'a> {
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failed<'a>>,
    pub stats: Stats,
}

/// Why there is no result.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct Failed<'a> {
    pub message: &'a str,
    pub code: &'a str,
    /// Which limit was reached, if upstream's code does not identify it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<&'a str>,
}

/// The resource use of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are enclave's")]
pub struct Stats {
    pub duration_ms: u64,
    pub tool_call_count: u32,
    pub stdout_bytes: u64,
    pub duration: u64,
    pub iteration_count: u64,
}
