//! Leases of executions. Held in memory: one process owns the directory, so a lease that outlived its process would
//! only obstruct the next one.

use lifecycle::{ExecutionId, Timestamp};
use std::collections::HashMap;

/// Expired leases are swept when there are this many, then when their number has doubled.
const SWEPT_MIN: usize = 1_024;

/// The leases, and the latest time that was passed in.
#[derive(Debug, Default)]
pub(super) struct LeaseTable {
    held: HashMap<ExecutionId, StoredLease>,
    latest: Option<Timestamp>,
    sweep_at: usize,
}

#[derive(Debug)]
struct StoredLease {
    holder: String,
    until: Timestamp,
}

impl LeaseTable {
    /// Takes or renews a lease; false if another holder's has not expired at `now`.
    pub(super) fn take(
        &mut self,
        execution: ExecutionId,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> bool {
        self.latest = self.latest.max(Some(now));
        if let Some(held) = self.held.get(&execution)
            && held.holder != holder
            && held.until > now
        {
            return false;
        }
        if self.held.len() >= self.sweep_at.max(SWEPT_MIN) {
            self.held.retain(|_, lease| lease.until > now);
            self.sweep_at = self.held.len() * 2;
        }
        self.held.insert(execution, StoredLease { holder: holder.to_owned(), until });
        true
    }

    /// Releases the lease of `holder`; another's is not changed.
    pub(super) fn release(&mut self, execution: ExecutionId, holder: &str) {
        if self.held.get(&execution).is_some_and(|lease| lease.holder == holder) {
            self.held.remove(&execution);
        }
    }

    /// Whether there is a lease that has not expired at the latest time that was passed in.
    pub(super) fn is_held(&self, execution: ExecutionId) -> bool {
        self.held.get(&execution).is_some_and(|lease| Some(lease.until) > self.latest)
    }

    /// Drops any lease on an execution that no longer exists.
    pub(super) fn drop_lease(&mut self, execution: ExecutionId) {
        self.held.remove(&execution);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const ID: ExecutionId = ExecutionId::from_uuid(Uuid::from_u128(1));

    #[test]
    fn a_lease_keeps_others_out_until_it_runs_out() {
        let mut leases = LeaseTable::default();
        assert!(leases.take(ID, "a", Timestamp(0), Timestamp(10)));
        assert!(!leases.take(ID, "b", Timestamp(9), Timestamp(20)));
        assert!(leases.take(ID, "a", Timestamp(9), Timestamp(15)));
        assert!(leases.is_held(ID));
        assert!(leases.take(ID, "b", Timestamp(15), Timestamp(20)));
        assert!(!leases.take(ID, "a", Timestamp(16), Timestamp(30)));
    }

    #[test]
    fn only_the_holder_gives_a_lease_back() {
        let mut leases = LeaseTable::default();
        leases.take(ID, "a", Timestamp(0), Timestamp(10));
        leases.release(ID, "b");
        assert!(leases.is_held(ID));
        leases.release(ID, "a");
        assert!(!leases.is_held(ID));
    }

    #[test]
    fn leases_that_ran_out_are_swept() {
        let mut leases = LeaseTable::default();
        for n in 0..10_000_i64 {
            let id = ExecutionId::from_uuid(Uuid::from_u128(n.unsigned_abs().into()));
            leases.take(id, "a", Timestamp(n), Timestamp(n + 1));
        }
        assert!(leases.held.len() <= SWEPT_MIN);
    }
}
