//! Child processes that a caller controls: over pipes or a terminal, with numbered output. When a process ends, all its
//! descendants end with it. This crate knows no JavaScript and no protocol.
//!
//! ```text
//! Processes ==subreapers' sockets==> fork server --fork--> subreaper --vfork--> the program and its descendants
//!     |                                                       |
//!  Process ======== an order, requests, reports ==============+
//! ```
//!
//! The fork server is this same binary, started under a hidden verb (`helper_process.rs` lists all of them). It is small and has
//! one thread, so forking it is cheap and safe. Each program has a subreaper to itself: a descendant that leaves the
//! program's process group and session still becomes a child of the subreaper when it is orphaned, and ends with the
//! program. When the connection of a subreaper closes for any reason, the subreaper kills all its descendants. When all
//! have ended, it waits for the next program.
//!
//! The fork server takes a mount namespace in which [`ProtectedPaths`] are covered, and every program inherits it. A
//! program in a [`ProcessCage`] also has namespaces of its own; their first process reaps orphans.
//!
//! A program that another crate starts by itself, such as an MCP server, runs below a [`reaper`], which ends it and its
//! descendants when the server dies.

mod answerer;
mod cage;
mod error;
mod fork_server;
pub mod helper_process;
mod output;
mod process;
mod processes;
mod protected;
mod pump;
pub mod reaper;
mod screen;
mod spawn;
mod spawn_order;
mod spec;
mod streams;
mod subreaper_link;
mod subreaper_pool;

pub use answerer::TerminalAnswerer;
pub use cage::{
    CageLimits, LimitExcess, NetworkAccess, PathAccess, PathRule, ProcessCage, WallError,
};
pub use error::{SpawnError, WriteRefusal};
pub use helper_process::enter_if_asked;
pub use output::{
    CHUNK_BYTES_MAX, OutputChanges, OutputChunk, OutputFollower, OutputPage, OutputSeq,
    OutputStream, ProcessEvent, ProcessOutput, RETAINED_BYTES_MAX,
};
pub use process::{EndMode, InputRoom, Process};
pub use processes::{Config, ProcessSpawner, SelfProgram};
pub use protected::{ProtectedPaths, ProtectionScope};
pub use screen::{
    CellColor, CellRun, CellStyle, CursorPosition, SCROLLBACK_ROWS_MAX, ScreenRow, ScreenSnapshot,
    TerminalModes, TerminalScreen,
};
pub use spawn_order::FamilySignal;
pub use spec::{BadSpec, PipeInput, ProcessSpec, ProcessStreams, PtySize};
pub use subreaper_pool::SPARES_MAX;
