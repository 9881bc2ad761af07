//! Errors on our side, and what to do about them.

use crate::jail::JailLayer;
use std::io;

/// Why no sandbox could be started.
#[derive(Debug, thiserror::Error)]
pub enum SandboxStartError {
    /// The program whose hidden verb starts the zygote cannot be opened.
    #[error("open the program that holds the runner")]
    Program(#[source] io::Error),
    /// The zygote cannot be started.
    #[error("start the zygote; /proc must be mounted and one more process allowed")]
    Spawn(#[source] io::Error),
    /// A layer of the jail is missing without which nothing runs.
    #[error("raise a required layer of the jail, {layer}; {}", .layer.advice())]
    Missing {
        /// The missing layer.
        layer: JailLayer,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The zygote ended or sent no report.
    #[error(
        "hear from the zygote ({status}); the program must call sandbox::enter_if_asked() first in main. \
         It said: {last_words}"
    )]
    Silent {
        /// How it ended.
        status: String,
        /// What it printed before it ended.
        last_words: String,
    },
}

/// Why a lease failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// The demand exceeds the whole budget.
    #[error("lease {asked_bytes} bytes of memory: the budget for all runners is {budget_bytes}")]
    TooLarge {
        /// The bytes that were demanded.
        asked_bytes: u64,
        /// The size of the budget.
        budget_bytes: u64,
    },
    /// No runner could be forked, and no new zygote started.
    #[error("fork a runner: {reason}")]
    Unavailable {
        /// The last error.
        reason: String,
    },
    /// The sandbox is shutting down.
    #[error("lease a runner: the sandbox is shut down")]
    Closed,
}

/// The runner accepts no more input. [`crate::Lease::receive`] returns the reason, after its last lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the runner has ended")]
pub struct RunnerGone;
