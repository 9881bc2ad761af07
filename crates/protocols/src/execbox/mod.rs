//! execbox: the protocol of the link between a host and the runner, one JSON object per line.
//!
//! Plain execbox plus what we add: the member `airlock`, and messages that occur only when `execute` carried it.
//! Payloads are passed on as text, never parsed on the way: deep nesting and lone surrogates survive.

mod decode;
mod encode;
mod manifest;
mod multiplex;
pub mod session;
mod text;
pub mod wire;

#[cfg(test)]
mod tests;

pub use decode::BadMessage;
pub use encode::encode_done_with_lines;
pub use manifest::ProviderNames;
pub use multiplex::asks_to_multiplex;
pub use wire::{FromRunner, ToRunner};

/// The version of the guest's globals that new programs run with. A journal records the version of its program.
pub const PRELUDE_VERSION: u32 = 2;

/// Longest message between a host and a runner. Guests that need payloads of this size need more than the
/// usual 64 MB.
pub const HOST_MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Longest payload that fits a message between a host and a runner.
pub const HOST_PAYLOAD_BYTES_MAX: usize = HOST_MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX;

/// Longest message between our engine and its runner. Larger than any payload that fits a guest's usual 64
/// MB beside its parsed form.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Longest program. Parsers need a multiple of it in memory, and no program written by a person is that
/// long.
pub const CODE_BYTES_MAX: usize = 1 << 20;

/// What a message needs around its payload: member names, ids, marks.
pub const ENVELOPE_BYTES_MAX: usize = 4 << 10;

/// Longest payload (arguments, a result, an emitted item, a log line as written in JSON) that fits a message.
pub const PAYLOAD_BYTES_MAX: usize = MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX;
