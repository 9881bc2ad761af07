//! Shares processor time between callers: runners of a caller that uses more than its share get a higher nice value.
//!
//! This needs no privilege and no cgroup. A nice value only matters where processors are scarce. An unprivileged server
//! cannot lower it again, so it is raised step by step and only while several callers are active.

use crate::admission::CallerKey;
use crate::oom_kills::OomKills;
use crate::zygote::Process;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often processor time is read while there are runners.
const SAMPLE: Duration = Duration::from_millis(100);

/// A caller counts as active for this many samples after its last runner.
const ACTIVE_SAMPLES: u32 = 50;

/// How far the nice value of a caller rises with each sample above its share.
const LEVEL_STEP: u8 = 3;

/// The highest nice value that there is.
const LEVEL_MAX: u8 = 19;

/// Watches the processor time of all leased runners.
#[derive(Debug)]
pub(crate) struct CpuShares {
    n_cores: u32,
    table: Mutex<Table>,
    appeared: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    runners: HashMap<u64, Watched>,
    /// Callers that have or recently had runners. Those that are not active any more are removed.
    callers: BTreeMap<CallerKey, CallerCpu>,
}

#[derive(Debug)]
struct Watched {
    caller: CallerKey,
    process: Arc<Process>,
    /// What it had used at the last sample; none if that is not known.
    used: Option<Duration>,
}

/// What is remembered of a caller between samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CallerCpu {
    /// The nice value of its runners.
    level: u8,
    samples_left: u32,
}

/// A runner whose processor time is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct LiveRunner {
    id: u64,
    shares: Arc<CpuShares>,
}

impl CpuShares {
    pub(crate) fn new(n_cores: usize) -> Self {
        let n_cores = u32::try_from(n_cores).unwrap_or(u32::MAX);
        Self { n_cores, table: Mutex::default(), appeared: Notify::new() }
    }

    /// Charges a runner to its caller, and gives it the nice value of the caller's other runners.
    pub(crate) fn watch(
        self: &Arc<Self>,
        caller: &CallerKey,
        process: &Arc<Process>,
        is_used: bool,
    ) -> LiveRunner {
        let mut table = self.lock();
        table.next += 1;
        let id = table.next;
        let used = (!is_used).then_some(Duration::ZERO);
        let watched = Watched { caller: caller.clone(), process: Arc::clone(process), used };
        table.runners.insert(id, watched);
        let of_caller = table.callers.entry(caller.clone()).or_default();
        of_caller.samples_left = ACTIVE_SAMPLES;
        let level = of_caller.level;
        let is_first = table.runners.len() == 1;
        drop(table);
        if level > 0 {
            process.set_caller_nice(level);
        }
        if is_first {
            self.appeared.notify_one();
        }
        LiveRunner { id, shares: Arc::clone(self) }
    }

    /// Runs until `shutdown`. Sleeps while there are no runners.
    pub(crate) async fn run(
        self: Arc<Self>,
        oom_kills: Arc<OomKills>,
        shutdown: CancellationToken,
    ) {
        let samples = async {
            let mut last = Instant::now();
            loop {
                if self.lock().runners.is_empty() {
                    self.appeared.notified().await;
                    last = Instant::now();
                }
                tokio::time::sleep(SAMPLE).await;
                let elapsed = std::mem::replace(&mut last, Instant::now()).elapsed();
                self.sample(elapsed);
                oom_kills.observe();
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = samples => {}
        }
    }

    fn sample(&self, elapsed: Duration) {
        let mut table = self.lock();
        let table = &mut *table;
        table.callers.retain(|_, caller| {
            caller.samples_left = caller.samples_left.saturating_sub(1);
            caller.samples_left > 0
        });
        for watched in table.runners.values() {
            let caller = table.callers.entry(watched.caller.clone()).or_default();
            caller.samples_left = ACTIVE_SAMPLES;
        }
        if table.callers.len() < 2 {
            // Nobody to share with. What is used meanwhile is not held against anybody later.
            table.runners.values_mut().for_each(|watched| watched.used = None);
            table.callers.values_mut().for_each(|caller| caller.level = 0);
            return;
        }
        let mut used: BTreeMap<CallerKey, Duration> =
            table.callers.keys().map(|caller| (caller.clone(), Duration::ZERO)).collect();
        for watched in table.runners.values_mut() {
            let now = watched.process.cpu_time();
            if let (Some(before), Some(now)) = (watched.used, now) {
                *used.entry(watched.caller.clone()).or_default() += now.saturating_sub(before);
            }
            watched.used = now;
        }
        let levels = table.callers.iter().map(|(caller, cpu)| (caller.clone(), cpu.level));
        let levels = next_levels(&levels.collect(), &used, elapsed * self.n_cores);
        for (caller, cpu) in &mut table.callers {
            cpu.level = levels.get(caller).copied().unwrap_or(0);
        }
        for watched in table.runners.values() {
            watched.process.set_caller_nice(levels.get(&watched.caller).copied().unwrap_or(0));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LiveRunner {
    fn drop(&mut self) {
        self.shares.lock().runners.remove(&self.id);
    }
}

/// The nice value of each caller's runners after a sample, in which there were `capacity` of processor time. It rises
/// for callers that used more than an equal share while little was left, and falls otherwise.
fn next_levels(
    levels: &BTreeMap<CallerKey, u8>,
    used: &BTreeMap<CallerKey, Duration>,
    capacity: Duration,
) -> BTreeMap<CallerKey, u8> {
    let is_scarce = used.values().sum::<Duration>() >= capacity.mul_f64(0.75);
    let n_callers = u32::try_from(used.len().max(1)).unwrap_or(u32::MAX);
    // A tenth more is no reason to act.
    let share = (capacity / n_callers).mul_f64(1.1);
    let next = |(caller, used): (&CallerKey, &Duration)| {
        let level = levels.get(caller).copied().unwrap_or(0);
        let level = match is_scarce && *used > share {
            true => (level + LEVEL_STEP).min(LEVEL_MAX),
            false => level.saturating_sub(1),
        };
        (caller.clone(), level)
    };
    used.iter().map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(levels: &[(&str, u8)]) -> BTreeMap<CallerKey, u8> {
        levels.iter().map(|(name, level)| (Some(Arc::from(*name)), *level)).collect()
    }

    #[track_caller]
    fn check(before: &[(&str, u8)], used_ms: &[(&str, u64)], after: &[(&str, u8)]) {
        let used = used_ms.iter();
        let used = used.map(|(name, ms)| (Some(Arc::from(*name)), Duration::from_millis(*ms)));
        let next = next_levels(&levels(before), &used.collect(), Duration::from_millis(200));
        assert_eq!(next, levels(after));
    }

    #[test]
    fn a_caller_above_its_share_steps_back_and_others_do_not() {
        check(&[("ann", 0), ("bob", 0)], &[("ann", 195), ("bob", 2)], &[("ann", 3), ("bob", 0)]);
        check(&[("ann", 18), ("bob", 0)], &[("ann", 195), ("bob", 2)], &[("ann", 19), ("bob", 0)]);
    }

    #[test]
    fn callers_within_their_shares_recover_step_by_step() {
        check(&[("ann", 9), ("bob", 1)], &[("ann", 105), ("bob", 95)], &[("ann", 8), ("bob", 0)]);
    }

    #[test]
    fn nobody_steps_back_while_processors_are_idle() {
        check(&[("ann", 3), ("bob", 0)], &[("ann", 140), ("bob", 1)], &[("ann", 2), ("bob", 0)]);
    }
}
