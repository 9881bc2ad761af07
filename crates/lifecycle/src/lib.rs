//! The types and rules of an execution. Pure: no I/O, no clock, no async, no protocol.
//!
//! ```text
//! intent --decide--> events --(journal)--> apply --> state --owe--> effects
//! ```
//!
//! [`decide`] returns the events, [`State::apply`] adds them to the state, [`owe`] returns the effects that they require.

mod answer;
mod answer_decision;
mod answer_role;
mod answered;
mod builtin_caller;
mod call;
mod decide;
mod deferred;
mod effect;
mod event;
mod failure;
mod ids;
mod intent;
mod json;
mod limits;
mod policy;
mod program;
mod progress;
mod quotas;
mod recovery;
mod rejection;
mod requested_limits;
mod shown;
mod state;
mod terms;
mod utc;
mod wish;

#[cfg(test)]
mod tests;

pub use answer::{Answer, AnswerExtras, Question, QuestionKind};
pub use answer_decision::{AnswerDecision, GivenAnswer, HeldCallFacts, decide_answers};
pub use answer_role::{AnswerAuthor, AnswerRole, BadAnswerRole};
pub use builtin_caller::BuiltinCaller;
pub use call::{Call, CallStage};
pub use decide::{DecisionMoment, decide};
pub use effect::{Effect, owe};
pub use event::{CallOutcome, Entry, Event, GuestInput, LogLevel, OutputMark, WriteStrength};
pub use failure::{Failure, FailureCode};
pub use ids::{
    CallId, CallerName, ExecutionId, InputIndex, InvalidId, QuestionId, Seq, TimerId, Timestamp,
};
pub use intent::{CallAdmission, Intent, ToolHost, ToolNature, UnavailableSource};
pub use json::{ArgumentsDigest, InvalidJson, Json, ToolRevision};
pub use limits::{ActiveClock, ExecutionLimits, LimitKind, UnawaitedCalls};
pub use policy::{
    BadPattern, Policy, PolicyAction, PolicyRule, PolicyVerdict, ToolPattern, ToolTraits,
};
pub use program::{BadToolPath, PreparedProgram, Program, RandomSeed, ToolPath, ValueConvention};
pub use progress::{PROGRESS_BYTES_MAX, PROGRESS_OF_ALL_BYTES_MAX};
pub use quotas::{CallerUsage, CpuWindow, QuotaKind, QuotaLimits};
pub use rejection::Rejection;
pub use requested_limits::{RefusedLimit, RequestedLimits};
pub use shown::{TruncatedText, pretty};
pub use state::{ExecutionOrigin, ExecutionOutcome, ExecutionPhase, ExecutionSummary, State};
pub use terms::{CallRules, CallerRuns, CodeDialect};
pub use utc::UtcTime;
pub use wish::{ToolPrompt, callback_state};
