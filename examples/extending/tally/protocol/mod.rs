//! tally: how many executions a caller has in each phase, as lines of text.

mod inbound;
mod outbound;

pub use inbound::{BadPhase, read_phase};
pub use outbound::write_counts;
