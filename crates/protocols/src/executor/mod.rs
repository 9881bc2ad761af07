//! executor: code mode over HTTP. What its clients call an execution id is our question's id; the
//! execution's own id is `run_…`, which clients never need.
//!
//! An [`ExecutionView`] applies a journal's entries and finds the event that a client waits for;
//! [`outbound`] serializes it.

mod bounded_outputs;
mod events;
mod execution_view;
mod inbound;
mod items;
pub mod outbound;
pub mod wire;

#[cfg(test)]
mod tests;

pub use events::kind;
pub use execution_view::{AskedQuestion, ExecutionView, WaitEnd};
pub use inbound::{
    AnswerBody, BadBody, ExecuteBody, ObjectMembers, answers, execute, member, members, resume,
    rider,
};
pub use items::is_block;
pub use outbound::QuestionReader;

/// Longest text in an envelope; `structured` has more, and the journal all.
pub const TEXT_CHARS_MAX: usize = 30_000;

/// Largest value that `structured` holds in one piece: a larger one is streamed, or omitted at the client's request.
pub const RESULT_BYTES_MAX: usize = 1 << 20;

/// Limit of log lines, and of emitted items, in `structured`.
pub const OUTPUTS_MAX: usize = 1_000;

/// Limit of their bytes, each, which the last one may exceed.
pub const OUTPUT_BYTES_MAX: usize = 256 << 10;
