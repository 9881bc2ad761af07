//! The one queue before the runners: what they may use together stays within the budget.

use crate::error::LeaseError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory is counted in these.
const UNIT_BYTES: u64 = 1 << 20;

/// First come, first served: a large demand at the head is not overtaken by small ones.
#[derive(Debug)]
pub(crate) struct Admission {
    units: Arc<Semaphore>,
    budget_bytes: u64,
    ledger: Arc<Ledger>,
}

/// What is admitted and who waits.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    runners: AtomicUsize,
    bytes: AtomicU64,
    waiting: AtomicUsize,
}

/// A share of the budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    bytes: u64,
    ledger: Arc<Ledger>,
    _units: OwnedSemaphorePermit,
}

impl Admission {
    pub(crate) fn new(budget_bytes: u64) -> Self {
        let budget_bytes = budget_bytes.min(u64::from(u32::MAX) * UNIT_BYTES);
        let units = (budget_bytes / UNIT_BYTES) as usize;
        Self { units: Arc::new(Semaphore::new(units)), budget_bytes, ledger: Arc::default() }
    }

    /// A share at once, if nobody is before us and it fits.
    pub(crate) fn try_admit(&self, bytes: u64) -> Result<Option<Admitted>, LeaseError> {
        let units = self.units_of(bytes)?;
        let share = Arc::clone(&self.units).try_acquire_many_owned(units);
        Ok(share.ok().map(|units| self.enter(bytes, units)))
    }

    /// A share as soon as it is our turn and it fits. Dropping the future leaves the queue.
    pub(crate) async fn admit(&self, bytes: u64) -> Result<Admitted, LeaseError> {
        let units = self.units_of(bytes)?;
        let place = Place::take(&self.ledger);
        let share = Arc::clone(&self.units).acquire_many_owned(units).await;
        drop(place);
        Ok(self.enter(bytes, share.map_err(|_| LeaseError::Closed)?))
    }

    /// Turns everybody away, also those who wait.
    pub(crate) fn close(&self) {
        self.units.close();
    }

    pub(crate) fn runners(&self) -> usize {
        self.ledger.runners.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.ledger.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.ledger.waiting.load(Ordering::Relaxed)
    }

    fn units_of(&self, bytes: u64) -> Result<u32, LeaseError> {
        let too_large =
            LeaseError::TooLarge { asked_bytes: bytes, budget_bytes: self.budget_bytes };
        if bytes > self.budget_bytes {
            return Err(too_large);
        }
        // A budget that is no whole number of units has a last, broken one that nobody gets.
        let units = bytes.div_ceil(UNIT_BYTES).max(1);
        if units > self.budget_bytes / UNIT_BYTES { Err(too_large) } else { Ok(units as u32) }
    }

    fn enter(&self, bytes: u64, units: OwnedSemaphorePermit) -> Admitted {
        self.ledger.runners.fetch_add(1, Ordering::Relaxed);
        self.ledger.bytes.fetch_add(bytes, Ordering::Relaxed);
        Admitted { bytes, ledger: Arc::clone(&self.ledger), _units: units }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.ledger.runners.fetch_sub(1, Ordering::Relaxed);
        self.ledger.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A place in the queue, counted as long as it is held.
struct Place<'a>(&'a Ledger);

impl<'a> Place<'a> {
    fn take(ledger: &'a Ledger) -> Self {
        ledger.waiting.fetch_add(1, Ordering::Relaxed);
        Self(ledger)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_large_demand_is_not_overtaken_and_a_dropped_one_leaves_the_queue() {
        let mut nobody = Context::from_waker(Waker::noop());
        let admission = Admission::new(4 * MIB);
        let first = admission.try_admit(3 * MIB).unwrap().unwrap();
        let mut large = Box::pin(admission.admit(4 * MIB));
        let mut small = pin!(admission.admit(MIB));
        assert!(large.as_mut().poll(&mut nobody).is_pending());
        assert!(small.as_mut().poll(&mut nobody).is_pending());
        assert_eq!((admission.runners(), admission.bytes(), admission.waiting()), (1, 3 * MIB, 2));

        drop(large);
        assert!(matches!(small.as_mut().poll(&mut nobody), Poll::Ready(Ok(_))));
        drop(first);
        assert_eq!(admission.waiting(), 0);
        assert!(admission.try_admit(4 * MIB).unwrap().is_some());
        assert_eq!((admission.runners(), admission.bytes()), (0, 0));
    }

    #[test]
    fn what_can_never_fit_is_refused_at_once() {
        let admission = Admission::new(4 * MIB + 5);
        for asked_bytes in [4 * MIB + 1, 4 * MIB + 6, u64::MAX] {
            let refused = LeaseError::TooLarge { asked_bytes, budget_bytes: 4 * MIB + 5 };
            assert_eq!(admission.try_admit(asked_bytes).unwrap_err(), refused);
        }
        assert!(admission.try_admit(0).unwrap().is_some());
    }
}
