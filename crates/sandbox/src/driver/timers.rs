//! Timers of programs and sessions that no journal records. A runner has no clock to wait by, so its driver
//! waits for it.

use lifecycle::TimerId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// Timers that one runner may have outstanding: a hostile guest sets them in a loop.
const TIMERS_MAX: usize = 10_000;

/// Longest delay, as for JavaScript's own timers.
const DELAY_MS_MAX: u64 = u32::MAX as u64;

/// Timers that are outstanding, by the time they are due and, of those due together, in the order they were set.
#[derive(Debug)]
pub(super) struct RunnerTimers {
    by_time: BTreeSet<(Instant, TimerId)>,
    due: BTreeMap<TimerId, Instant>,
}

impl RunnerTimers {
    pub(super) const fn new() -> Self {
        Self { by_time: BTreeSet::new(), due: BTreeMap::new() }
    }

    /// Returns false if there are too many; the timer is not set then.
    pub(super) fn set(&mut self, timer: TimerId, delay_ms: u64) -> bool {
        if self.due.len() >= TIMERS_MAX {
            return false;
        }
        let at = Instant::now() + Duration::from_millis(delay_ms.min(DELAY_MS_MAX));
        self.clear(timer);
        self.due.insert(timer, at);
        self.by_time.insert((at, timer))
    }

    pub(super) fn clear(&mut self, timer: TimerId) {
        if let Some(at) = self.due.remove(&timer) {
            self.by_time.remove(&(at, timer));
        }
    }

    /// When the next timer is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes the next timer that is due by `now`.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<TimerId> {
        let (_, timer) = self.by_time.first().copied().filter(|(at, _)| *at <= now)?;
        self.clear(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_due_in_order_and_cleared_ones_never_do() {
        let mut timers = RunnerTimers::new();
        assert_eq!(timers.next(), None);
        for (timer, delay_ms) in [(1, 30), (2, 10), (3, 20)] {
            assert!(timers.set(TimerId(timer), delay_ms));
        }
        timers.clear(TimerId(3));
        assert_eq!(timers.take_due(Instant::now()), None);
        let later = Instant::now() + Duration::from_secs(1);
        let order = std::iter::from_fn(|| timers.take_due(later)).collect::<Vec<_>>();
        assert_eq!(order, [TimerId(2), TimerId(1)]);
    }

    #[test]
    fn there_is_a_last_timer_and_no_delay_is_too_long() {
        let mut timers = RunnerTimers::new();
        for timer in 0..TIMERS_MAX {
            assert!(timers.set(TimerId(u32::try_from(timer).unwrap()), u64::MAX));
        }
        assert!(!timers.set(TimerId(u32::MAX), 1));
    }
}
