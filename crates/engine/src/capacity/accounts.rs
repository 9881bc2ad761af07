//! Counts what freeing capacity costs, by the caller that was above its share.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of callers with separate accounts. The others share one, so that the metrics stay short.
const ACCOUNTS_MAX: usize = 1_000;

/// The shared account of all other callers.
const OTHERS: &str = "(others)";

/// What was done to free capacity since the server started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapacityUse {
    /// Runners taken from programs that only waited.
    pub released: u64,
    /// Replays that brought such programs back.
    pub replays: u64,
    /// Replays of such programs that failed. Each indicates a bug.
    pub replays_failed: u64,
    /// Processor time of the replays, by the caller whose program was released.
    pub replay_cpu: BTreeMap<String, Duration>,
}

#[derive(Debug, Default)]
pub(super) struct CallerAccounts(Mutex<CapacityUse>);

impl CallerAccounts {
    pub(super) fn count_release(&self) {
        self.change(|used| used.released += 1);
    }

    pub(super) fn count_failure(&self) {
        self.change(|used| used.replays_failed += 1);
    }

    pub(super) fn count_replay(&self, caller: &str, cpu: Duration) {
        self.change(|used| {
            used.replays += 1;
            let has_room = used.replay_cpu.len() < ACCOUNTS_MAX;
            let account =
                if has_room || used.replay_cpu.contains_key(caller) { caller } else { OTHERS };
            *used.replay_cpu.entry(account.to_owned()).or_default() += cpu;
        });
    }

    pub(super) fn snapshot(&self) -> CapacityUse {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut CapacityUse)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replays_are_charged_to_callers_and_the_number_of_accounts_is_bounded() {
        let accounts = CallerAccounts::default();
        for n in 0..ACCOUNTS_MAX + 5 {
            accounts.count_replay(&n.to_string(), Duration::from_millis(3));
        }
        accounts.count_replay("7", Duration::from_millis(4));
        let used = accounts.snapshot();
        assert_eq!(used.replay_cpu["7"], Duration::from_millis(7));
        assert_eq!(used.replay_cpu[OTHERS], Duration::from_millis(15));
        assert_eq!(
            (used.replays, used.replay_cpu.len()),
            (ACCOUNTS_MAX as u64 + 6, ACCOUNTS_MAX + 1)
        );
    }
}
