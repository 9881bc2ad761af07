//! The runners of programs that wait, and the task that requests some of them when demands cannot start.

use super::accounts::{CallerAccounts, CapacityUse};
use super::rules::{ReleaseDecision, WaitState, may_release};
use crate::engine::{Engine, EngineShared};
use lifecycle::{ExecutionId, Timestamp};
use sandbox::{CpuMeter, ReleaseOffer};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Runners that programs hold while they wait. Limited by the sandbox's budget.
#[derive(Debug, Default)]
pub(crate) struct RunnerCapacity {
    holders: Mutex<HashMap<ExecutionId, Arc<RunnerHolder>>>,
    /// Whether demands wait: programs that become idle then notify the task.
    is_short: AtomicBool,
    changed: Notify,
    accounts: CallerAccounts,
}

/// A runner whose program has waited at least once.
#[derive(Debug)]
struct RunnerHolder {
    caller: String,
    memory_bytes: u64,
    meter: CpuMeter,
    /// Processor time that the process had used before this program.
    cpu_before: Duration,
    /// None while the program works.
    waiting: Mutex<Option<WaitState>>,
    is_asked: AtomicBool,
    asked: Notify,
}

/// An actor's handle to its offer. Dropping it withdraws the runner.
pub(crate) struct OfferedRunner {
    execution: ExecutionId,
    holder: Arc<RunnerHolder>,
    shared: Arc<EngineShared>,
}

impl OfferedRunner {
    pub(crate) fn register(
        shared: &Arc<EngineShared>,
        execution: ExecutionId,
        (caller, memory_bytes): (String, u64),
        (meter, cpu_before): (CpuMeter, Duration),
    ) -> Self {
        let (waiting, is_asked, asked) = (Mutex::new(None), AtomicBool::new(false), Notify::new());
        let holder =
            RunnerHolder { caller, memory_bytes, meter, cpu_before, waiting, is_asked, asked };
        let holder = Arc::new(holder);
        shared.capacity.lock().insert(execution, Arc::clone(&holder));
        Self { execution, holder, shared: Arc::clone(shared) }
    }

    /// Offers the runner while its program waits, or withdraws the offer.
    pub(crate) fn offer(&self, waiting: Option<WaitState>) {
        let is_offered = waiting.is_some();
        let before = std::mem::replace(&mut *self.holder.lock(), waiting);
        if is_offered && before.is_none() {
            self.shared.capacity.notify_if_short();
        }
    }

    /// Waits until the runner is needed.
    pub(crate) async fn asked(&self) {
        self.holder.asked.notified().await;
    }

    /// The program works again: the request goes to other programs.
    pub(crate) fn decline(&self) {
        self.holder.is_asked.store(false, Ordering::SeqCst);
        self.shared.capacity.notify_if_short();
    }
}

impl Drop for OfferedRunner {
    fn drop(&mut self) {
        self.shared.capacity.lock().remove(&self.execution);
    }
}

impl RunnerHolder {
    fn lock(&self) -> MutexGuard<'_, Option<WaitState>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cost of replaying the program: what it has used so far, earlier replays included.
    fn replay_cpu(&self) -> Option<Duration> {
        Some(self.meter.total()?.saturating_sub(self.cpu_before))
    }
}

impl Engine {
    /// What was done to free capacity for programs that waited for a runner.
    pub fn capacity_use(&self) -> CapacityUse {
        self.shared.capacity.accounts.snapshot()
    }
}

impl RunnerCapacity {
    pub(crate) fn count_release(&self) {
        self.accounts.count_release();
    }

    pub(crate) fn count_replay(&self, caller: &str, cpu: Duration) {
        self.accounts.count_replay(caller, cpu);
    }

    pub(crate) fn count_failure(&self) {
        self.accounts.count_failure();
    }

    fn notify_if_short(&self) {
        if self.is_short.load(Ordering::SeqCst) {
            self.changed.notify_one();
        }
    }

    /// Requests runners from the cheapest programs, as many as help. Returns when to check again if nothing
    /// happens.
    fn ask_for_runners(&self, shared: &EngineShared) -> Option<Timestamp> {
        // Set before checking the programs that wait: those that become idle from here on notify the task.
        self.is_short.store(true, Ordering::SeqCst);
        if shared.sandbox.load().waiting == 0 {
            self.is_short.store(false, Ordering::SeqCst);
            return None;
        }
        let now = shared.config.clock.now();
        let mut look_again = None;
        let (mut offered, mut offers) = (vec![], vec![]);
        for holder in self.lock().values() {
            let is_asked = holder.is_asked.load(Ordering::SeqCst);
            let Some(waiting) = holder.lock().clone() else { continue };
            let Some(replay_cpu) = holder.replay_cpu() else { continue };
            match may_release(&waiting, replay_cpu, now) {
                ReleaseDecision::Now => {}
                _ if is_asked => {}
                ReleaseDecision::From(from) => {
                    look_again = look_again.into_iter().chain([from]).min();
                    continue;
                }
                ReleaseDecision::Never => continue,
            }
            let (caller, memory_bytes) = (Some(holder.caller.clone()), holder.memory_bytes);
            offers.push(ReleaseOffer { caller, memory_bytes, replay_cpu, is_asked });
            offered.push(Arc::clone(holder));
        }
        for at in shared.sandbox.plan_releases(&offers) {
            offered[at].is_asked.store(true, Ordering::SeqCst);
            offered[at].asked.notify_one();
        }
        look_again
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutionId, Arc<RunnerHolder>>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees capacity for demands that wait, until the engine stops.
pub(crate) async fn watch(shared: Arc<EngineShared>) {
    let mut look_again = None;
    loop {
        let alarm = async {
            match look_again {
                Some(at) => shared.config.clock.wait_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.closing.cancelled() => return,
            () = shared.sandbox.shortage() => {}
            () = shared.capacity.changed.notified() => {}
            () = alarm => {}
        }
        look_again = shared.capacity.ask_for_runners(&shared);
    }
}
