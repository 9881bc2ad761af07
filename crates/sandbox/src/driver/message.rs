//! What runners say, in types that outlive the line. Whatever a line contains is input, never truth.

use super::loss::RunnerLoss;
use lifecycle::{
    CallId, Failure, FailureCode, InputIndex, Json, LimitKind, LogLevel, OutputMark,
    PreparedProgram, TimerId, ToolPath,
};
use protocols::execbox::session::TaskFailureKind;

/// What happens on the link to a runner.
#[derive(Debug)]
pub enum RunnerMessage {
    /// The runner that was asked for is there. It receives its orders when the driver is used next.
    Leased,
    /// The runner is gone, or cannot be used any more. Nothing follows.
    Lost(RunnerLoss),
    /// The program is ready and begins. An engine's program says what a replay of it needs.
    Started(Option<PreparedProgram>),
    /// An engine's program calls a tool.
    ToolCalled {
        /// The call's ordinal.
        call: CallId,
        /// The tool.
        tool: ToolPath,
        /// The only argument.
        args: Json,
        /// The line of the program that calls.
        line: Option<u32>,
    },
    /// A host's program calls a tool: the line for the host, with its line break.
    HostToolCalled(Vec<u8>),
    /// The program printed a line.
    Logged {
        /// Which output it is.
        mark: OutputMark,
        /// The level.
        level: LogLevel,
        /// The text.
        line: String,
        /// The text as JSON, where it holds half a surrogate pair: `line` cannot.
        exact: Option<String>,
    },
    /// The program handed out an item.
    Emitted {
        /// Which output it is.
        mark: OutputMark,
        /// The item.
        item: Json,
    },
    /// An engine's program set a timer. The journal keeps it, not the driver.
    TimerSet {
        /// The timer's ordinal.
        timer: TimerId,
        /// It is due so long after the guest's present time.
        delay_ms: u64,
    },
    /// An engine's program cleared a timer.
    TimerCleared {
        /// The timer's ordinal.
        timer: TimerId,
    },
    /// The driver's own timers changed: [`super::RunnerDriver::alarm`] may be earlier than before.
    TimersChanged,
    /// A host's program set more timers than a program may have.
    TooManyTimers,
    /// An engine's program has processed this many inputs and waits.
    Idle(InputIndex),
    /// About how many iterations the program's loops have made.
    Counted(u64),
    /// All that was sent before the driver's `sync` is processed.
    Synced,
    /// A replay took another path: what was expected.
    Diverged(String),
    /// The program ended.
    Done(Result<Option<Json>, ProgramFailure>),
    /// What only a session's runner says.
    Session(SessionMessage),
}

/// Why a program has no value, in the runner's own terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFailure {
    /// Which kind: a word of [`FailureCode`], or the code that a tool gave its own failure.
    pub code: String,
    /// A sentence.
    pub message: String,
    /// The guest's error class.
    pub name: Option<String>,
    /// The guest's own lines.
    pub stack: Option<String>,
    /// Which limit was reached, in the words of [`LimitKind`].
    pub limit: Option<String>,
}

impl ProgramFailure {
    /// The failure as the journal has it, and the limit that was reached, if one was.
    pub fn into_failure(self) -> (Failure, Option<LimitKind>) {
        // Guests cannot invent a code: one that is not ours is a tool's own, on its way back.
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

/// What a session's runner says.
#[derive(Debug)]
pub enum SessionMessage {
    /// A task is over.
    TaskEnded {
        /// The task's number.
        task: u64,
        /// How it ended.
        result: TaskResult,
        /// It was stopped, and what it left behind does not stop: the world is of no more use.
        is_fouled: bool,
    },
    /// The names that fit a text.
    Completed {
        /// The task's number.
        task: u64,
        /// Whole names, sorted.
        names: Vec<String>,
    },
    /// The guest calls a tool.
    ToolCalled {
        /// The task's number; 0 for none that is open.
        task: u64,
        /// Names the call.
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
    /// The guest took a command back.
    CommandUnregistered(String),
    /// A command reports how far it is.
    Progressed {
        /// The task's number.
        task: u64,
        /// What it reports, as JSON text.
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
    /// Everything that was sent so far is processed, and the guest waits.
    Rested,
}

/// How a task ended.
#[derive(Debug)]
pub enum TaskResult {
    /// An eval has a value.
    Value {
        /// What it is.
        type_name: String,
        /// Its JSON, perhaps cut.
        json: String,
        /// How many bytes its JSON has, as far as they were counted.
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
    /// In short.
    pub why: TaskFailureKind,
    /// A sentence.
    pub message: String,
    /// The guest's own lines.
    pub stack: Option<String>,
    /// The kind that a command's error claims.
    pub kind: Option<String>,
    /// The code that a command's error claims.
    pub code: Option<String>,
    /// The details that a command's error claims, as JSON text.
    pub details: Option<String>,
}
