//! The nouns and rules of an execution. Pure: no I/O, no clock, no async, no protocol.
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

pub use answer::{Answer, Question, QuestionKind, Rider};
pub use answer_decision::{AnswerDecision, GivenAnswer, HeldCallFacts, decide_answers};
pub use answer_role::{AnswerAuthor, AnswerRole, BadAnswerRole};
pub use builtin_caller::BuiltinCaller;
pub use call::{Call, Stage};
pub use decide::{Moment, decide};
pub use effect::{Effect, owe};
pub use event::{CallOutcome, Entry, Event, Input, LogLevel, OutputMark, Strength};
pub use failure::{Failure, FailureCode};
pub use ids::{
    BadId, CallId, CallerName, ExecutionId, InputIndex, QuestionId, Seq, TimerId, Timestamp,
};
pub use intent::{Admission, Intent, Nature, Runs, UnavailableSource};
pub use json::{Digest, Json, NotJson, Revision};
pub use limits::{ActiveClock, LimitKind, Limits, Unawaited};
pub use policy::{Action, BadPattern, Pattern, Policy, Rule, Traits, Verdict};
pub use program::{BadToolPath, Convention, Prepared, Program, Seed, ToolPath};
pub use progress::{PROGRESS_BYTES_MAX, PROGRESS_OF_ALL_BYTES_MAX};
pub use quotas::{CallerUsage, CpuWindow, QuotaKind, Quotas};
pub use rejection::Rejection;
pub use requested_limits::{RefusedLimit, RequestedLimits};
pub use shown::{Cut, pretty};
pub use state::{Origin, Outcome, Phase, Standing, State};
pub use terms::{CallerRuns, CodeDialect, Terms};
pub use utc::Utc;
pub use wish::{Wish, callback_state};
