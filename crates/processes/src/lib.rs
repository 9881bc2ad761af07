//! Child processes that a caller controls: over pipes or a terminal, with numbered output. When a process ends, all its
//! descendants end with it. This crate knows no JavaScript and no protocol.
//!
//! ```text
//! Processes ==subreapers' sockets==> fork server --fork--> subreaper --vfork--> the program and its descendants
//!     |                                                       |
//!  Process ======== an order, requests, reports ==============+
//! ```
//!
//! The fork server is this same binary, started under a hidden verb (`helper.rs` lists all of them). It is small and has
//! one thread, so forking it is cheap and safe. Each program has a subreaper to itself: a descendant that leaves the
//! program's process group and session still becomes a child of the subreaper when it is orphaned, and ends with the
//! program. When the connection of a subreaper closes for any reason, the subreaper kills all its descendants. When all
//! have ended, it waits for the next program.
//!
//! The fork server takes a mount namespace in which [`ProtectedPaths`] are covered, and every program inherits it. A
//! program in a [`Cage`] also has namespaces of its own; their first process reaps orphans.
//!
//! A program that another crate starts by itself, such as an MCP server, runs below a [`reaper`], which ends it and its
//! descendants when the server dies.

mod answerer;
mod cage;
mod error;
mod fork_server;
pub mod helper;
mod order;
mod output;
mod process;
mod processes;
mod protected;
mod pump;
pub mod reaper;
mod screen;
mod spawn;
mod spec;
mod streams;
mod subreaper_link;
mod subreaper_pool;

pub use answerer::Answerer;
pub use cage::{Access, Cage, CageLimits, Excess, Network, Rule, Wall};
pub use error::{Refused, SpawnError};
pub use helper::enter_if_asked;
pub use order::Signal;
pub use output::{
    CHUNK_BYTES_MAX, Changes, Chunk, Event, Follower, Output, Page, RETAINED_BYTES_MAX, Seq, Stream,
};
pub use process::{End, InputRoom, Process};
pub use processes::{Config, Processes, Program};
pub use protected::{ProtectedPaths, ProtectionScope};
pub use screen::{Color, Cursor, Look, Modes, Row, Run, SCROLLBACK_ROWS_MAX, Screen, Snapshot};
pub use spec::{BadSpec, Input, Size, Spec, Streams};
pub use subreaper_pool::SPARES_MAX;
