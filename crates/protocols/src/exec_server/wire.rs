//! The protocol's messages, except for files and HTTP. Names are those of the seed's Rust interface.

use super::{ByteChunk, EnvPolicy};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Distinguishes null from an absent member.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Parameters of `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The client's name.
    pub client_name: String,
    /// The session to resume; the presence of the member, even with null, distinguishes today's clients
    /// from the seed's.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub resume_session_id: Option<Option<String>>,
}

/// The result of `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResponse {
    /// The session of this connection; absent in the seed's dialect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The same as the result of `environment/info`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_info: Option<EnvironmentInfo>,
}

/// Parameters of `process/start`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecParams {
    /// The client's id for the process.
    pub process_id: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory: a `file:` URI or an absolute path.
    pub cwd: String,
    /// The environment variables.
    pub env: BTreeMap<String, String>,
    /// Whether it gets a terminal.
    pub tty: bool,
    /// The value of `argv[0]`, if it differs.
    #[serde(default)]
    pub arg0: Option<String>,
    /// Whether it has a writable input without a terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pipe_stdin: bool,
    /// How the environment is derived from the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_policy: Option<EnvPolicy>,
    /// The size of its terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TerminalSize>,
    /// Whether output is pushed or read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputMode>,
    /// The shared name of its terminal: it then outlives its client, and other clients can view it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the client has its own terminal, which answers the program's queries; otherwise the server does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers_queries: bool,
    /// The sandbox, see [`read_sandbox`](super::read_sandbox).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<serde_json::Value>,
    /// Whether it may use the network through a proxy only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enforce_managed_network: bool,
    /// The proxy's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_network: Option<serde_json::Value>,
    /// The proxy's configuration, under the other name that clients use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_proxy: Option<serde_json::Value>,
}

/// How a client receives output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OutputMode {
    /// By notifications as it arrives.
    Push,
    /// By `process/read` only; a process waits for its reader.
    Pull,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub cols: u16,
}

/// The result of `process/start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecResponse {
    /// The client's id for the process.
    pub process_id: String,
    /// The sandbox that is enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_type: Option<String>,
}

/// Parameters of `process/read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    /// The process's id.
    pub process_id: String,
    /// The number after which to read.
    #[serde(default)]
    pub after_seq: Option<u64>,
    /// Limit of the bytes to return.
    #[serde(default)]
    pub max_bytes: Option<usize>,
    /// How long to wait for output.
    #[serde(default)]
    pub wait_ms: Option<u64>,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessOutputChunk {
    /// The piece's number.
    pub seq: u64,
    /// The stream that it was read from.
    pub stream: ExecOutputStream,
    /// The bytes of the piece.
    pub chunk: ByteChunk,
}

/// The stream of a piece of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecOutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A terminal.
    Pty,
}

/// The result of `process/read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResponse {
    /// Whole pieces of output.
    pub chunks: Vec<ProcessOutputChunk>,
    /// The next read continues after the number before this one.
    pub next_seq: u64,
    /// Whether it has ended.
    pub exited: bool,
    /// The exit code, if it has ended.
    pub exit_code: Option<i32>,
    /// Whether no further output follows.
    #[serde(default)]
    pub closed: bool,
    /// Why its end is unknown; always absent here.
    #[serde(default)]
    pub failure: Option<String>,
    /// Whether the sandbox denied an operation.
    #[serde(default)]
    pub sandbox_denied: bool,
    /// The sandbox's messages about that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Bytes after the requested number that are no longer retained.
    #[serde(default)]
    pub dropped_bytes: u64,
    /// The first retained piece.
    #[serde(default)]
    pub first_seq: Option<u64>,
}

/// Parameters of `process/write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteParams {
    /// The process's id.
    pub process_id: String,
    /// The bytes to write.
    pub chunk: ByteChunk,
    /// An idempotency key: bytes with the same id are written once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_id: Option<String>,
}

/// The result of `process/write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteResponse {
    /// The result in the seed's dialect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<bool>,
    /// The result in today's dialect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WriteStatus>,
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WriteStatus {
    /// It was queued.
    Accepted,
    /// There is no such process.
    UnknownProcess,
    /// Its input is closed.
    StdinClosed,
    /// It is still starting.
    Starting,
}

/// Parameters of `process/terminate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminateParams {
    /// The process's id.
    pub process_id: String,
    /// The signal to send first; without one, the process is killed immediately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<ProcessSignal>,
    /// The grace period after the signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// The result of `process/terminate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminateResponse {
    /// Whether it was running.
    pub running: bool,
}

/// Parameters of `process/signal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalParams {
    /// The process's id.
    pub process_id: String,
    /// The signal to send.
    pub signal: ProcessSignal,
}

/// The signals that can be sent to a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessSignal {
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-\.
    Quit,
    /// A request to terminate.
    Terminate,
    /// The terminal was closed.
    Hangup,
    /// Immediate termination.
    Kill,
    /// Stop the process.
    Stop,
    /// Continue a stopped process.
    Continue,
    /// For the program's own use.
    User1,
    /// For the program's own use.
    User2,
}

/// Parameters of `process/resize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResizeParams {
    /// The process's id.
    pub process_id: String,
    /// The new size.
    #[serde(flatten)]
    pub size: TerminalSize,
}

/// Parameters of `process/closeStdin` and other methods that only name a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessParams {
    /// The process's id.
    pub process_id: String,
}

/// Parameters of `process/wait`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitParams {
    /// The process's id.
    pub process_id: String,
    /// The timeout; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// The result of `process/wait`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitResponse {
    /// Whether it has ended.
    pub exited: bool,
    /// The exit code, if it has ended.
    pub exit_code: Option<i32>,
    /// Whether no further output follows.
    pub closed: bool,
}

/// The result of `process/list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListResponse {
    /// All processes of this session, in the order of their ids.
    pub processes: Vec<ListedProcess>,
}

/// A process in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedProcess {
    /// The client's id for the process.
    pub process_id: String,
    /// The process number; `None` while it is starting.
    pub pid: Option<i32>,
    /// Whether it has a terminal.
    pub tty: bool,
    /// Whether it has ended.
    pub exited: bool,
    /// The exit code, if it has ended.
    pub exit_code: Option<i32>,
    /// Whether no further output follows.
    pub closed: bool,
    /// The number after its last event.
    pub next_seq: u64,
}

/// Parameters of the notification `process/output`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecOutputDeltaNotification {
    /// The process's id.
    pub process_id: String,
    /// The piece's number; absent in the seed's dialect.
    #[serde(default)]
    pub seq: Option<u64>,
    /// The stream that it was read from.
    pub stream: ExecOutputStream,
    /// The bytes of the piece.
    pub chunk: ByteChunk,
    /// Whether it restores the screen for a slow client that has missed output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repaint: bool,
}

/// Parameters of the notification `process/exited`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecExitedNotification {
    /// The process's id.
    pub process_id: String,
    /// The event's number; absent in the seed's dialect.
    #[serde(default)]
    pub seq: Option<u64>,
    /// The exit code; 128 + n for signal n.
    pub exit_code: i32,
    /// Whether the sandbox denied an operation.
    #[serde(default)]
    pub sandbox_denied: Option<bool>,
    /// The sandbox's messages about that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
}

/// Parameters of the notification `process/closed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecClosedNotification {
    /// The process's id.
    pub process_id: String,
    /// The event's number.
    pub seq: u64,
}

/// The result of `environment/info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentInfo {
    /// The default shell.
    pub shell: Shell,
    /// The name and version of the server.
    #[serde(default)]
    pub executor_version: String,
    /// The server's working directory.
    #[serde(default)]
    pub cwd: String,
    /// The home folder of the server's user.
    #[serde(default)]
    pub user_home_dir: Option<String>,
    /// The operating system.
    #[serde(default)]
    pub platform_os: String,
    /// Folders that sandboxes may write to.
    #[serde(default)]
    pub temporary_directories: Vec<String>,
    /// The folder for temporary files.
    #[serde(default)]
    pub temp_dir: String,
    /// The server's further capabilities; those that are absent are not supported.
    #[serde(default)]
    pub capabilities: BTreeMap<String, bool>,
}

/// A shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shell {
    /// The shell's name.
    pub name: String,
    /// The shell's path.
    pub path: String,
}

/// Parameters of `environmentConfig/read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentConfigParams {
    /// The client's working directory.
    pub cwd: String,
    /// The paths of the requested settings, each a list of names.
    pub config_paths: Vec<Vec<String>>,
    /// The paths of the requested requirements, likewise.
    pub requirements_paths: Vec<Vec<String>>,
}

/// The result of `environmentConfig/read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentConfigResponse {
    /// The home folder of the server's user.
    pub user_home_dir: Option<String>,
    /// The folder of codex's own files.
    pub codex_home_dir: String,
    /// The machine's name.
    pub hostname: String,
    /// The settings.
    pub config: ConfigLayers,
    /// The requirements for settings.
    pub requirements: ConfigLayers,
}

/// Settings from several sources; later ones take precedence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigLayers {
    /// One layer for each source.
    pub layers: Vec<ConfigLayer>,
    /// The index at which the client inserts its own layers.
    pub cloud_insertion_index: usize,
}

/// Settings from one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigLayer {
    /// A description of the source, for people.
    pub source: String,
    /// The base folder of relative paths.
    pub base_dir: String,
    /// The requested settings.
    pub toml: String,
}
