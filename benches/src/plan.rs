//! The amount of work of a measurement.

use std::time::Duration;

/// The number and the longest duration of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Uncounted operations of each contender before the first round.
    pub warm_up_ops: usize,
    /// Rounds; in each, subject and floor take turns.
    pub n_rounds: usize,
    /// Operations of each contender in a round.
    pub round_ops: usize,
    /// A round of a slow contender ends after this time, but not before its first operation.
    pub round_time_max: Duration,
}

impl Default for Plan {
    /// Fits operations between a microsecond and a few milliseconds; at most half a minute.
    fn default() -> Self {
        Self {
            warm_up_ops: 200,
            n_rounds: 21,
            round_ops: 500,
            round_time_max: Duration::from_millis(700),
        }
    }
}
