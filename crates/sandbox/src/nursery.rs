//! The runners that wait for a lease, and how their zygote stands.

use crate::birth::Runner;
use crate::jail::Tier;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Shared by those who lease, the keepers of zygotes, and the supervisor. Locked for moments only.
#[derive(Debug)]
pub(crate) struct Nursery {
    state: Mutex<State>,
    /// Rung whenever the supervisor may have something to do.
    bell: Notify,
}

#[derive(Debug)]
struct State {
    generation: u64,
    standing: Standing,
    tier: Tier,
    zygote_pid: Option<u32>,
    ready: VecDeque<Runner>,
    /// Ordered and not yet here.
    coming: usize,
}

/// How the present zygote stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Good,
    /// A runner crashed: its guest may know the address layout that all its siblings share.
    Condemned,
    /// It ended although nobody asked it to.
    Gone,
}

impl Nursery {
    pub(crate) fn new() -> Self {
        let state = State {
            generation: 0,
            standing: Standing::Gone,
            tier: Tier::default(),
            zygote_pid: None,
            ready: VecDeque::new(),
            coming: 0,
        };
        Self { state: Mutex::new(state), bell: Notify::new() }
    }

    /// A runner that waits, if there is one.
    pub(crate) fn take(&self) -> Option<Runner> {
        let mut state = self.lock();
        while let Some(runner) = state.ready.pop_front() {
            // One that ended while it waited is of no use.
            if !runner.is_over() {
                self.bell.notify_one();
                return Some(runner);
            }
        }
        None
    }

    /// An ordered runner is here, or will not come.
    pub(crate) fn arrive(&self, generation: u64, runner: Option<Runner>) {
        let mut state = self.lock();
        if state.generation == generation && state.standing == Standing::Good {
            state.coming = state.coming.saturating_sub(1);
            state.ready.extend(runner);
        }
    }

    /// No more runners from this zygote.
    pub(crate) fn condemn(&self, generation: u64) {
        self.demote(generation, Standing::Condemned);
    }

    /// This zygote has ended.
    pub(crate) fn gone(&self, generation: u64) {
        self.demote(generation, Standing::Gone);
    }

    fn demote(&self, generation: u64, standing: Standing) {
        let mut state = self.lock();
        if state.generation == generation && state.standing == Standing::Good {
            state.standing = standing;
            let useless = state.empty();
            drop(state);
            drop(useless);
            self.bell.notify_one();
        }
    }

    /// A new zygote takes over. Returns its number.
    pub(crate) fn renew(&self, tier: Tier, zygote_pid: Option<u32>) -> u64 {
        let mut state = self.lock();
        state.generation += 1;
        state.standing = Standing::Good;
        state.tier = tier;
        state.zygote_pid = zygote_pid;
        let (generation, old) = (state.generation, state.empty());
        drop(state);
        drop(old);
        generation
    }

    /// How many more runners shall be ordered so that `warm` wait. They count as ordered from now on.
    pub(crate) fn order_up_to(&self, warm: usize) -> usize {
        let mut state = self.lock();
        state.ready.retain(|runner| !runner.is_over());
        let wanted = warm.saturating_sub(state.ready.len() + state.coming);
        state.coming += wanted;
        wanted
    }

    /// Lets all waiting runners go.
    pub(crate) fn clear(&self) {
        let useless = self.lock().empty();
        drop(useless);
    }

    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }

    pub(crate) fn standing(&self) -> Standing {
        self.lock().standing
    }

    /// Whether a runner comes from a zygote that nothing is known against.
    pub(crate) fn trusts(&self, runner: &Runner) -> bool {
        let state = self.lock();
        state.standing == Standing::Good && state.generation == runner.generation
    }

    pub(crate) fn tier(&self) -> Tier {
        self.lock().tier
    }

    pub(crate) fn zygote_pid(&self) -> Option<u32> {
        self.lock().zygote_pid
    }

    pub(crate) fn ready(&self) -> usize {
        self.lock().ready.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn empty(&mut self) -> VecDeque<Runner> {
        self.coming = 0;
        std::mem::take(&mut self.ready)
    }
}
