//! What can go wrong on our side, with what to do about it.

use crate::jail::JailLayer;
use std::io;

/// Why no sandbox could be started.
#[derive(Debug, thiserror::Error)]
pub enum SandboxStartError {
    /// The program whose hidden verb is the zygote cannot be opened.
    #[error("open the program that holds the runner")]
    Program(#[source] io::Error),
    /// The zygote cannot be started.
    #[error("start the zygote; /proc must be mounted and one more process allowed")]
    Spawn(#[source] io::Error),
    /// A wall without which nothing runs.
    #[error("raise a required layer of the jail, {layer}; {}", .layer.advice())]
    Missing {
        /// Which one.
        layer: JailLayer,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The zygote ended or kept silent.
    #[error(
        "hear from the zygote ({status}); the program must call sandbox::enter_if_asked() first in main. \
         It said: {last_words}"
    )]
    Silent {
        /// How it ended.
        status: String,
        /// What it printed before.
        last_words: String,
    },
}

/// Why there is no lease.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// It would never fit, however long it waited.
    #[error("lease {asked_bytes} bytes of memory: the budget for all runners is {budget_bytes}")]
    TooLarge {
        /// What the demand was.
        asked_bytes: u64,
        /// What there is in all.
        budget_bytes: u64,
    },
    /// No runner could be forked, and no new zygote started.
    #[error("fork a runner: {reason}")]
    Unavailable {
        /// The last thing that failed.
        reason: String,
    },
    /// The sandbox is shutting down.
    #[error("lease a runner: the sandbox is shut down")]
    Closed,
}

/// The runner takes no more input. [`crate::Lease::receive`] says why, after its last lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the runner is gone")]
pub struct RunnerGone;
