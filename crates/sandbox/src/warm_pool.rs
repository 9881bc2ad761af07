//! The pool of runners that wait for a lease, and the state of their zygote.

use crate::fork_request::Runner;
use crate::jail::JailTier;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// More runners are ordered when at most one in this many of the desired runners waits.
const FEW: usize = 4;

/// Shared by leases, the keepers of zygotes, and the supervisor. Locked only briefly.
#[derive(Debug)]
pub(crate) struct WarmPool {
    state: Mutex<WarmPoolState>,
    /// Notified whenever the supervisor may have something to do.
    bell: Notify,
}

#[derive(Debug)]
struct WarmPoolState {
    generation: u64,
    standing: ZygoteStatus,
    tier: JailTier,
    zygote_pid: Option<u32>,
    ready: VecDeque<Runner>,
    /// Ordered and not yet available.
    coming: usize,
    /// The desired number of waiting runners.
    warm: usize,
}

/// The state of the present zygote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZygoteStatus {
    Good,
    /// A runner crashed: its guest may know the address layout that all its siblings share.
    Condemned,
    /// It ended unexpectedly.
    Gone,
}

impl WarmPool {
    /// A pool in which `warm` runners shall wait.
    pub(crate) fn new(warm: usize) -> Self {
        let state = WarmPoolState {
            generation: 0,
            standing: ZygoteStatus::Gone,
            tier: JailTier::default(),
            zygote_pid: None,
            ready: VecDeque::new(),
            coming: 0,
            warm,
        };
        Self { state: Mutex::new(state), bell: Notify::new() }
    }

    /// Takes a waiting runner, if there is one.
    pub(crate) fn take(&self) -> Option<Runner> {
        let mut state = self.lock();
        while let Some(runner) = state.ready.pop_front() {
            // One that ended while it waited is useless.
            if !runner.is_over() {
                if state.wanted() > 0 {
                    self.bell.notify_one();
                }
                return Some(runner);
            }
        }
        None
    }

    /// An ordered runner has arrived, or could not be forked.
    pub(crate) fn arrive(&self, generation: u64, runner: Option<Runner>) {
        let mut state = self.lock();
        if state.generation == generation && state.standing == ZygoteStatus::Good {
            state.coming = state.coming.saturating_sub(1);
            state.ready.extend(runner);
        }
    }

    /// No more runners from this zygote.
    pub(crate) fn condemn(&self, generation: u64) {
        self.demote(generation, ZygoteStatus::Condemned);
    }

    /// This zygote has ended.
    pub(crate) fn gone(&self, generation: u64) {
        self.demote(generation, ZygoteStatus::Gone);
    }

    fn demote(&self, generation: u64, standing: ZygoteStatus) {
        let mut state = self.lock();
        if state.generation == generation && state.standing == ZygoteStatus::Good {
            state.standing = standing;
            let useless = state.empty();
            drop(state);
            drop(useless);
            self.bell.notify_one();
        }
    }

    /// A new zygote takes over. Returns its generation.
    pub(crate) fn renew(&self, tier: JailTier, zygote_pid: Option<u32>) -> u64 {
        let mut state = self.lock();
        state.generation += 1;
        state.standing = ZygoteStatus::Good;
        state.tier = tier;
        state.zygote_pid = zygote_pid;
        let (generation, old) = (state.generation, state.empty());
        drop(state);
        drop(old);
        generation
    }

    /// Returns how many more runners to order, and counts them as ordered from now on.
    pub(crate) fn order(&self) -> usize {
        let mut state = self.lock();
        state.ready.retain(|runner| !runner.is_over());
        let wanted = state.wanted();
        state.coming += wanted;
        wanted
    }

    /// Drops all waiting runners.
    pub(crate) fn clear(&self) {
        let useless = self.lock().empty();
        drop(useless);
    }

    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }

    pub(crate) fn standing(&self) -> ZygoteStatus {
        self.lock().standing
    }

    /// Whether a runner's zygote is not condemned.
    pub(crate) fn trusts(&self, runner: &Runner) -> bool {
        let state = self.lock();
        state.standing == ZygoteStatus::Good && state.generation == runner.generation
    }

    pub(crate) fn tier(&self) -> JailTier {
        self.lock().tier
    }

    pub(crate) fn zygote_pid(&self) -> Option<u32> {
        self.lock().zygote_pid
    }

    pub(crate) fn ready(&self) -> usize {
        self.lock().ready.len()
    }

    fn lock(&self) -> MutexGuard<'_, WarmPoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WarmPoolState {
    /// How many more to order: none while enough are left, then all that are missing. Forking several in a
    /// row costs less than forking them one by one, and disturbs fewer running programs.
    fn wanted(&self) -> usize {
        let there = self.ready.len() + self.coming;
        if there <= self.warm.div_ceil(FEW) { self.warm.saturating_sub(there) } else { 0 }
    }

    fn empty(&mut self) -> VecDeque<Runner> {
        self.coming = 0;
        std::mem::take(&mut self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many are ordered if this many are available, with `warm` desired.
    fn ordered(warm: usize, there: usize) -> usize {
        let nursery = WarmPool::new(warm);
        nursery.lock().coming = there;
        nursery.order()
    }

    #[test]
    fn runners_are_ordered_several_at_a_time_and_before_none_is_left() {
        assert_eq!([0, 1, 2, 3, 4].map(|there| ordered(4, there)), [4, 3, 0, 0, 0]);
        assert_eq!([0, 1, 2].map(|there| ordered(2, there)), [2, 1, 0]);
        assert_eq!([0, 1].map(|there| ordered(1, there)), [1, 0]);
        assert_eq!(ordered(0, 0), 0);
    }

    #[test]
    fn what_is_ordered_is_not_ordered_again() {
        let nursery = WarmPool::new(4);
        assert_eq!((nursery.order(), nursery.order()), (4, 0));
    }
}
