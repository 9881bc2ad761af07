//! A request to change an execution. It may be refused; then nothing is recorded.

use crate::{
    Answer, AnswerAuthor, AnswerExtras, CallId, CallOutcome, CallRules, CallerName,
    ExecutionLimits, Failure, InputIndex, Json, LimitKind, LogLevel, OutputMark, PreparedProgram,
    Program, QuestionId, RandomSeed, TimerId, ToolPath, ToolPrompt, ToolRevision, ToolTraits,
};
use serde::{Deserialize, Serialize};

/// Everything that can enter an execution, from callers, the guest, timers and runners.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the events")]
pub enum Intent {
    /// A caller requests the start of a program.
    Start {
        program: Program,
        caller: CallerName,
        limits: ExecutionLimits,
        seed: RandomSeed,
        terms: Box<CallRules>,
    },
    /// The runner has prepared the program.
    Ready(PreparedProgram),
    /// The guest prints.
    Log { mark: OutputMark, level: LogLevel, line: String },
    /// The guest emits an item.
    Emit { mark: OutputMark, item: Json },
    /// The guest calls a tool.
    Call {
        /// The call's ordinal.
        call: CallId,
        /// The tool.
        tool: ToolPath,
        /// The arguments.
        args: Json,
        /// The line of the user's text that made the call.
        line: Option<u32>,
        /// The name by which the program called the tool, if the door has given it an alias.
        alias: Option<ToolPath>,
        /// The catalogue's statement about it.
        admission: CallAdmission,
    },
    /// The guest sets a timer.
    SetTimer { timer: TimerId, delay_ms: u64 },
    /// The guest clears a timer.
    ClearTimer { timer: TimerId },
    /// The guest has processed all its inputs and waits.
    Rest { inputs: InputIndex, active_ms: u64 },
    /// The program ended by itself.
    Finish { result: Result<Option<Json>, Failure>, active_ms: u64 },
    /// A tool, during its call, asks a person.
    Ask { call: CallId, wish: ToolPrompt },
    /// A dispatched call did not reach its tool: the source is not available, or the tool is another.
    Defer { call: CallId },
    /// The wait of a deferred call for its source has ended.
    Admit { call: CallId, admission: CallAdmission },
    /// The tool that asked during its call has ended; its server died.
    Lose { call: CallId },
    /// A running tool reports progress.
    Progress { call: CallId, text: String },
    /// A tool ended.
    Settle { call: CallId, outcome: CallOutcome },
    /// A timer is due.
    Fire { timer: TimerId },
    /// A person answers.
    Answer {
        question: QuestionId,
        answer: Answer,
        by: AnswerAuthor,
        /// An addition to an approval.
        rider: AnswerExtras,
        /// The catalogue's present statement about the held call with the arguments of the dispatch; none
        /// where it was not looked up.
        today: Option<CallAdmission>,
    },
    /// A person or caller requests the end.
    Cancel { by: CallerName, reason: Option<String>, active_ms: u64 },
    /// A limit was reached.
    Expire { limit: LimitKind, active_ms: u64 },
    /// The server that ran it has ended and another has taken over.
    Recover,
    /// The store lost entries, or may have.
    LoseEntries,
    /// A person lets a parked execution continue.
    Continue { by: CallerName },
    /// A recovery failed.
    FailRecovery { why: String },
}

/// The catalogue's statement about a call, on which the decision is based.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallAdmission {
    /// The tool exists and takes these arguments.
    Fit {
        /// What kind of tool it is.
        nature: ToolNature,
        /// The properties that policies check.
        traits: ToolTraits,
        /// The description that the person reads first.
        about: Option<String>,
        /// The revision of the tool, if a person may have to judge it.
        revision: Option<ToolRevision>,
    },
    /// There is no such tool, or the arguments are invalid.
    Unfit(Failure),
    /// The same for tools whose kind reports errors as values: nothing is called, and this is the result.
    Told(Json),
    /// The source is known and not available, so the tool's properties are unknown.
    Unavailable(UnavailableSource),
}

/// Why a call cannot be judged: its source is not available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnavailableSource {
    /// The reason, as the middle of a sentence.
    pub why: String,
    /// How the call ends when it has waited long enough.
    pub outcome: CallOutcome,
}

/// The properties of a tool that matter when a server dies during its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolNature {
    /// Calling it twice does no harm.
    pub read_only: bool,
    /// Where it runs.
    pub runs: ToolHost,
}

/// Where a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolHost {
    /// On this server.
    Here,
    /// At the caller; the call stays outstanding under the same id when a server dies.
    AtCaller,
}
