//! Why something could not be done.

use crate::{BadSpec, WallError};
use std::io;

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The description is wrong.
    #[error(transparent)]
    Bad(#[from] BadSpec),
    /// The system said no: no such program, no such folder, not allowed.
    #[error("{0}")]
    System(io::Error),
    /// A wall of its cage could not be raised on this machine.
    #[error("this machine cannot enforce the sandbox: it does not allow {}", .0.name())]
    Uncaged(WallError),
    /// Our side broke: no descriptors left, or the fork server is gone and does not come back.
    #[error("prepare a process: {0}")]
    Ours(#[source] io::Error),
    /// Everything is being shut down.
    #[error("no process is started any more")]
    Stopping,
}

/// Why bytes did not get to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefusal {
    /// It has no input, or its input was closed.
    #[error("its input is closed")]
    Closed,
    /// More than anybody waits for is waiting already.
    #[error("too much is waiting to be read by it")]
    Full,
    /// It has no terminal.
    #[error("it has no terminal")]
    NoTerminal,
}
