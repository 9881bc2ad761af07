//! Events of an execution. The journal is a numbered list of them; this file defines its format.

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
    /// The time of the decision.
    pub at: Timestamp,
    /// The event.
    pub event: Event,
}

/// An event of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A caller started a program.
    Started {
        /// The program as written.
        program: Program,
        /// The caller that owns it.
        caller: CallerName,
        /// The limits of the execution.
        #[serde(
            default = "ExecutionLimits::unsaid",
            skip_serializing_if = "ExecutionLimits::is_unsaid"
        )]
        limits: ExecutionLimits,
        /// The seed of its randomness.
        seed: RandomSeed,
        /// The rules of its door.
        #[serde(default, skip_serializing_if = "CallRules::is_usual")]
        terms: Box<CallRules>,
    },
    /// The runner prepared the program; replays run this text.
    Prepared(PreparedProgram),
    /// The guest printed a line.
    Logged {
        /// The output's position.
        mark: OutputMark,
        /// The level of the line.
        level: LogLevel,
        /// The text.
        line: String,
    },
    /// The guest emitted an item besides its result.
    Emitted {
        /// The output's position.
        mark: OutputMark,
        /// The item.
        item: Json,
    },
    /// The guest called a tool.
    CallMade {
        /// The call's ordinal.
        call: CallId,
        /// The tool.
        tool: ToolPath,
        /// The arguments.
        args: Json,
        /// The tool's nature.
        nature: ToolNature,
        /// The line of the user's text that made the call, according to the program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u32>,
        /// The name by which the program called the tool, if the door has given it an alias.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alias: Option<ToolPath>,
    },
    /// A call waits for a person.
    CallAsked(Question),
    /// A person answered a question.
    CallAnswered {
        /// The question's id.
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
        /// The arguments of the dispatched call, if a person changed those of the program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Json>,
    },
    /// A call waits for its source, which is not available. What the tool is, and whether a person must
    /// agree, is decided when the wait ends.
    CallDeferred {
        /// The call's id.
        call: CallId,
    },
    /// The source of a deferred call is available, and the tool is known. What follows decides on the call.
    CallAdmitted {
        /// The call's id.
        call: CallId,
        /// What kind of tool it is.
        nature: ToolNature,
        /// The edition of the tool that was found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<ToolRevision>,
    },
    /// A call is dispatched to its tool.
    CallDispatched {
        /// The call's id.
        call: CallId,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// A running tool reported progress. The guest does not receive it.
    CallProgressed {
        /// The call's id.
        call: CallId,
        /// The text of the report.
        text: String,
    },
    /// A call's outcome is known: an input of the guest.
    CallSettled {
        /// The call's id.
        call: CallId,
        /// The call's outcome.
        outcome: CallOutcome,
    },
    /// The guest set a timer.
    TimerSet {
        /// The timer's ordinal.
        timer: TimerId,
        /// When it is due.
        due: Timestamp,
    },
    /// The guest cleared a timer.
    TimerCleared {
        /// The timer's id.
        timer: TimerId,
    },
    /// A timer fired: an input of the guest.
    TimerFired {
        /// The timer's id.
        timer: TimerId,
    },
    /// All that the program can do now waits for people.
    Paused {
        /// How many inputs it had received.
        inputs: InputIndex,
        /// How much of its active time it had used.
        active_ms: u64,
    },
    /// The program could not be recovered after a restart.
    RecoveryFailed {
        /// The reason.
        why: String,
    },
    /// Recovery was given up: the execution waits for a person.
    Parked,
    /// The store lost the entries after the previous one, or may have: calls may have been dispatched that
    /// this journal does not contain.
    EntriesMayBeLost,
    /// A person lets a parked execution continue.
    Continued {
        /// The person's caller name.
        by: CallerName,
    },
    /// A limit was reached; the end follows.
    LimitReached {
        /// The limit.
        limit: LimitKind,
    },
    /// The execution ended.
    Finished {
        /// The execution's outcome.
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

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// A value, or `undefined`.
    Returned {
        /// The value; `None` is `undefined`.
        #[serde(
            default,
            deserialize_with = "crate::json::present",
            skip_serializing_if = "Option::is_none"
        )]
        value: Option<Json>,
    },
    /// A failure that the guest can catch.
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

/// The level of a log line.
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

/// An input of the guest. Inputs are delivered one at a time, in the order of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestInput<'a> {
    /// A call's outcome.
    Settled(CallId, &'a CallOutcome),
    /// A timer that fired.
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
