//! The options of a host, and their defaults.

use protocols::execbox::wire;
use std::time::Duration;

/// Limits of a run. What is `None` here is taken from the executor, then from execbox's defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Time for the guest, tools included: 5 s.
    pub timeout: Option<Duration>,
    /// Memory for the guest: 64 MiB.
    pub memory_limit_bytes: Option<u64>,
    /// Retained log lines: 100.
    pub max_log_lines: Option<u64>,
    /// Retained log characters: 64 000.
    pub max_log_chars: Option<u64>,
    /// Time between `cancel` and the end of the runner: 25 ms.
    pub cancel_grace: Option<Duration>,
}

impl Options {
    /// These options, with those of `others` where nothing is set here.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            timeout: self.timeout.or(others.timeout),
            memory_limit_bytes: self.memory_limit_bytes.or(others.memory_limit_bytes),
            max_log_lines: self.max_log_lines.or(others.max_log_lines),
            max_log_chars: self.max_log_chars.or(others.max_log_chars),
            cancel_grace: self.cancel_grace.or(others.cancel_grace),
        }
    }

    pub(super) fn timeout(self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }

    pub(super) fn cancel_grace(self) -> Duration {
        self.cancel_grace.unwrap_or(CANCEL_GRACE)
    }

    /// All four, as runners require.
    pub(super) fn wire(self) -> wire::Options {
        wire::Options {
            timeout_ms: u64::try_from(self.timeout().as_millis()).unwrap_or(u64::MAX),
            memory_limit_bytes: self.memory_limit_bytes.unwrap_or(MEMORY_LIMIT_BYTES),
            max_log_lines: self.max_log_lines.unwrap_or(MAX_LOG_LINES),
            max_log_chars: self.max_log_chars.unwrap_or(MAX_LOG_CHARS),
        }
    }
}

const TIMEOUT: Duration = Duration::from_secs(5);
const MEMORY_LIMIT_BYTES: u64 = 64 << 20;
const MAX_LOG_LINES: u64 = 100;
const MAX_LOG_CHARS: u64 = 64_000;
const CANCEL_GRACE: Duration = Duration::from_millis(25);
