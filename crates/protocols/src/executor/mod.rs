//! executor: code mode over HTTP. What its clients call an execution id is our question's id; the
//! execution itself is `run_…`, which they never need to know.
//!
//! An [`ExecutionView`] hears a journal and knows what a client that waits must be told; [`outbound`] says it.

mod account;
mod events;
mod inbound;
mod items;
mod kept;
pub mod outbound;
pub mod wire;

#[cfg(test)]
mod tests;

pub use account::{AskedQuestion, ExecutionView, WaitEnd};
pub use events::kind;
pub use inbound::{
    AnswerBody, BadBody, ExecuteBody, ObjectMembers, answers, execute, member, members, resume,
    rider,
};
pub use items::is_block;
pub use outbound::QuestionReader;

/// Longest text an envelope carries; `structured` has more, and the journal all.
pub const TEXT_CHARS_MAX: usize = 30_000;

/// Largest value that `structured` holds in one piece: a larger one is streamed, or left out where the client asks for that.
pub const RESULT_BYTES_MAX: usize = 1 << 20;

/// Most log lines and emitted items that `structured` carries, each.
pub const OUTPUTS_MAX: usize = 1_000;

/// Most bytes of them that it carries, each, give or take one.
pub const OUTPUT_BYTES_MAX: usize = 256 << 10;
