//! executor: code mode over HTTP. What its clients call an execution id is our question's id; the
//! execution itself is `run_…`, which they never need to know.
//!
//! An [`Account`] hears a journal and knows what a client that waits must be told; [`outbound`] says it.

mod account;
mod events;
mod inbound;
pub mod outbound;
pub mod wire;

#[cfg(test)]
mod tests;

pub use account::{Account, Asked, Told};
pub use inbound::{BadBody, Execute, Members, execute, member, members, remember, resume};

/// Longest text an envelope carries; `structured` has the whole.
pub const TEXT_CHARS_MAX: usize = 30_000;
