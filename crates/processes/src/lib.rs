//! Children that a caller steers: over pipes or a terminal, with all their output numbered and none of
//! their descendants left behind. No JavaScript, no protocol.
//!
//! ```text
//! Processes ==descriptors==> warden --fork--> guardian --fork--> the program, and whatever it starts
//!     |                                          |
//!  Process ============ wishes, reports =========+
//! ```
//!
//! The warden is this same binary under a hidden verb: small and with one thread, so that forking is cheap
//! and safe. It forks a guardian for each program. A guardian is the subreaper of its program: whatever the
//! program starts, also what leaves its group and session, stays a descendant of the guardian and dies with
//! it. When the connection of a guardian closes, whatever closed it, the guardian kills all it has.

mod answerer;
mod cage;
mod error;
mod guardian_link;
mod order;
mod output;
mod process;
mod processes;
mod pump;
mod screen;
mod spawn;
mod spec;
mod streams;
mod warden;

pub use answerer::Answerer;
pub use cage::{Access, Cage, CageLimits, Excess, Network, Rule, Wall};
pub use error::{Refused, SpawnError};
pub use order::Signal;
pub use output::{
    CHUNK_BYTES_MAX, Changes, Chunk, Event, Output, Page, RETAINED_BYTES_MAX, Seq, Stream,
};
pub use process::{End, InputRoom, Process};
pub use processes::{Config, Processes, Program};
pub use screen::{Color, Cursor, Look, Modes, Row, Run, SCROLLBACK_ROWS_MAX, Screen, Snapshot};
pub use spec::{BadSpec, Input, Size, Spec, Streams};
pub use warden::enter_if_asked;
