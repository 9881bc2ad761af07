//! The messages as values. Texts and payloads borrow from their line.

pub use super::text::{RawJson, WireText};
use super::text::{count, json_string, line, present, text_if_any};
use lifecycle::{
    InputIndex, LogLevel, OutputMark, RandomSeed, TimerId, Timestamp, UnawaitedCalls,
    ValueConvention,
};
use serde::Deserialize;

/// A message from a host to a runner.
#[derive(Debug, Clone, PartialEq)]
pub enum ToRunner<'a> {
    /// Run a program.
    Execute(Execute<'a>),
    /// A tool call is settled.
    ToolResult(ToolResult<'a>),
    /// A timer is due (ours).
    TimerFired(TimerFired),
    /// Request to send `synced` once everything before it has been processed (ours).
    Sync(Sync),
    /// Cancel an execution.
    Cancel(Cancel<'a>),
    /// From now on the link uses the protocol of [`super::session`] (ours).
    Session(super::session::OpenSession),
}

/// A message from a runner to a host.
#[derive(Debug, Clone, PartialEq)]
pub enum FromRunner<'a> {
    /// The program is prepared and about to start.
    Started(Started<'a>),
    /// The guest calls a tool.
    ToolCall(ToolCall<'a>),
    /// The guest printed a line (ours).
    Log(Log<'a>),
    /// The guest emitted an item (ours).
    Emit(Emit<'a>),
    /// The guest set a timer (ours).
    TimerSet(TimerSet),
    /// The guest cleared a timer (ours).
    TimerCleared(TimerCleared),
    /// All inputs so far have been processed and the guest waits (ours).
    Idle(Idle),
    /// The answer to `sync` (ours).
    Synced(Sync),
    /// An estimate of the iterations of the guest's loops (ours).
    Counted(Counted),
    /// An input named a call or timer that is not outstanding: the replay has diverged (ours).
    Diverged(Diverged<'a>),
    /// The program ended.
    Done(Done<'a>),
}

/// Run a program.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Execute<'a> {
    /// The id of this execution on this link.
    #[serde(borrow, deserialize_with = "json_string")]
    pub id: WireText<'a>,
    /// The program; prepared text if [`Airlock::prepared`].
    #[serde(borrow, deserialize_with = "json_string")]
    pub code: WireText<'a>,
    /// Limits that every host sets.
    pub options: Options,
    /// The tool namespaces of a plain execbox host, unparsed; `[]` between engine and runner.
    #[serde(borrow)]
    pub providers: RawJson<'a>,
    /// Members that only our engine sends.
    #[serde(default)]
    pub airlock: Option<Airlock>,
}

/// Limits that every host sets. All four are required, as in execbox; fractions are truncated, negative
/// numbers are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names are execbox's")]
pub struct Options {
    #[serde(deserialize_with = "count")]
    pub timeout_ms: u64,
    #[serde(deserialize_with = "count")]
    pub memory_limit_bytes: u64,
    #[serde(deserialize_with = "count")]
    pub max_log_lines: u64,
    #[serde(deserialize_with = "count")]
    pub max_log_chars: u64,
}

/// What makes a run repeatable, and limits that execbox does not have.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Airlock {
    /// The seed of everything random in the guest.
    pub seed: RandomSeed,
    /// The guest's time until its first input.
    pub start_ms: Timestamp,
    /// Which value the program returns.
    pub convention: ValueConvention,
    /// Whether `code` was prepared by an earlier run and is executed unchanged.
    pub prepared: bool,
    /// The version of the guest globals.
    pub prelude: u32,
    /// Processor time after the replay.
    pub cpu_ms: u64,
    /// Whether a settled program waits for calls that it does not await.
    pub unawaited: UnawaitedCalls,
    /// How many of the first inputs are a replay.
    pub replay_inputs: InputIndex,
    /// Processor time for the replay.
    pub replay_cpu_ms: u64,
    /// Limit of a loop's iterations each time it is entered; absent for no limit.
    #[serde(default)]
    pub loop_rounds_max: Option<u64>,
}

/// A tool call is settled.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    /// The call's id.
    pub call_id: WireText<'a>,
    /// The value, `None` for undefined, or the failure.
    pub outcome: Result<Option<RawJson<'a>>, CallFailure<'a>>,
    /// The guest's time from now on.
    pub at: Option<Timestamp>,
}

/// Why a tool call failed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CallFailure<'a> {
    /// The kind of failure, in the host's words.
    #[serde(borrow, deserialize_with = "json_string")]
    pub code: WireText<'a>,
    /// The message, one sentence.
    #[serde(borrow, deserialize_with = "json_string")]
    pub message: WireText<'a>,
    /// The error's class.
    #[serde(borrow, default, deserialize_with = "text_if_any")]
    pub name: Option<WireText<'a>>,
    /// Machine-readable details.
    #[serde(borrow, default, deserialize_with = "present")]
    pub details: Option<RawJson<'a>>,
}

/// A timer is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct TimerFired {
    /// The timer's number.
    pub timer: TimerId,
    /// The guest's time from now on.
    pub at: Timestamp,
}

/// A number that is sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Sync {
    /// The number.
    pub n: u64,
}

/// Cancel an execution.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Cancel<'a> {
    /// The execution's id.
    #[serde(borrow, deserialize_with = "json_string")]
    pub id: WireText<'a>,
}

/// The program is ready.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Started<'a> {
    /// The execution's id.
    #[serde(borrow, deserialize_with = "json_string")]
    pub id: WireText<'a>,
    /// What a later replay needs.
    #[serde(borrow, default)]
    pub airlock: Option<StartedAirlock<'a>>,
}

/// What a later replay needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StartedAirlock<'a> {
    /// The text that runs.
    #[serde(borrow, deserialize_with = "json_string")]
    pub prepared: WireText<'a>,
    /// The version of the guest globals it runs with.
    pub prelude: u32,
    /// Engine, version and everything else that could change a result.
    #[serde(borrow, deserialize_with = "json_string")]
    pub fingerprint: WireText<'a>,
}

/// The guest calls a tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall<'a> {
    /// The call's id; between runner and engine its ordinal in decimal.
    #[serde(borrow, deserialize_with = "json_string")]
    pub call_id: WireText<'a>,
    /// The namespace; between runner and engine always [`ToolCall::TOOLS`].
    #[serde(borrow, deserialize_with = "json_string")]
    pub provider_name: WireText<'a>,
    /// The tool; between runner and engine its dotted path.
    #[serde(borrow, deserialize_with = "json_string")]
    pub safe_tool_name: WireText<'a>,
    /// The only argument; `null` when the guest passed none. Other implementations' runners may omit it.
    #[serde(borrow, default = "no_input")]
    pub input: RawJson<'a>,
    /// The line of the program that makes the call, if it is the user's own (ours).
    #[serde(default, deserialize_with = "line")]
    pub line: Option<u32>,
}

const fn no_input<'a>() -> RawJson<'a> {
    RawJson::NULL
}

impl ToolCall<'_> {
    /// The namespace of all tools in our guests.
    pub const TOOLS: &'static str = "tools";
}

/// The guest printed a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log<'a> {
    /// The level of the line.
    pub level: LogLevel,
    /// The text.
    pub line: WireText<'a>,
    /// The output's position.
    pub mark: OutputMark,
    /// The text as JSON, for a plain host, if it contains half of a surrogate pair, which `line` cannot
    /// represent.
    pub exact: Option<RawJson<'a>>,
}

/// The guest emitted an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Emit<'a> {
    /// The item's JSON.
    pub item: RawJson<'a>,
    /// The output's position.
    pub mark: OutputMark,
}

/// The guest set a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimerSet {
    /// Its ordinal.
    pub timer: TimerId,
    /// The delay from the guest's present time.
    pub delay_ms: u64,
}

/// The guest cleared a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct TimerCleared {
    /// The timer's number.
    pub timer: TimerId,
}

/// The guest waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Idle {
    /// How many inputs it has received.
    pub inputs: InputIndex,
}

/// An estimate of the iterations of the guest's loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Counted {
    /// Iterations since the program began.
    pub iterations: u64,
}

/// A replay has diverged.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Diverged<'a> {
    /// What was expected, in a sentence.
    #[serde(borrow, deserialize_with = "json_string")]
    pub what: WireText<'a>,
}

/// The program ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Done<'a> {
    /// The execution's id.
    pub id: WireText<'a>,
    /// The value, `None` for undefined, or the failure.
    pub outcome: Result<Option<RawJson<'a>>, Failed<'a>>,
    /// How long it took.
    pub duration_ms: u64,
    /// What it printed; empty when the lines were sent one by one.
    pub logs: Vec<WireText<'a>>,
    /// What it emitted; empty when the items were sent one by one. Omitted when empty: execbox has no such member.
    pub emitted: Vec<RawJson<'a>>,
}

/// Why a program has no value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Failed<'a> {
    /// The kind of failure: between runner and engine a word of `lifecycle::FailureCode`.
    #[serde(borrow, deserialize_with = "json_string")]
    pub code: WireText<'a>,
    /// The message, one sentence.
    #[serde(borrow, deserialize_with = "json_string")]
    pub message: WireText<'a>,
    /// The guest's error class.
    #[serde(borrow, default, deserialize_with = "text_if_any")]
    pub name: Option<WireText<'a>>,
    /// The stack, with the guest's own lines only.
    #[serde(borrow, default, deserialize_with = "text_if_any")]
    pub stack: Option<WireText<'a>>,
    /// Which limit was reached, a word of `lifecycle::LimitKind`.
    #[serde(borrow, default, deserialize_with = "text_if_any")]
    pub limit: Option<WireText<'a>>,
}
