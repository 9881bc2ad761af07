//! The messages as values. Texts and payloads borrow from the line they came in.

pub use super::text::{RawJson, WireText};
use super::text::{count, json_string, line, present, text_if_any};
use lifecycle::{
    InputIndex, LogLevel, OutputMark, RandomSeed, TimerId, Timestamp, UnawaitedCalls,
    ValueConvention,
};
use serde::Deserialize;

/// What a host says to a runner.
#[derive(Debug, Clone, PartialEq)]
pub enum ToRunner<'a> {
    /// Run a program.
    Execute(Execute<'a>),
    /// A tool call is settled.
    ToolResult(ToolResult<'a>),
    /// A timer is due (ours).
    TimerFired(TimerFired),
    /// Say `synced` once everything before this is processed (ours).
    Sync(Sync),
    /// Give up.
    Cancel(Cancel<'a>),
    /// From now on the link speaks the language of [`super::session`] (ours).
    Session(super::session::OpenSession),
}

/// What a runner says to a host.
#[derive(Debug, Clone, PartialEq)]
pub enum FromRunner<'a> {
    /// The program is ready and its first line is about to run.
    Started(Started<'a>),
    /// The guest calls a tool.
    ToolCall(ToolCall<'a>),
    /// The guest printed a line (ours).
    Log(Log<'a>),
    /// The guest handed out an item (ours).
    Emit(Emit<'a>),
    /// The guest set a timer (ours).
    TimerSet(TimerSet),
    /// The guest cleared a timer (ours).
    TimerCleared(TimerCleared),
    /// All inputs so far are processed and the guest waits (ours).
    Idle(Idle),
    /// The answer to `sync` (ours).
    Synced(Sync),
    /// About how often the guest's loops have gone round (ours).
    Counted(Counted),
    /// An input named a call or timer that is not outstanding: a replay took another path (ours).
    Diverged(Diverged<'a>),
    /// The program ended.
    Done(Done<'a>),
}

/// Run a program.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Execute<'a> {
    /// Names this execution on this link.
    #[serde(borrow, deserialize_with = "json_string")]
    pub id: WireText<'a>,
    /// The program; prepared text if [`Airlock::prepared`].
    #[serde(borrow, deserialize_with = "json_string")]
    pub code: WireText<'a>,
    /// Limits every host gives.
    pub options: Options,
    /// The tool namespaces of a plain execbox host, as it wrote them; `[]` between engine and runner.
    #[serde(borrow)]
    pub providers: RawJson<'a>,
    /// What only our engine says.
    #[serde(default)]
    pub airlock: Option<Airlock>,
}

/// Limits every host gives. All four must be there, as execbox demands; fractions are cut, negatives are 0.
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

/// What makes a run repeatable, and the limits that execbox has no words for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Airlock {
    /// Where everything random in the guest comes from.
    pub seed: RandomSeed,
    /// The guest's time until its first input.
    pub start_ms: Timestamp,
    /// How the text becomes a value.
    pub convention: ValueConvention,
    /// Whether `code` was prepared by an earlier run and is to be run as it is.
    pub prepared: bool,
    /// Which version of the guest globals.
    pub prelude: u32,
    /// Processor time after the replay.
    pub cpu_ms: u64,
    /// Whether a settled program waits for calls nobody awaits.
    pub unawaited: UnawaitedCalls,
    /// How many of the first inputs are a replay.
    pub replay_inputs: InputIndex,
    /// Processor time for the replay.
    pub replay_cpu_ms: u64,
    /// How often one loop may go round each time it is entered; absent for no limit.
    #[serde(default)]
    pub loop_rounds_max: Option<u64>,
}

/// A tool call is settled.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    /// Which call.
    pub call_id: WireText<'a>,
    /// The value, `None` for undefined, or why there is none.
    pub outcome: Result<Option<RawJson<'a>>, CallFailure<'a>>,
    /// The guest's time from now on.
    pub at: Option<Timestamp>,
}

/// Why a tool call failed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CallFailure<'a> {
    /// Which kind, in the host's words.
    #[serde(borrow, deserialize_with = "json_string")]
    pub code: WireText<'a>,
    /// A sentence.
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
    /// Which.
    pub timer: TimerId,
    /// The guest's time from now on.
    pub at: Timestamp,
}

/// A number to be sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Sync {
    /// The number.
    pub n: u64,
}

/// Give up.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Cancel<'a> {
    /// Which execution.
    #[serde(borrow, deserialize_with = "json_string")]
    pub id: WireText<'a>,
}

/// The program is ready.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Started<'a> {
    /// Which execution.
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
    /// Engine, version and whatever else could change a result.
    #[serde(borrow, deserialize_with = "json_string")]
    pub fingerprint: WireText<'a>,
}

/// The guest calls a tool.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall<'a> {
    /// Names the call; between runner and engine the ordinal in decimal.
    #[serde(borrow, deserialize_with = "json_string")]
    pub call_id: WireText<'a>,
    /// The namespace; between runner and engine always [`ToolCall::TOOLS`].
    #[serde(borrow, deserialize_with = "json_string")]
    pub provider_name: WireText<'a>,
    /// The tool; between runner and engine its dotted path.
    #[serde(borrow, deserialize_with = "json_string")]
    pub safe_tool_name: WireText<'a>,
    /// The only argument; `null` when the guest gave none. A stranger's runner may leave it out.
    #[serde(borrow, default = "no_input")]
    pub input: RawJson<'a>,
    /// The line of the program that calls, where it is the user's own (ours).
    #[serde(default, deserialize_with = "line")]
    pub line: Option<u32>,
}

const fn no_input<'a>() -> RawJson<'a> {
    RawJson::NULL
}

impl ToolCall<'_> {
    /// The namespace under which our guests find all tools.
    pub const TOOLS: &'static str = "tools";
}

/// The guest printed a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log<'a> {
    /// How loud.
    pub level: LogLevel,
    /// The text.
    pub line: WireText<'a>,
    /// Which output it is.
    pub mark: OutputMark,
    /// The text as JSON, for a plain host, where it holds half a surrogate pair: `line` cannot.
    pub exact: Option<RawJson<'a>>,
}

/// The guest handed out an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Emit<'a> {
    /// The item.
    pub item: RawJson<'a>,
    /// Which output it is.
    pub mark: OutputMark,
}

/// The guest set a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimerSet {
    /// Its ordinal.
    pub timer: TimerId,
    /// Due so long after the guest's present time.
    pub delay_ms: u64,
}

/// The guest cleared a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct TimerCleared {
    /// Which.
    pub timer: TimerId,
}

/// The guest waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Idle {
    /// How many inputs it has received.
    pub inputs: InputIndex,
}

/// About how often the guest's loops have gone round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Counted {
    /// Iterations since the program began.
    pub iterations: u64,
}

/// A replay took another path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Diverged<'a> {
    /// What was expected, in a sentence.
    #[serde(borrow, deserialize_with = "json_string")]
    pub what: WireText<'a>,
}

/// The program ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Done<'a> {
    /// Which execution.
    pub id: WireText<'a>,
    /// The value, `None` for undefined, or why there is none.
    pub outcome: Result<Option<RawJson<'a>>, Failed<'a>>,
    /// How long it took.
    pub duration_ms: u64,
    /// What it printed; empty when the lines were sent one by one.
    pub logs: Vec<WireText<'a>>,
    /// What it emitted; empty when the items were sent one by one. Left out when empty: execbox has no word for it.
    pub emitted: Vec<RawJson<'a>>,
}

/// Why a program has no value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Failed<'a> {
    /// Which kind: between runner and engine in the words of `lifecycle::FailureCode`.
    #[serde(borrow, deserialize_with = "json_string")]
    pub code: WireText<'a>,
    /// A sentence.
    #[serde(borrow, deserialize_with = "json_string")]
    pub message: WireText<'a>,
    /// The guest's error class.
    #[serde(borrow, default, deserialize_with = "text_if_any")]
    pub name: Option<WireText<'a>>,
    /// The guest's own lines.
    #[serde(borrow, default, deserialize_with = "text_if_any")]
    pub stack: Option<WireText<'a>>,
    /// Which limit was reached, in the words of `lifecycle::LimitKind`.
    #[serde(borrow, default, deserialize_with = "text_if_any")]
    pub limit: Option<WireText<'a>>,
}
