//! Errors of this crate.

use crate::{BadSpec, WallError};
use std::io;

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The specification is invalid.
    #[error(transparent)]
    Bad(#[from] BadSpec),
    /// The system refused: no such program, no such folder, or no permission.
    #[error("{0}")]
    System(io::Error),
    /// A layer of its cage could not be set up on this machine.
    #[error("this machine cannot enforce the sandbox: it does not allow {}", .0.name())]
    Uncaged(WallError),
    /// An error on our side: no descriptors left, or the fork server has ended and could not be restarted.
    #[error("prepare a process: {0}")]
    Ours(#[source] io::Error),
    /// The server is shutting down.
    #[error("no process is started any more")]
    Stopping,
}

/// Why bytes could not be written to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefusal {
    /// It has no input, or its input was closed.
    #[error("its input is closed")]
    Closed,
    /// Too much input is already queued.
    #[error("too much is waiting to be read by it")]
    Full,
    /// It has no terminal.
    #[error("it has no terminal")]
    NoTerminal,
}
