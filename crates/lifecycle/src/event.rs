//! What has happened. The journal is a numbered list of these; this file is its format.

use crate::{
    AnswerRole, CallId, CallRules, CallerName, ExecutionLimits, ExecutionOutcome, Failure,
    InputIndex, Json, LimitKind, PreparedProgram, Program, Question, QuestionId, RandomSeed, Seq,
    TimerId, Timestamp, ToolNature, ToolPath, ToolRevision, answer::Answer,
};
use serde::{Deserialize, Serialize};

/// One numbered line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, contiguous from 1 within an execution.
    pub seq: Seq,
    /// When it was decided.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// Something that has happened to an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A caller started a program.
    Started {
        /// The program as written.
        program: Program,
        /// Who wants it.
        caller: CallerName,
        /// What it may use.
        #[serde(
            default = "ExecutionLimits::unsaid",
            skip_serializing_if = "ExecutionLimits::is_unsaid"
        )]
        limits: ExecutionLimits,
        /// Where its randomness comes from.
        seed: RandomSeed,
        /// What its door agreed upon.
        #[serde(default, skip_serializing_if = "CallRules::is_usual")]
        terms: Box<CallRules>,
    },
    /// The runner made the program ready; replays run this text.
    Prepared(PreparedProgram),
    /// The guest printed a line.
    Logged {
        /// Which output it is.
        mark: OutputMark,
        /// How loud.
        level: LogLevel,
        /// The text.
        line: String,
    },
    /// The guest handed out an item beside its result.
    Emitted {
        /// Which output it is.
        mark: OutputMark,
        /// The item.
        item: Json,
    },
    /// The guest called a tool.
    CallMade {
        /// Its ordinal.
        call: CallId,
        /// Which tool.
        tool: ToolPath,
        /// With what.
        args: Json,
        /// What kind of tool that is.
        nature: ToolNature,
        /// The line of the user's text that called, by the program's own account.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
        /// The name by which the program called the tool, where the door has given it one of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alias: Option<ToolPath>,
    },
    /// A call waits for a person.
    CallAsked(Question),
    /// A person answered.
    CallAnswered {
        /// Which question.
        question: QuestionId,
        /// The call that waited.
        call: CallId,
        /// The answer.
        answer: Answer,
        /// The caller who answered.
        by: CallerName,
        /// The role of the answerer. Entries of versions that did not record it read as a person.
        #[serde(rename = "as", default, skip_serializing_if = "AnswerRole::is_person")]
        role: AnswerRole,
        /// This execution may call this edition of the tool again without asking.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        remember: bool,
        /// The arguments of the dispatched call, where a person changed those of the program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Json>,
    },
    /// A call waits for its source, which is not available. What the tool is, and whether a person must
    /// agree, is decided when the wait ends.
    CallDeferred {
        /// Which call.
        call: CallId,
    },
    /// The source of a deferred call is available, and the tool is known. What follows decides on the call.
    CallAdmitted {
        /// Which call.
        call: CallId,
        /// What kind of tool it is.
        nature: ToolNature,
        /// The edition of the tool that was found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<ToolRevision>,
    },
    /// A call goes to its tool.
    CallDispatched {
        /// Which call.
        call: CallId,
        /// 1 for the first time.
        attempt: u32,
    },
    /// A running tool reported progress. The guest does not receive it.
    CallProgressed {
        /// Which call.
        call: CallId,
        /// The text of the report.
        text: String,
    },
    /// A call's outcome is known: an input of the guest.
    CallSettled {
        /// Which call.
        call: CallId,
        /// How it ended.
        outcome: CallOutcome,
    },
    /// The guest wants to be woken.
    TimerSet {
        /// Its ordinal.
        timer: TimerId,
        /// When.
        due: Timestamp,
    },
    /// The guest no longer wants to be woken.
    TimerCleared {
        /// Which timer.
        timer: TimerId,
    },
    /// The guest was woken: an input of the guest.
    TimerFired {
        /// Which timer.
        timer: TimerId,
    },
    /// All that the program can do now waits for people.
    Paused {
        /// How many inputs it had received.
        inputs: InputIndex,
        /// How much of its active time it had used.
        active_ms: u64,
    },
    /// The program could not be brought back after a restart.
    RecoveryFailed {
        /// What went wrong.
        why: String,
    },
    /// Given up: shown to people, no longer tried.
    Parked,
    /// The store lost what came after the entry before this one, or may have: calls may have been dispatched that this
    /// journal does not know of.
    EntriesMayBeLost,
    /// A person lets a parked execution continue.
    Continued {
        /// Who.
        by: CallerName,
    },
    /// A limit was reached; the end follows.
    LimitReached {
        /// Which.
        limit: LimitKind,
    },
    /// The end.
    Finished {
        /// How it ended.
        outcome: ExecutionOutcome,
        /// How much of its active time it had used.
        active_ms: u64,
        /// About how many loop iterations its runner had counted.
        #[serde(default, skip_serializing_if = "is_zero")]
        iterations: u64,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// With a value, or with `undefined`.
    Returned {
        /// The value; `None` is `undefined`.
        #[serde(
            default,
            deserialize_with = "crate::json::present",
            skip_serializing_if = "Option::is_none"
        )]
        value: Option<Json>,
    },
    /// With a failure that the guest can catch.
    Failed(Failure),
    /// Unknown: the execution ended while the tool was running.
    Unknown,
}

/// Identifies an output: the n-th since the guest's m-th input. Replay distinguishes old from new outputs by it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct OutputMark {
    /// Inputs received before.
    pub input: InputIndex,
    /// Counted from 1 after each input.
    pub ordinal: u32,
}

/// How loud a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are console's")]
pub enum LogLevel {
    Debug,
    Log,
    Info,
    Warn,
    Error,
}

/// What the guest receives, one at a time, in the order of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestInput<'a> {
    /// A call's outcome.
    Settled(CallId, &'a CallOutcome),
    /// A timer.
    Fired(TimerId),
}

/// How durable an event must be before the engine acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WriteStrength {
    /// Survives `kill -9`.
    Written,
    /// Survives power loss.
    Synced,
}

impl Event {
    /// Whether it may be written together with the next events: the program continues, and no client waits for it.
    pub const fn can_wait(&self) -> bool {
        match self {
            Self::Started { .. }
            | Self::Prepared(_)
            | Self::Logged { .. }
            | Self::Emitted { .. }
            | Self::CallMade { .. }
            | Self::CallDeferred { .. }
            | Self::CallAdmitted { .. }
            | Self::CallDispatched { .. }
            | Self::CallProgressed { .. }
            | Self::CallSettled { .. }
            | Self::TimerSet { .. }
            | Self::TimerCleared { .. }
            | Self::TimerFired { .. } => true,
            Self::CallAsked(_)
            | Self::CallAnswered { .. }
            | Self::Paused { .. }
            | Self::RecoveryFailed { .. }
            | Self::Parked
            | Self::EntriesMayBeLost
            | Self::Continued { .. }
            | Self::LimitReached { .. }
            | Self::Finished { .. } => false,
        }
    }

    /// The guest's input that this event is, if it is one.
    pub const fn input(&self) -> Option<GuestInput<'_>> {
        match self {
            Self::CallSettled { call, outcome } => Some(GuestInput::Settled(*call, outcome)),
            Self::TimerFired { timer } => Some(GuestInput::Fired(*timer)),
            Self::Started { .. }
            | Self::Prepared(_)
            | Self::Logged { .. }
            | Self::Emitted { .. }
            | Self::CallMade { .. }
            | Self::CallAsked(_)
            | Self::CallAnswered { .. }
            | Self::CallDeferred { .. }
            | Self::CallAdmitted { .. }
            | Self::CallDispatched { .. }
            | Self::CallProgressed { .. }
            | Self::TimerSet { .. }
            | Self::TimerCleared { .. }
            | Self::Paused { .. }
            | Self::RecoveryFailed { .. }
            | Self::Parked
            | Self::EntriesMayBeLost
            | Self::Continued { .. }
            | Self::LimitReached { .. }
            | Self::Finished { .. } => None,
        }
    }
}
