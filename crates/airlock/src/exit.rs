//! Exit codes. Scripts depend on them: a number never changes its meaning.

use lifecycle::FailureCode;
use std::process::ExitCode;
use store::StoreError;
use store::sqlite::OpenError;

/// The outcome of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerbExit {
    /// Success.
    Good,
    /// The program failed, or the doctor found a problem.
    Failed,
    /// The command line is invalid, or names a file that cannot be read.
    Usage,
    /// A limit was reached: time, memory, calls or bytes.
    Limit,
    /// The program failed after a call was declined.
    Declined,
    /// The data directory is damaged, or holds less than was acknowledged.
    Damaged,
    /// It waits for an answer that cannot be given here.
    Paused,
    /// An internal error of Airlock.
    Fault,
    /// Ctrl-C.
    Interrupted,
    /// The exit code of the command that was run.
    Code(u8),
}

impl VerbExit {
    /// The exit for a program's failure, after so many of its calls were declined.
    pub(crate) const fn of_failure(code: FailureCode, n_declined: u32) -> Self {
        match code {
            FailureCode::Timeout | FailureCode::MemoryLimit | FailureCode::LimitExceeded => {
                Self::Limit
            }
            FailureCode::Internal => Self::Fault,
            FailureCode::Declined | FailureCode::QuestionCancelled => Self::Declined,
            FailureCode::Runtime
            | FailureCode::Serialization
            | FailureCode::Validation
            | FailureCode::Tool
            | FailureCode::ToolNotFound
            | FailureCode::SourceUnavailable
            | FailureCode::Refused
            | FailureCode::InDoubt
            | FailureCode::Stuck => match n_declined {
                0 => Self::Failed,
                1.. => Self::Declined,
            },
        }
    }
}

/// A mistake in the command line, the environment or a configuration file: exit code 2. The text contains advice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

impl VerbExit {
    /// The exit code of an error: 2 for a [`UsageError`], 5 for a damaged store, otherwise `other`.
    pub(crate) fn of_error(error: &anyhow::Error, other: Self) -> Self {
        let is_damaged = |cause: &(dyn std::error::Error + 'static)| {
            matches!(
                cause.downcast_ref(),
                Some(OpenError::Short { .. } | OpenError::Store(StoreError::Damaged(_)))
            )
        };
        if error.chain().any(|cause| cause.is::<UsageError>()) {
            Self::Usage
        } else if error.chain().any(is_damaged) {
            Self::Damaged
        } else {
            other
        }
    }
}

/// The exit codes of `airlock run`, for `--help`.
pub(crate) const RUN_HELP: &str = "\
Exit codes:
  0    the program ended; its value, if any, is on stdout
  1    the program failed
  2    the command line made no sense, or the file could not be read
  3    a limit was reached: time, memory, calls or bytes
  4    the program failed after a call was declined
  6    on a server: it waits for an answer; what it asks is on stdout
  70   Airlock itself broke
  130  interrupted with Ctrl-C";

impl From<VerbExit> for ExitCode {
    fn from(exit: VerbExit) -> Self {
        Self::from(match exit {
            VerbExit::Good => 0,
            VerbExit::Failed => 1,
            VerbExit::Usage => 2,
            VerbExit::Limit => 3,
            VerbExit::Declined => 4,
            VerbExit::Damaged => 5,
            VerbExit::Paused => 6,
            VerbExit::Fault => 70,
            VerbExit::Interrupted => 130,
            VerbExit::Code(code) => code,
        })
    }
}
