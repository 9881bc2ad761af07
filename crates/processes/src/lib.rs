//! Children that a caller steers: over pipes or a terminal, with all their output numbered and none of
//! their descendants left behind. No JavaScript, no protocol.
//!
//! ```text
//! Processes ==guardians' sockets==> warden --fork--> guardian --vfork--> the program, and whatever it starts
//!     |                                                 |
//!  Process ===== an order, wishes, reports =============+
//! ```
//!
//! The warden is this same binary under a hidden verb: small and with one thread, so that forking is cheap
//! and safe. Each program has a guardian to itself, which is its subreaper: whatever the program starts, also
//! what leaves its group and session, stays a descendant of the guardian and dies with it. When the connection
//! of a guardian closes, whatever closed it, the guardian kills all it has. When all are gone it waits for the
//! next program.
//!
//! The warden takes a mount namespace in which [`ProtectedPaths`] are covered, and every program inherits it. A program in a
//! [`Cage`] has namespaces of its own besides; its first process reaps orphans there.

mod answerer;
mod cage;
mod error;
mod guardian_link;
mod guardians;
mod order;
mod output;
mod process;
mod processes;
mod protected;
mod pump;
mod screen;
mod spawn;
mod spec;
mod streams;
mod warden;

pub use answerer::Answerer;
pub use cage::{Access, Cage, CageLimits, Excess, Network, Rule, Wall};
pub use error::{Refused, SpawnError};
pub use guardians::SPARES_MAX;
pub use order::Signal;
pub use output::{
    CHUNK_BYTES_MAX, Changes, Chunk, Event, Follower, Output, Page, RETAINED_BYTES_MAX, Seq, Stream,
};
pub use process::{End, InputRoom, Process};
pub use processes::{Config, Processes, Program};
pub use protected::{ProtectedPaths, ProtectionScope};
pub use screen::{Color, Cursor, Look, Modes, Row, Run, SCROLLBACK_ROWS_MAX, Screen, Snapshot};
pub use spec::{BadSpec, Input, Size, Spec, Streams};
pub use warden::enter_if_asked;
