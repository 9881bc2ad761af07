//! Shares processor time between callers: runners of a caller that uses more than its share get a higher nice value.
//!
//! This needs no privilege and no cgroup. A nice value only matters where processors are scarce. An unprivileged server
//! cannot lower it again, so it is raised step by step and only while several callers are active.

use crate::admission::CallerKey;
use crate::oom_kills::OomKills;
use crate::zygote::PinnedProcess;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How often processor time is read while several callers are active.
const SAMPLE: Duration = Duration::from_millis(100);

/// How often processor time is read while a single caller has runners.
const SAMPLE_ALONE: Duration = Duration::from_secs(1);

/// A caller counts as active for this many samples after its last runner.
const ACTIVE_SAMPLES: u32 = 50;

/// By how much the nice value of a caller rises with each sample above its share.
const LEVEL_STEP: u8 = 3;

/// Processors are scarce when runners wait for them for more than this fraction of the time that they use.
const SCARCE_PART: u32 = 10;

/// If less processor time than this was used between two samples, waiting times are not read.
const WORTH_ASKING: Duration = Duration::from_millis(1);

/// The highest nice value of the system.
const LEVEL_MAX: u8 = 19;

/// Watches the processor time of all leased runners.
#[derive(Debug)]
pub(crate) struct CpuShares {
    table: Mutex<ShareTable>,
    appeared: Notify,
}

#[derive(Debug, Default)]
struct ShareTable {
    next: u64,
    runners: HashMap<u64, WatchedRunner>,
    /// Callers that have or recently had runners. Those that are not active any more are removed.
    callers: BTreeMap<CallerKey, CallerCpu>,
}

#[derive(Debug)]
struct WatchedRunner {
    caller: CallerKey,
    process: Arc<PinnedProcess>,
    /// The processor time that it had used at the last sample; `None` if unknown.
    used: Option<Duration>,
    /// How long it had waited for a processor by then.
    waited: Option<Duration>,
}

/// The processor time of a caller's runners in a sample, and how long they waited for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct CpuSample {
    used: Duration,
    waited: Duration,
}

/// What is recorded about a caller between samples.
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
    pub(crate) fn new() -> Self {
        Self { table: Mutex::default(), appeared: Notify::new() }
    }

    /// Charges a runner to its caller, and gives it the nice value of the caller's other runners.
    pub(crate) fn watch(
        self: &Arc<Self>,
        caller: &CallerKey,
        process: &Arc<PinnedProcess>,
        is_used: bool,
    ) -> LiveRunner {
        let mut table = self.lock();
        table.next += 1;
        let id = table.next;
        let used = (!is_used).then_some(Duration::ZERO);
        let (caller_key, watched_process) = (caller.clone(), Arc::clone(process));
        let watched =
            WatchedRunner { caller: caller_key, process: watched_process, used, waited: None };
        table.runners.insert(id, watched);
        let pause_before = table.pause();
        let of_caller = table.callers.entry(caller.clone()).or_default();
        of_caller.samples_left = ACTIVE_SAMPLES;
        let level = of_caller.level;
        let is_sooner = table.runners.len() == 1 || table.pause() != pause_before;
        drop(table);
        if level > 0 {
            process.set_caller_nice(level);
        }
        if is_sooner {
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
            loop {
                let pause = self.lock().pause();
                tokio::select! {
                    () = self.appeared.notified() => continue,
                    () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
                }
                self.sample();
                oom_kills.observe();
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = samples => {}
        }
    }

    fn sample(&self) {
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
            // There is no other caller to share with. What is used meanwhile is not counted against the
            // caller later.
            let forget =
                |watched: &mut WatchedRunner| (watched.used, watched.waited) = (None, None);
            table.runners.values_mut().for_each(forget);
            table.callers.values_mut().for_each(|caller| caller.level = 0);
            return;
        }
        let mut samples: BTreeMap<CallerKey, CpuSample> =
            table.callers.keys().map(|caller| (caller.clone(), CpuSample::default())).collect();
        for watched in table.runners.values_mut() {
            let sample = watched.sample();
            let of_caller = samples.entry(watched.caller.clone()).or_default();
            of_caller.used += sample.used;
            of_caller.waited += sample.waited;
        }
        let levels = table.callers.iter().map(|(caller, cpu)| (caller.clone(), cpu.level));
        let levels = next_levels(&levels.collect(), &samples);
        for (caller, cpu) in &mut table.callers {
            cpu.level = levels.get(caller).copied().unwrap_or(0);
        }
        for watched in table.runners.values() {
            watched.process.set_caller_nice(levels.get(&watched.caller).copied().unwrap_or(0));
        }
    }

    fn lock(&self) -> MutexGuard<'_, ShareTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LiveRunner {
    fn drop(&mut self) {
        self.shares.lock().runners.remove(&self.id);
    }
}

impl ShareTable {
    /// The wait for the next sample; `None` while there are no runners.
    fn pause(&self) -> Option<Duration> {
        match (self.runners.is_empty(), self.callers.len()) {
            (true, _) => None,
            (false, 0 | 1) => Some(SAMPLE_ALONE),
            (false, _) => Some(SAMPLE),
        }
    }
}

impl WatchedRunner {
    /// What has happened since the last sample.
    fn sample(&mut self) -> CpuSample {
        let now = self.process.cpu_time();
        let since = |now: Option<Duration>, before: Option<Duration>| {
            now.zip(before).map_or(Duration::ZERO, |(now, before)| now.saturating_sub(before))
        };
        let used = since(now, std::mem::replace(&mut self.used, now));
        // A runner that only waits for messages has not waited for a processor either.
        if used < WORTH_ASKING {
            return CpuSample { used, waited: Duration::ZERO };
        }
        let now = self.process.wait_time();
        CpuSample { used, waited: since(now, std::mem::replace(&mut self.waited, now)) }
    }
}

/// The nice value of each caller's runners after a sample. It rises for callers that got more than an equal share of what
/// all runners used while runners waited for processors, and falls otherwise.
fn next_levels(
    levels: &BTreeMap<CallerKey, u8>,
    samples: &BTreeMap<CallerKey, CpuSample>,
) -> BTreeMap<CallerKey, u8> {
    let used: Duration = samples.values().map(|sample| sample.used).sum();
    let waited: Duration = samples.values().map(|sample| sample.waited).sum();
    let is_scarce = waited > used / SCARCE_PART;
    let n_callers = u32::try_from(samples.len().max(1)).unwrap_or(u32::MAX);
    // A tenth more is tolerated.
    let share = (used / n_callers).mul_f64(1.1);
    let next = |(caller, sample): (&CallerKey, &CpuSample)| {
        let level = levels.get(caller).copied().unwrap_or(0);
        let level = match is_scarce && sample.used > share {
            true => (level + LEVEL_STEP).min(LEVEL_MAX),
            false => level.saturating_sub(1),
        };
        (caller.clone(), level)
    };
    samples.iter().map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Caller, level before, milliseconds used, milliseconds waited, level after.
    #[track_caller]
    fn check(callers: &[(&str, u8, u64, u64, u8)]) {
        let key = |name: &str| Some(Arc::from(name));
        let ms = Duration::from_millis;
        let levels = |level: fn(&(&str, u8, u64, u64, u8)) -> u8| -> BTreeMap<CallerKey, u8> {
            callers.iter().map(|caller| (key(caller.0), level(caller))).collect()
        };
        let sample = |(_, _, used, waited, _): &(&str, u8, u64, u64, u8)| CpuSample {
            used: ms(*used),
            waited: ms(*waited),
        };
        let samples = callers.iter().map(|caller| (key(caller.0), sample(caller))).collect();
        assert_eq!(next_levels(&levels(|caller| caller.1), &samples), levels(|caller| caller.4));
    }

    #[test]
    fn a_caller_above_its_share_steps_back_and_others_do_not() {
        check(&[("ann", 0, 195, 300, 3), ("bob", 0, 2, 3, 0)]);
        check(&[("ann", 18, 195, 300, 19), ("bob", 0, 2, 0, 0)]);
    }

    #[test]
    fn callers_within_their_shares_recover_step_by_step() {
        check(&[("ann", 9, 105, 300, 8), ("bob", 1, 95, 0, 0)]);
    }

    #[test]
    fn no_caller_steps_back_while_there_are_processors_for_all() {
        check(&[("ann", 3, 140, 2, 2), ("bob", 0, 1, 0, 0)]);
    }
}
