//! The frames as values, in both directions. Absent members are omitted, never null.

mod client;
mod parts;

pub use client::FromClient;
pub use parts::{ErrorEnvelope, ErrorKind, Shown};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A frame of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromServer {
    /// The first frame of a connection.
    Handshake(Handshake),
    /// Another client has taken the session; the connection ends.
    SessionEvicted(SessionEvicted),
    /// The evaluator or the list of commands was replaced.
    AssemblyReload(AssemblyReload),
    /// An error about input that is no valid request.
    Error(Trouble),
    /// An eval's value.
    EvalResult(EvalResult),
    /// An eval's error.
    EvalError(EvalError),
    /// The completions of a text.
    CompleteResult(CompleteResult),
    /// The evaluator was reset.
    ResetResult(ResetResult),
    /// One tick of a watch.
    SubscribeResult(SubscribeResult),
    /// A failed tick, or the end of a watch.
    SubscribeError(SubscribeError),
    /// All commands.
    CommandsListResult(CommandsListResult),
    /// One command.
    CommandDescribeResult(CommandDescribeResult),
    /// How a command ended.
    CommandResult(CommandResult),
    /// A command was started as a job.
    JobAccepted(JobAccepted),
    /// A job is running.
    JobStatusResult(JobStatusResult),
    /// A job has ended.
    JobResult(JobResult),
    /// The result of a request to cancel a job.
    JobCancelResult(JobCancelResult),
    /// Recent operations.
    JournalQueryResult(JournalQueryResult),
}

/// The server, its capabilities and its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct Handshake {
    pub protocol_version: u32,
    pub host: HostInfo,
    pub evaluator: EvaluatorInfo,
    pub available_evaluators: Vec<String>,
    pub default_usings: Vec<String>,
    pub helpers: Vec<String>,
    pub control: ControlInfo,
    pub limits: LimitsInfo,
    pub enforces: Vec<String>,
}

/// The server's name and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct HostInfo {
    pub name: String,
    pub version: String,
    pub platform: String,
}

/// The evaluator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct EvaluatorInfo {
    pub name: String,
    pub language_version: String,
    pub persistent_state: bool,
    pub supports_completion: bool,
    pub cancellation: String,
}

/// The support of typed commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct ControlInfo {
    pub supported: bool,
    pub commands_list_changed: bool,
    pub schema_validation: bool,
}

/// The limits in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct LimitsInfo {
    pub max_message_bytes: u64,
    pub max_queued_commands: u64,
    pub max_result_length: u64,
    pub max_enumerable_elements: u64,
    pub default_eval_timeout_ms: u64,
    pub max_job_concurrency: u64,
}

/// Another client has taken the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct SessionEvicted {
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<EvictedBy>,
}

/// The client that took it, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct EvictedBy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
}

/// Information in earlier frames may be outdated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct AssemblyReload {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assembly: Option<String>,
    pub message: String,
}

/// An error about input that is no valid request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct Trouble {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub error: ErrorEnvelope,
}

/// An eval's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct EvalResult {
    pub id: String,
    pub has_value: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Shown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated_bytes: Option<u64>,
}

/// An eval's error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct EvalError {
    pub id: String,
    pub error: ErrorEnvelope,
}

/// The completions of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct CompleteResult {
    pub id: String,
    pub completions: Vec<String>,
    pub duration_ms: u64,
    /// Whether there are more names than these (ours; omitted if false).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
}

/// The evaluator was reset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct ResetResult {
    pub id: String,
    pub success: bool,
}

/// One tick of a watch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct SubscribeResult {
    pub id: String,
    pub seq: u64,
    pub has_value: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Shown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_type: Option<String>,
    pub duration_ms: u64,
    #[serde(rename = "final")]
    pub is_final: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated_bytes: Option<u64>,
}

/// One tick that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct SubscribeError {
    pub id: String,
    pub seq: u64,
    pub error: ErrorEnvelope,
    #[serde(rename = "final")]
    pub is_final: bool,
}

/// All commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct CommandsListResult {
    pub id: String,
    pub commands: Vec<CommandSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// One command in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct CommandSummary {
    pub name: String,
    pub major_version: u64,
    pub kind: CommandKind,
    pub mutates_state: bool,
}

/// Whether a command is synchronous or a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum CommandKind {
    Sync,
    Job,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct CommandDescribeResult {
    pub id: String,
    pub descriptor: CommandDescriptor,
}

/// One command with its schemas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct CommandDescriptor {
    #[serde(flatten)]
    pub summary: CommandSummary,
    pub input_schema: Value,
    pub output_schema: Value,
    pub artifacts_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<String>,
}

/// Whether an operation succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum Status {
    Ok,
    Failed,
}

/// Files by their names.
pub type Artifacts = BTreeMap<String, ArtifactRef>;

/// A file that a command wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct ArtifactRef {
    pub uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub sha256: String,
    pub byte_size: u64,
    pub content_type: String,
    pub finalized: bool,
}

/// How a command ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct CommandResult {
    pub id: String,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    pub artifacts: Artifacts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorEnvelope>,
    pub duration_ms: u64,
}

/// A command was started as a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct JobAccepted {
    pub id: String,
    pub job_id: String,
    pub state: JobState,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum JobState {
    Running,
    Done,
    Failed,
    Cancelled,
}

/// A job is running.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct JobStatusResult {
    pub id: String,
    pub job_id: String,
    pub state: JobState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorEnvelope>,
}

/// A job has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct JobResult {
    pub id: String,
    pub job_id: String,
    pub state: JobState,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    pub artifacts: Artifacts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorEnvelope>,
    pub duration_ms: u64,
}

/// The result of a request to cancel a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct JobCancelResult {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    pub accepted: bool,
    pub state: JobState,
}

/// Recent operations, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct JournalQueryResult {
    pub id: String,
    pub entries: Vec<JournalEntry>,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct JournalEntry {
    pub id: String,
    pub kind: JournalKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    pub success: bool,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    pub timestamp: String,
}

/// Which of the two lists an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum JournalKind {
    Eval,
    Command,
}
