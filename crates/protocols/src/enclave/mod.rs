//! enclave: a numbered stream of events, one JSON object per line. Its "session" is our execution.
//!
//! An [`EventRenderer`] converts a journal to enclave's events: every reader, on every server, receives the
//! same events under the same numbers. An [`EventFilter`] belongs to one reader; [`sealing`] encrypts end
//! to end.

mod codes;
mod event;
mod filter;
mod ids;
pub mod inbound;
pub mod outbound;
pub mod sealing;
mod session_record;
#[cfg(test)]
mod tests;
pub mod wire;

pub use codes::{call_code, call_failure, call_message};
pub use event::{EnclaveEvent, EnclaveEventKind};
pub use filter::{BadFilter, EventFilter};
pub use ids::{
    BadSessionId, EnclaveSessionId, call_name, execution_of, is_session, iso, parse_call_name,
};
pub use outbound::EventRenderer;
pub use session_record::{EnclaveSessionRecord, SealingRecord};
