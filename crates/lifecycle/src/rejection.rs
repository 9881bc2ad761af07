//! Why an intent was refused. Nothing was recorded, and the caller can act on the reason.

use crate::{CallId, ExecutionId, Failure, QuestionId, QuotaKind, ToolPath, quotas};
use std::borrow::Cow;

/// Why an intent was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// It was never started, or it was deleted.
    #[error("no execution {0}")]
    UnknownExecution(ExecutionId),
    /// The server is about to stop; running executions continue after the next start.
    #[error("the server is shutting down and takes no new work")]
    ShuttingDown,
    /// Start, twice.
    #[error("this execution was started before")]
    AlreadyStarted,
    /// Anything before start.
    #[error("this execution was never started")]
    NotStarted,
    /// Anything after the end.
    #[error("this execution has ended")]
    AlreadyFinished,
    /// What can only be done after the end.
    #[error("this execution has not ended")]
    NotFinished,
    /// Only a parked execution can be continued.
    #[error("this execution is not parked")]
    NotParked,
    /// An answer to nothing.
    #[error("no question {0} in this execution")]
    UnknownQuestion(QuestionId),
    /// A second answer: the first one counts.
    #[error("question {0} was answered before; the first answer counts")]
    AlreadyAnswered(QuestionId),
    /// An answer that does not fit its question.
    #[error("the answer does not fit the question: {0}")]
    BadAnswer(Cow<'static, str>),
    /// An accept of a call that cannot be dispatched now. The question stays open.
    #[error(
        "the source of {tool} is not available ({why}); try again when it is, or decline the call"
    )]
    SourceUnavailable {
        /// The tool of the call.
        tool: ToolPath,
        /// Why its source is not available.
        why: String,
    },
    /// A result for a call that waits for none.
    #[error("call {0} waits for no result")]
    NotOutstanding(CallId),
    /// The runner broke the protocol.
    #[error("the runner broke the protocol: {0}")]
    Unruly(&'static str),
    /// The program behaved differently in a replay.
    #[error("the program took another path than before at {what}")]
    Diverged {
        /// The point of divergence, for a person: `call 3 (mail.send)`.
        what: String,
    },
    /// The program could not be recovered; its questions stay open.
    #[error("the program could not be brought back: {}", .0.message)]
    NotRestored(Failure),
    /// The caller's quota is exhausted.
    #[error("{}", quotas::refusal(*.quota, *.max))]
    QuotaReached {
        /// The quota.
        quota: QuotaKind,
        /// Its value for this caller.
        max: u64,
    },
}
