//! Messages of runners, in types that outlive the line. The content of a line is untrusted input.

use super::loss::RunnerLoss;
use lifecycle::{
    CallId, Failure, FailureCode, InputIndex, Json, LimitKind, LogLevel, OutputMark,
    PreparedProgram, TimerId, ToolPath,
};
use protocols::execbox::session::TaskFailureKind;

/// An event on the link to a runner.
#[derive(Debug)]
pub enum RunnerMessage {
    /// The requested runner is available. It receives its orders when the driver is used next.
    Leased,
    /// The runner has ended, or cannot be used any more. No message follows.
    Lost(RunnerLoss),
    /// The program is prepared and begins. An engine's program includes what its replay needs.
    Started(Option<PreparedProgram>),
    /// An engine's program calls a tool.
    ToolCalled {
        /// The call's ordinal.
        call: CallId,
        /// The tool.
        tool: ToolPath,
        /// The call's only argument.
        args: Json,
        /// The line of the program that makes the call.
        line: Option<u32>,
    },
    /// A host's program calls a tool: the line for the host, with its line break.
    HostToolCalled(Vec<u8>),
    /// The program printed a line.
    Logged {
        /// The output's position.
        mark: OutputMark,
        /// The level.
        level: LogLevel,
        /// The text.
        line: String,
        /// The text as JSON, if it contains half of a surrogate pair, which `line` cannot represent.
        exact: Option<String>,
    },
    /// The program emitted an item.
    Emitted {
        /// The output's position.
        mark: OutputMark,
        /// The item's JSON.
        item: Json,
    },
    /// An engine's program set a timer. The journal records it, not the driver.
    TimerSet {
        /// The timer's ordinal.
        timer: TimerId,
        /// The delay from the guest's present time.
        delay_ms: u64,
    },
    /// An engine's program cleared a timer.
    TimerCleared {
        /// The timer's ordinal.
        timer: TimerId,
    },
    /// The driver's own timers changed: [`super::RunnerDriver::alarm`] may be earlier than before.
    TimersChanged,
    /// A host's program set more timers than allowed.
    TooManyTimers,
    /// An engine's program has processed this many inputs and waits.
    Idle(InputIndex),
    /// About how many iterations the program's loops have made.
    Counted(u64),
    /// All that was sent before the driver's `sync` has been processed.
    Synced,
    /// A replay diverged: the text is what was expected.
    Diverged(String),
    /// The program ended.
    Done(Result<Option<Json>, ProgramFailure>),
    /// A message that only a session's runner sends.
    Session(SessionMessage),
}

/// Why a program has no value, in the runner's own terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFailure {
    /// The kind of failure: a word of [`FailureCode`], or the code that a tool gave its own failure.
    pub code: String,
    /// The message, one sentence.
    pub message: String,
    /// The guest's error class.
    pub name: Option<String>,
    /// The stack, with the guest's own lines only.
    pub stack: Option<String>,
    /// Which limit was reached, in the words of [`LimitKind`].
    pub limit: Option<String>,
}

impl ProgramFailure {
    /// Converts it to the failure that the journal records, and the limit that was reached, if one was.
    pub fn into_failure(self) -> (Failure, Option<LimitKind>) {
        // Guests cannot forge a code: one that is not ours is a tool's own, on its way back.
        let (code, details) = match FailureCode::from_word(&self.code) {
            Some(code) => (code, None),
            None => {
                let details = Json::from_value(&serde_json::json!({ "code": self.code }));
                (FailureCode::Tool, details.ok())
            }
        };
        let limit = match (self.limit.as_deref(), code) {
            (Some("cpu"), _) => Some(LimitKind::Cpu),
            (Some("rounds"), _) => Some(LimitKind::Rounds),
            (_, FailureCode::MemoryLimit) => Some(LimitKind::Memory),
            _ => None,
        };
        let Self { message, name, stack, .. } = self;
        (Failure { code, message, name, stack, details }, limit)
    }
}

/// A message of a session's runner.
#[derive(Debug)]
pub enum SessionMessage {
    /// A task has ended.
    TaskEnded {
        /// The task's number.
        task: u64,
        /// How it ended.
        result: TaskResult,
        /// It was stopped, but its leftovers do not stop: the world is unusable.
        is_fouled: bool,
    },
    /// The completions of a text.
    Completed {
        /// The task's number.
        task: u64,
        /// Whole names, sorted.
        names: Vec<String>,
    },
    /// The guest calls a tool.
    ToolCalled {
        /// The task's number; 0 if no open task made the call.
        task: u64,
        /// The call's id.
        call: u32,
        /// The tool's path, unchecked.
        tool: String,
        /// The only argument, as JSON text.
        args: String,
    },
    /// The guest printed a line.
    Printed {
        /// The task's number.
        task: u64,
        /// The line without its line break.
        line: String,
    },
    /// The guest registered a command: its descriptor as JSON text.
    CommandRegistered(String),
    /// The guest removed a command.
    CommandUnregistered(String),
    /// A command reports its progress.
    Progressed {
        /// The task's number.
        task: u64,
        /// The report, as JSON text.
        value: String,
    },
    /// A command wrote a file.
    FileWritten {
        /// The task's number.
        task: u64,
        /// The file's name, unchecked.
        name: String,
        /// Its media type, unchecked.
        content_type: String,
        /// Its bytes in base64.
        base64: String,
    },
    /// Everything that was sent so far has been processed, and the guest waits.
    Rested,
}

/// How a task ended.
#[derive(Debug)]
pub enum TaskResult {
    /// An eval has a value.
    Value {
        /// The value's type.
        type_name: String,
        /// The value's JSON, possibly truncated.
        json: String,
        /// The length of the whole JSON in bytes, as far as it was counted.
        bytes: usize,
    },
    /// An eval has no value.
    Nothing,
    /// A command's output, as JSON text.
    Output(String),
    /// Neither value nor output.
    Failed(TaskFailure),
}

impl TaskResult {
    /// Whether the guest's memory was used up.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Failed(TaskFailure { why: TaskFailureKind::Memory, .. }))
    }
}

/// Why a task has neither value nor output.
#[derive(Debug)]
pub struct TaskFailure {
    /// The kind of failure.
    pub why: TaskFailureKind,
    /// The message, one sentence.
    pub message: String,
    /// The stack, with the guest's own lines only.
    pub stack: Option<String>,
    /// The kind that a command's error claims.
    pub kind: Option<String>,
    /// The code that a command's error claims.
    pub code: Option<String>,
    /// The details that a command's error claims, as JSON text.
    pub details: Option<String>,
}
