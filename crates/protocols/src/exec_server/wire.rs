//! What crosses the wire, besides files and HTTP. Names are those of the seed's Rust surface.

use super::{ByteChunk, EnvPolicy};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Tells null from nothing.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// Who calls.
    pub client_name: String,
    /// Which session to take up; the key alone, even with null, tells today's clients from the seed's.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub resume_session_id: Option<Option<String>>,
}

/// What `initialize` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResponse {
    /// The session of this connection; none from a server of the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The same as `environment/info` answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_info: Option<EnvironmentInfo>,
}

/// `process/start`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecParams {
    /// What the client calls it.
    pub process_id: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it starts: a `file:` URI or an absolute path.
    pub cwd: String,
    /// Its variables.
    pub env: BTreeMap<String, String>,
    /// Whether it gets a terminal.
    pub tty: bool,
    /// The name it sees instead of its own.
    #[serde(default)]
    pub arg0: Option<String>,
    /// Whether it can be written to without a terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pipe_stdin: bool,
    /// What it inherits of the server's variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_policy: Option<EnvPolicy>,
    /// The size of its terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TerminalSize>,
    /// Whether output is pushed, or waits to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputMode>,
    /// What its terminal is called by everybody: it then outlives its client, and others can look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the client has a terminal of its own, which answers what the program asks; otherwise the server does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answers_queries: bool,
    /// What it shall be kept from, see [`read_sandbox`](super::read_sandbox).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<serde_json::Value>,
    /// Whether it may reach others through a proxy only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enforce_managed_network: bool,
    /// Which proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_network: Option<serde_json::Value>,
    /// Likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_proxy: Option<serde_json::Value>,
}

/// How a client hears output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OutputMode {
    /// By notifications as it comes.
    Push,
    /// By `process/read` alone; a process waits for its reader.
    Pull,
}

/// Rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub cols: u16,
}

/// What `process/start` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecResponse {
    /// What the client calls it.
    pub process_id: String,
    /// What keeps it from doing harm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_type: Option<String>,
}

/// `process/read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    /// Whose output.
    pub process_id: String,
    /// After which number.
    #[serde(default)]
    pub after_seq: Option<u64>,
    /// How much at most.
    #[serde(default)]
    pub max_bytes: Option<usize>,
    /// How long to wait for something.
    #[serde(default)]
    pub wait_ms: Option<u64>,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessOutputChunk {
    /// Its number.
    pub seq: u64,
    /// Where it came from.
    pub stream: ExecOutputStream,
    /// What it says.
    pub chunk: ByteChunk,
}

/// Where output came from.
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

/// What `process/read` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResponse {
    /// Whole pieces.
    pub chunks: Vec<ProcessOutputChunk>,
    /// The next read goes on after the number before this.
    pub next_seq: u64,
    /// Whether it has ended.
    pub exited: bool,
    /// How.
    pub exit_code: Option<i32>,
    /// Whether nothing more comes.
    #[serde(default)]
    pub closed: bool,
    /// Why its end is not known; servers always do.
    #[serde(default)]
    pub failure: Option<String>,
    /// Whether a sandbox stopped it.
    #[serde(default)]
    pub sandbox_denied: bool,
    /// What it said of that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Bytes after the number asked for that are kept no more.
    #[serde(default)]
    pub dropped_bytes: u64,
    /// The first piece that is kept.
    #[serde(default)]
    pub first_seq: Option<u64>,
}

/// `process/write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteParams {
    /// To whom.
    pub process_id: String,
    /// What.
    pub chunk: ByteChunk,
    /// Bytes with the same id are written once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_id: Option<String>,
}

/// What `process/write` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteResponse {
    /// In the words of the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<bool>,
    /// In today's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WriteStatus>,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WriteStatus {
    /// It will be written.
    Accepted,
    /// To whom?
    UnknownProcess,
    /// It does not read.
    StdinClosed,
    /// It does not run yet.
    Starting,
}

/// `process/terminate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminateParams {
    /// Whom.
    pub process_id: String,
    /// What it gets first; nothing means that it is killed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<ProcessSignal>,
    /// How long it may take then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// What `process/terminate` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminateResponse {
    /// Whether it was running.
    pub running: bool,
}

/// `process/signal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalParams {
    /// Whom.
    pub process_id: String,
    /// What.
    pub signal: ProcessSignal,
}

/// What a process group can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessSignal {
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-\.
    Quit,
    /// Please end.
    Terminate,
    /// The terminal is gone.
    Hangup,
    /// End at once.
    Kill,
    /// Stand still.
    Stop,
    /// Go on.
    Continue,
    /// For the program's own use.
    User1,
    /// For the program's own use.
    User2,
}

/// `process/resize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResizeParams {
    /// Whose terminal.
    pub process_id: String,
    /// How large.
    #[serde(flatten)]
    pub size: TerminalSize,
}

/// `process/closeStdin`, and others that name a process only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessParams {
    /// Which.
    pub process_id: String,
}

/// `process/wait`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitParams {
    /// For whom.
    pub process_id: String,
    /// How long; for ever when not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// What `process/wait` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitResponse {
    /// Whether it has ended.
    pub exited: bool,
    /// How.
    pub exit_code: Option<i32>,
    /// Whether nothing more comes.
    pub closed: bool,
}

/// What `process/list` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListResponse {
    /// All of this session, in the order of their names.
    pub processes: Vec<ListedProcess>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedProcess {
    /// What the client calls it.
    pub process_id: String,
    /// The system's number; none while it is starting.
    pub pid: Option<i32>,
    /// Whether it has a terminal.
    pub tty: bool,
    /// Whether it has ended.
    pub exited: bool,
    /// How.
    pub exit_code: Option<i32>,
    /// Whether nothing more comes.
    pub closed: bool,
    /// The number after its last event.
    pub next_seq: u64,
}

/// `process/output`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecOutputDeltaNotification {
    /// Whose.
    pub process_id: String,
    /// Its number; none from a server of the seed.
    #[serde(default)]
    pub seq: Option<u64>,
    /// Where it came from.
    pub stream: ExecOutputStream,
    /// What it says.
    pub chunk: ByteChunk,
    /// Whether it shows anew what a slow client has missed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repaint: bool,
}

/// `process/exited`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecExitedNotification {
    /// Who.
    pub process_id: String,
    /// Its number; none from a server of the seed.
    #[serde(default)]
    pub seq: Option<u64>,
    /// How, 128 + n for signal n.
    pub exit_code: i32,
    /// Whether a sandbox stopped it.
    #[serde(default)]
    pub sandbox_denied: Option<bool>,
    /// What it said of that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
}

/// `process/closed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecClosedNotification {
    /// Who.
    pub process_id: String,
    /// Its number.
    pub seq: u64,
}

/// What `environment/info` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentInfo {
    /// What commands are given to.
    pub shell: Shell,
    /// Which program serves.
    #[serde(default)]
    pub executor_version: String,
    /// Where the server runs.
    #[serde(default)]
    pub cwd: String,
    /// Whose files.
    #[serde(default)]
    pub user_home_dir: Option<String>,
    /// Which system.
    #[serde(default)]
    pub platform_os: String,
    /// Folders that sandboxes may write to.
    #[serde(default)]
    pub temporary_directories: Vec<String>,
    /// Where files may come and go.
    #[serde(default)]
    pub temp_dir: String,
    /// What else the server can do; what is not named, it cannot.
    #[serde(default)]
    pub capabilities: BTreeMap<String, bool>,
}

/// A shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shell {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub path: String,
}

/// `environmentConfig/read`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentConfigParams {
    /// Where the client works.
    pub cwd: String,
    /// Which settings, each as the names on the way to it.
    pub config_paths: Vec<Vec<String>>,
    /// Which requirements, likewise.
    pub requirements_paths: Vec<Vec<String>>,
}

/// What `environmentConfig/read` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentConfigResponse {
    /// Whose files.
    pub user_home_dir: Option<String>,
    /// Where codex keeps its own.
    pub codex_home_dir: String,
    /// The machine's name.
    pub hostname: String,
    /// Settings.
    pub config: ConfigLayers,
    /// What settings must fulfil.
    pub requirements: ConfigLayers,
}

/// Settings from several places; later ones count more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigLayers {
    /// One place each.
    pub layers: Vec<ConfigLayer>,
    /// Where the client puts its own.
    pub cloud_insertion_index: usize,
}

/// Settings from one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigLayer {
    /// Where from, for people.
    pub source: String,
    /// What relative paths in it mean.
    pub base_dir: String,
    /// The settings that were asked for.
    pub toml: String,
}
