//! The memory budget of all runners: the waiting demands, and the grants.

use super::fair_queue::{AdmissionGrant, CallerKey, DemandTicket, FairQueue};
use super::release_plan::{QueueReleaseOffer, ReleaseOffer, plan_releases};
use crate::cpu_shares::LiveRunner;
use crate::error::LeaseError;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The unit in which memory is counted.
const UNIT_BYTES: u64 = 1 << 20;

/// Limit of waiting demands. Each belongs to an execution in memory, and after a restart all unfinished
/// executions wait.
const WAITING_MAX: usize = 1_000_000;

/// Shares the budget between callers.
#[derive(Debug)]
pub(crate) struct AdmissionQueue {
    budget_bytes: u64,
    weights: BTreeMap<String, NonZero<u32>>,
    inner: Arc<AdmissionInner>,
}

#[derive(Debug)]
struct AdmissionInner {
    state: Mutex<AdmissionState>,
    runners: AtomicUsize,
    bytes: AtomicU64,
    waiting: AtomicUsize,
    /// Notified when demands wait and a change might allow some of them to start.
    shortage: Notify,
}

#[derive(Debug)]
struct AdmissionState {
    queue: FairQueue,
    waiters: HashMap<DemandTicket, AdmissionWaiter>,
    is_closed: bool,
}

#[derive(Debug)]
struct AdmissionWaiter {
    bytes: u64,
    granted: oneshot::Sender<MemoryGrant>,
}

/// A part of the budget, returned when dropped.
#[derive(Debug)]
pub(crate) struct MemoryGrant {
    caller: CallerKey,
    units: u64,
    bytes: u64,
    /// Whether its runner is being killed.
    is_ending: AtomicBool,
    inner: Arc<AdmissionInner>,
    /// The runner that it was granted for, while its processor time is watched.
    pub(crate) live: Option<LiveRunner>,
}

impl AdmissionQueue {
    /// Callers without a weight in `weights` have the weight 1.
    pub(crate) fn new(budget_bytes: u64, weights: BTreeMap<String, NonZero<u32>>) -> Self {
        let state = AdmissionState {
            queue: FairQueue::new(budget_bytes / UNIT_BYTES),
            waiters: HashMap::new(),
            is_closed: false,
        };
        let inner = AdmissionInner {
            state: Mutex::new(state),
            runners: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            shortage: Notify::new(),
        };
        Self { budget_bytes, weights, inner: Arc::new(inner) }
    }

    /// Grants a part of the budget immediately, if it is the demand's turn and it fits.
    pub(crate) fn try_admit(
        &self,
        caller: &CallerKey,
        bytes: u64,
    ) -> Result<Option<MemoryGrant>, LeaseError> {
        let (place, mut granted) = self.enqueue(caller, bytes)?;
        let admitted = granted.try_recv().ok();
        drop(place);
        Ok(admitted)
    }

    /// Grants a part of the budget as soon as it is the demand's turn and it fits. Dropping the future
    /// leaves the queue.
    pub(crate) async fn admit_caller(
        &self,
        caller: &CallerKey,
        bytes: u64,
    ) -> Result<MemoryGrant, LeaseError> {
        let (place, granted) = self.enqueue(caller, bytes)?;
        self.inner.shortage.notify_one();
        let admitted = granted.await.map_err(|_| LeaseError::Closed);
        drop(place);
        admitted
    }

    /// Refuses all waiting and all further demands.
    pub(crate) fn close(&self) {
        let mut state = self.inner.lock();
        state.is_closed = true;
        let waiters = std::mem::take(&mut state.waiters);
        self.inner.waiting.fetch_sub(waiters.len(), Ordering::Relaxed);
        drop(state);
        drop(waiters);
    }

    /// Waits until demands wait and a change might allow some of them to start.
    pub(crate) async fn shortage(&self) {
        loop {
            self.inner.shortage.notified().await;
            if self.waiting() > 0 {
                return;
            }
        }
    }

    /// Which of these runners should be given up for the waiting demands.
    pub(crate) fn plan_releases(&self, offers: &[ReleaseOffer]) -> Vec<usize> {
        let offers: Vec<_> = offers
            .iter()
            .map(|offer| QueueReleaseOffer {
                caller: offer.caller.as_deref().map(Arc::from),
                units: units_of(offer.memory_bytes),
                replay_cpu: offer.replay_cpu,
                is_asked: offer.is_asked,
            })
            .collect();
        plan_releases(&self.inner.lock().queue, &offers)
    }

    pub(crate) fn runners(&self) -> usize {
        self.inner.runners.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.inner.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.inner.waiting.load(Ordering::Relaxed)
    }

    fn enqueue(
        &self,
        caller: &CallerKey,
        bytes: u64,
    ) -> Result<(QueuePlace, oneshot::Receiver<MemoryGrant>), LeaseError> {
        let units = units_of(bytes);
        // A budget that is no whole number of units ends with a partial unit that is never used.
        if bytes > self.budget_bytes || units > self.budget_bytes / UNIT_BYTES {
            let budget_bytes = self.budget_bytes;
            return Err(LeaseError::TooLarge { asked_bytes: bytes, budget_bytes });
        }
        let mut state = self.inner.lock();
        if state.is_closed {
            return Err(LeaseError::Closed);
        }
        if state.waiters.len() >= WAITING_MAX {
            let reason = format!("{WAITING_MAX} programs wait already");
            return Err(LeaseError::Unavailable { reason });
        }
        let weight = caller.as_deref().and_then(|caller| self.weights.get(caller).copied());
        let ticket = state.queue.enqueue(caller, weight.unwrap_or(NonZero::<u32>::MIN), units);
        let (sender, granted) = oneshot::channel();
        state.waiters.insert(ticket, AdmissionWaiter { bytes, granted: sender });
        self.inner.waiting.fetch_add(1, Ordering::Relaxed);
        let place = QueuePlace { caller: caller.clone(), ticket, inner: Arc::clone(&self.inner) };
        self.inner.grant_all(state);
        Ok((place, granted))
    }
}

impl AdmissionInner {
    /// Admits every demand that may start now.
    fn grant_all(self: &Arc<Self>, mut state: MutexGuard<'_, AdmissionState>) {
        let mut undelivered = vec![];
        while let Some(AdmissionGrant { ticket, caller, units }) = state.queue.next_grant() {
            let Some(AdmissionWaiter { bytes, granted }) = state.waiters.remove(&ticket) else {
                state.queue.release(&caller, units, false);
                continue;
            };
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.runners.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            let is_ending = AtomicBool::new(false);
            let inner = Arc::clone(self);
            let admitted = MemoryGrant { caller, units, bytes, is_ending, inner, live: None };
            undelivered.extend(granted.send(admitted).err());
        }
        drop(state);
        // The receivers of these grants no longer wait. Dropping a grant takes the lock again.
        drop(undelivered);
    }

    fn lock(&self) -> MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryGrant {
    /// Its runner is being killed: its memory will be free soon, and need not be taken from other callers.
    pub(crate) fn mark_ending(&self) {
        if !self.is_ending.swap(true, Ordering::Relaxed) {
            self.inner.lock().queue.mark_ending(&self.caller, self.units);
        }
    }
}

impl Drop for MemoryGrant {
    fn drop(&mut self) {
        self.inner.runners.fetch_sub(1, Ordering::Relaxed);
        self.inner.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        let mut state = self.inner.lock();
        state.queue.release(&self.caller, self.units, *self.is_ending.get_mut());
        self.inner.grant_all(state);
        if self.inner.waiting.load(Ordering::Relaxed) > 0 {
            self.inner.shortage.notify_one();
        }
    }
}

/// The place of a waiting demand. Dropping it withdraws the demand.
#[derive(Debug)]
struct QueuePlace {
    caller: CallerKey,
    ticket: DemandTicket,
    inner: Arc<AdmissionInner>,
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        if state.waiters.remove(&self.ticket).is_some() {
            self.inner.waiting.fetch_sub(1, Ordering::Relaxed);
            state.queue.withdraw(&self.caller, self.ticket);
            // Memory may have been saved for it.
            self.inner.grant_all(state);
        }
    }
}

fn units_of(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT_BYTES).max(1)
}
