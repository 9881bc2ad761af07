//! A program's timers: the runner has no clock to wait by, so its door waits for it.

use lifecycle::TimerId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// Timers that one program may have outstanding: a hostile one sets them in a loop.
const TIMERS_MAX: usize = 10_000;

/// Longest wait: longer than any program lives.
const DELAY_MAX: Duration = Duration::from_secs(2 * 24 * 3600);

/// Those that are outstanding, by the time they are due and, of those due together, in the order they were set.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeSet<(Instant, TimerId)>,
    known: BTreeMap<TimerId, Instant>,
}

impl Timers {
    /// False if there are too many.
    pub(super) fn set(&mut self, timer: TimerId, delay_ms: u64) -> bool {
        if self.known.len() >= TIMERS_MAX {
            return false;
        }
        let at = Instant::now() + Duration::from_millis(delay_ms).min(DELAY_MAX);
        self.clear(timer);
        self.known.insert(timer, at);
        self.due.insert((at, timer))
    }

    pub(super) fn clear(&mut self, timer: TimerId) {
        if let Some(at) = self.known.remove(&timer) {
            self.due.remove(&(at, timer));
        }
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes the next one that is due by `now`.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<TimerId> {
        let (_, timer) = self.due.first().copied().filter(|(at, _)| *at <= now)?;
        self.clear(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_due_in_order_and_cleared_ones_never_do() {
        let mut timers = Timers::default();
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
        let mut timers = Timers::default();
        for timer in 0..TIMERS_MAX {
            assert!(timers.set(TimerId(u32::try_from(timer).unwrap()), u64::MAX));
        }
        assert!(!timers.set(TimerId(u32::MAX), 1));
    }
}
