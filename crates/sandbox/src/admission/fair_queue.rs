//! Decides which demand for memory is admitted next: one queue per caller, weighted max-min fairness between callers.
//! Pure: no clock, no lock, no I/O. `budget.rs` adds the waiting.
//!
//! The caller that holds the least for its weight is served first, in the order of its own demands. A demand that does
//! not fit may be overtaken by other callers' demands that do, but only [`OVERTAKEN_MAX`] times: after that, memory that
//! becomes free is saved for it. So no memory stays unused for long, and no demand waits for ever.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZero;
use std::sync::Arc;

/// The caller that a runner is charged to. All demands without one share a queue.
pub(crate) type CallerKey = Option<Arc<str>>;

/// How often a demand that does not fit is overtaken before memory is saved for it.
pub(crate) const OVERTAKEN_MAX: u32 = 64;

/// Identifies a waiting demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DemandTicket(u64);

/// A demand that may start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AdmissionGrant {
    pub(crate) ticket: DemandTicket,
    pub(crate) caller: CallerKey,
    pub(crate) units: u64,
}

/// Demands of all callers for a fixed number of units.
#[derive(Debug, Clone)]
pub(crate) struct FairQueue {
    capacity: u64,
    free: u64,
    callers: BTreeMap<CallerKey, CallerQueue>,
    /// A counter for demands and grants: later ones have larger numbers.
    counter: u64,
}

/// The memory that one caller holds, and its waiting demands. Removed once there is neither.
#[derive(Debug, Clone)]
struct CallerQueue {
    weight: NonZero<u32>,
    held: u64,
    /// The part of `held` whose runners are being killed.
    ending: u64,
    waiting: VecDeque<WaitingDemand>,
    /// When a demand of it was last granted, or when it first appeared.
    served: u64,
}

#[derive(Debug, Clone)]
struct WaitingDemand {
    ticket: DemandTicket,
    units: u64,
    n_overtaken: u32,
}

impl FairQueue {
    pub(crate) const fn new(capacity: u64) -> Self {
        Self { capacity, free: capacity, callers: BTreeMap::new(), counter: 0 }
    }

    /// Appends a demand to its caller's queue. It must not exceed the capacity.
    pub(crate) fn enqueue(
        &mut self,
        caller: &CallerKey,
        weight: NonZero<u32>,
        units: u64,
    ) -> DemandTicket {
        debug_assert!(units <= self.capacity, "admission refuses larger demands");
        self.counter += 1;
        let ticket = DemandTicket(self.counter);
        let served = self.counter;
        let queue = self.callers.entry(caller.clone()).or_insert_with(|| CallerQueue {
            weight,
            held: 0,
            ending: 0,
            waiting: VecDeque::new(),
            served,
        });
        queue.waiting.push_back(WaitingDemand { ticket, units, n_overtaken: 0 });
        ticket
    }

    /// Removes a demand whose receiver no longer waits.
    pub(crate) fn withdraw(&mut self, caller: &CallerKey, ticket: DemandTicket) {
        if let Some(queue) = self.callers.get_mut(caller) {
            queue.waiting.retain(|demanded| demanded.ticket != ticket);
            self.remove_if_idle(caller);
        }
    }

    /// Returns the units of a grant; `was_ending` is whether [`Self::mark_ending`] was called for them.
    pub(crate) fn release(&mut self, caller: &CallerKey, units: u64, was_ending: bool) {
        if let Some(queue) = self.callers.get_mut(caller) {
            queue.held = queue.held.saturating_sub(units);
            if was_ending {
                queue.ending = queue.ending.saturating_sub(units);
            }
            self.free += units;
            self.remove_if_idle(caller);
        }
    }

    /// Records that the runner that holds these units is being killed: they will be free soon.
    pub(crate) fn mark_ending(&mut self, caller: &CallerKey, units: u64) {
        if let Some(queue) = self.callers.get_mut(caller) {
            queue.ending += units;
        }
    }

    /// Counts units that are about to be free as free. Plans use this to look ahead.
    pub(crate) fn complete_endings(&mut self) {
        for queue in self.callers.values_mut() {
            let ending = std::mem::take(&mut queue.ending);
            queue.held -= ending;
            self.free += ending;
        }
    }

    /// Admits the next demand, if one may start now.
    pub(crate) fn next_grant(&mut self) -> Option<AdmissionGrant> {
        let order = self.order();
        let n_skipped = self.n_before_grant(&order)?;
        for caller in &order[..n_skipped] {
            if let Some(skipped) = self.head_mut(caller) {
                skipped.n_overtaken += 1;
            }
        }
        let caller = order[n_skipped].clone();
        self.counter += 1;
        let queue = self.callers.get_mut(&caller)?;
        let demanded = queue.waiting.pop_front()?;
        queue.held += demanded.units;
        queue.served = self.counter;
        self.free -= demanded.units;
        Some(AdmissionGrant { ticket: demanded.ticket, caller, units: demanded.units })
    }

    /// Callers that wait, the most entitled first.
    pub(crate) fn order(&self) -> Vec<CallerKey> {
        let mut waiting: Vec<_> =
            self.callers.iter().filter(|(_, queue)| !queue.waiting.is_empty()).collect();
        waiting.sort_by(|(_, one), (_, other)| one.entitlement(other));
        waiting.into_iter().map(|(caller, _)| caller.clone()).collect()
    }

    /// How many heads in `order` are skipped before the one that is granted. `None` if none may start.
    fn n_before_grant(&self, order: &[CallerKey]) -> Option<usize> {
        for (n, caller) in order.iter().enumerate() {
            let head = self.head(caller)?;
            if head.units <= self.free {
                return Some(n);
            }
            if head.n_overtaken >= OVERTAKEN_MAX {
                return None;
            }
        }
        None
    }

    /// The units that a caller's first waiting demand needs, and whether memory is saved for it.
    pub(crate) fn head_of(&self, caller: &CallerKey) -> Option<(u64, bool)> {
        let head = self.head(caller)?;
        Some((head.units, head.n_overtaken >= OVERTAKEN_MAX))
    }

    /// The fair share of each caller that holds or waits for memory: what it wants, if that is little;
    /// otherwise its part, by weight, of what the callers with small demands leave.
    pub(crate) fn shares(&self) -> BTreeMap<CallerKey, u64> {
        let mut shares = BTreeMap::new();
        let mut open: Vec<_> = self.callers.iter().collect();
        let mut left = self.capacity;
        loop {
            let weights: u64 = open.iter().map(|(_, queue)| u64::from(queue.weight.get())).sum();
            let part = |queue: &CallerQueue| {
                (left * u64::from(queue.weight.get())).div_ceil(weights.max(1))
            };
            let (small, large): (Vec<_>, Vec<_>) =
                open.into_iter().partition(|(_, queue)| queue.wanted() <= part(queue));
            if small.is_empty() || large.is_empty() {
                for (caller, queue) in small.into_iter().chain(large) {
                    shares.insert(caller.clone(), queue.wanted().min(part(queue)));
                }
                return shares;
            }
            let mut given = 0;
            for (caller, queue) in small {
                shares.insert(caller.clone(), queue.wanted());
                given += queue.wanted();
            }
            left = left.saturating_sub(given);
            open = large;
        }
    }

    pub(crate) const fn free(&self) -> u64 {
        self.free
    }

    pub(crate) fn held(&self, caller: &CallerKey) -> u64 {
        self.callers.get(caller).map_or(0, |queue| queue.held)
    }

    /// A copy in which no caller has more than `n_max` waiting demands. For plans that can serve no more.
    pub(crate) fn shortened(&self, n_max: usize) -> Self {
        let mut copy = Self { callers: BTreeMap::new(), ..*self };
        for (caller, queue) in &self.callers {
            let waiting = queue.waiting.iter().take(n_max).cloned().collect();
            copy.callers.insert(caller.clone(), CallerQueue { waiting, ..*queue });
        }
        copy
    }

    fn head(&self, caller: &CallerKey) -> Option<&WaitingDemand> {
        self.callers.get(caller)?.waiting.front()
    }

    fn head_mut(&mut self, caller: &CallerKey) -> Option<&mut WaitingDemand> {
        self.callers.get_mut(caller)?.waiting.front_mut()
    }

    fn remove_if_idle(&mut self, caller: &CallerKey) {
        if self.callers.get(caller).is_some_and(|queue| queue.wanted() == 0) {
            self.callers.remove(caller);
        }
    }
}

impl CallerQueue {
    /// Compares by the units held per unit of weight, then by which was served longer ago.
    fn entitlement(&self, other: &Self) -> Ordering {
        let weighted = |one: &Self, other: &Self| {
            u128::from(one.held - one.ending) * u128::from(other.weight.get())
        };
        weighted(self, other)
            .cmp(&weighted(other, self))
            .then_with(|| self.served.cmp(&other.served))
    }

    fn wanted(&self) -> u64 {
        self.held + self.waiting.iter().map(|demanded| demanded.units).sum::<u64>()
    }
}
