//! Counts what each caller uses, and refuses what exceeds its quotas. The rules are in `lifecycle::quotas`.
//!
//! A count follows the journal: an execution that no actor serves counts by its phase there. While an actor serves it,
//! the actor counts it, and may count one that waits for its own timers as waiting although its phase is *running*.

mod counted;
mod held;
mod usage_record;

pub(crate) use counted::{QuotaClaim, QuotaClass};
pub use held::{HeldRunner, QuotaAccount, RunnerCharge};
pub(crate) use usage_record::{load_cpu_usage, save_cpu_usage};

use crate::Clock;
use lifecycle::{
    CallerName, CallerUsage, ExecutionId, ExecutionPhase, QuotaKind, QuotaLimits, Rejection,
    Timestamp,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Maximum number of callers that are counted. Those that used nothing for an hour are evicted first; there are at most
/// 1,000 tokens.
const CALLERS_MAX: usize = 10_000;

/// Callers that a report names. The others are summed up, so that metrics have a bounded number of labels.
pub const REPORTED_CALLERS_MAX: usize = 50;

/// Quotas of every caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaSettings {
    /// Default quotas.
    pub usual: QuotaLimits,
    /// Quotas of single callers.
    pub callers: BTreeMap<CallerName, QuotaLimits>,
}

impl Default for QuotaSettings {
    fn default() -> Self {
        let n_processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let n_processors = u64::try_from(n_processors).unwrap_or(u64::MAX);
        Self { usual: QuotaLimits::usual(n_processors), callers: BTreeMap::new() }
    }
}

impl QuotaSettings {
    /// The quotas of a caller.
    pub fn for_caller(&self, caller: &CallerName) -> QuotaLimits {
        self.callers.get(caller).copied().unwrap_or(self.usual)
    }
}

/// The usage of one caller, for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerReport {
    /// The caller; none for the sum of all others.
    pub caller: Option<CallerName>,
    /// How much of each quota is used.
    pub used: BTreeMap<QuotaKind, u64>,
    /// How often each quota refused something since the server started.
    pub refused: BTreeMap<QuotaKind, u64>,
}

/// The usage of every caller. One lock, which is held for a look-up in a map; no I/O happens under it.
#[derive(Debug)]
pub struct QuotaBook {
    clock: Clock,
    tables: Mutex<QuotaTables>,
}

#[derive(Debug, Default)]
struct QuotaTables {
    settings: QuotaSettings,
    callers: HashMap<CallerName, CallerEntry>,
    /// Executions whose actor failed. They count as running until another actor has read their journal.
    broken: HashMap<ExecutionId, CallerName>,
}

#[derive(Debug, Default)]
struct CallerEntry {
    usage: CallerUsage,
    refused: BTreeMap<QuotaKind, u64>,
}

impl QuotaBook {
    pub(crate) fn new(clock: Clock, settings: QuotaSettings) -> Self {
        let tables = QuotaTables { settings, ..QuotaTables::default() };
        Self { clock, tables: Mutex::new(tables) }
    }

    /// Counts an execution that starts as running, if its caller's quotas admit it. Check and count are one step, so
    /// that of two starts for one slot only one is admitted.
    pub(crate) fn admit_start(&self, caller: &CallerName) -> Result<(), Rejection> {
        let now = self.clock.now();
        self.lock().admit_caller(caller, now, QuotaLimits::admit_start, |usage| usage.running += 1)
    }

    /// Reverts [`Self::admit_start`]: nothing was started.
    pub(crate) fn release_start(&self, caller: &CallerName) {
        self.move_count(caller, Some(QuotaClass::Running), None);
    }

    /// The account of one caller.
    pub fn account(self: &Arc<Self>, caller: &CallerName) -> QuotaAccount {
        QuotaAccount::new(Arc::clone(self), caller.clone())
    }

    /// Processor time that a caller has used within the last hour.
    pub fn cpu_used(&self, caller: &CallerName) -> Duration {
        let now = self.clock.now();
        let tables = self.lock();
        let used_us = tables.callers.get(caller).map_or(0, |entry| entry.usage.cpu.used_us(now));
        Duration::from_micros(used_us)
    }

    /// Charges processor time to a caller.
    pub fn charge_cpu(&self, caller: &CallerName, used: Duration) {
        let us = u64::try_from(used.as_micros()).unwrap_or(u64::MAX);
        if us > 0 {
            let now = self.clock.now();
            self.lock().entry(caller, now).usage.cpu.charge(now, us);
        }
    }

    /// Replaces the quotas. What is running continues.
    pub fn set(&self, settings: QuotaSettings) {
        self.lock().settings = settings;
    }

    /// The usage of callers, the busiest first; the last line sums up those that are not listed.
    pub fn report(&self) -> Vec<CallerReport> {
        let now = self.clock.now();
        let mut lines: Vec<_> = {
            let tables = self.lock();
            let line = |(caller, entry): (&CallerName, &CallerEntry)| CallerReport {
                caller: Some(caller.clone()),
                used: QuotaKind::ALL.map(|kind| (kind, entry.usage.value(kind, now))).into(),
                refused: entry.refused.clone(),
            };
            tables.callers.iter().map(line).collect()
        };
        lines.sort_by_cached_key(|line| {
            let most: u64 = line.used.values().chain(line.refused.values()).sum();
            (std::cmp::Reverse(most), line.caller.clone())
        });
        if lines.len() > REPORTED_CALLERS_MAX {
            let rest = lines.split_off(REPORTED_CALLERS_MAX);
            lines.push(summed_up(&rest));
        }
        lines
    }

    /// Counts executions of a former server.
    pub(crate) fn count_recovered(&self, caller: &CallerName, class: QuotaClass, n: u64) {
        let now = self.clock.now();
        *class.count_of(&mut self.lock().entry(caller, now).usage) += n;
    }

    fn move_count(&self, caller: &CallerName, from: Option<QuotaClass>, to: Option<QuotaClass>) {
        let now = self.clock.now();
        let mut tables = self.lock();
        let usage = &mut tables.entry(caller, now).usage;
        if let Some(from) = from {
            let count = from.count_of(usage);
            *count = count.saturating_sub(1);
        }
        if let Some(to) = to {
            *to.count_of(usage) += 1;
        }
        tables.forget_if_unused(caller, now);
    }

    fn set_broken(&self, execution: ExecutionId, caller: CallerName) {
        self.lock().broken.insert(execution, caller);
    }

    fn take_broken(&self, execution: ExecutionId) -> Option<CallerName> {
        self.lock().broken.remove(&execution)
    }

    fn cpu_windows(&self) -> Vec<(CallerName, lifecycle::CpuWindow)> {
        let tables = self.lock();
        let callers = tables.callers.iter();
        callers.map(|(caller, entry)| (caller.clone(), entry.usage.cpu.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, QuotaTables> {
        self.tables.lock().expect("nothing panics while it holds the counts")
    }
}

impl QuotaTables {
    fn admit_caller(
        &mut self,
        caller: &CallerName,
        now: Timestamp,
        rule: fn(&QuotaLimits, &CallerUsage, Timestamp) -> Result<(), Rejection>,
        count: fn(&mut CallerUsage),
    ) -> Result<(), Rejection> {
        let quotas = self.settings.for_caller(caller);
        let entry = self.entry(caller, now);
        let admitted = rule(&quotas, &entry.usage, now);
        match &admitted {
            Ok(()) => count(&mut entry.usage),
            Err(Rejection::QuotaReached { quota, .. }) => {
                *entry.refused.entry(*quota).or_default() += 1;
            }
            Err(_) => {}
        }
        admitted
    }

    fn entry(&mut self, caller: &CallerName, now: Timestamp) -> &mut CallerEntry {
        // The key is cloned only for a caller that is not counted yet.
        if !self.callers.contains_key(caller) {
            if self.callers.len() >= CALLERS_MAX {
                self.callers.retain(|_, entry| !entry.usage.is_empty(now));
            }
            self.callers.insert(caller.clone(), CallerEntry::default());
        }
        self.callers.get_mut(caller).expect("it was just inserted")
    }

    /// Refusals are reported as long as the caller is counted.
    fn forget_if_unused(&mut self, caller: &CallerName, now: Timestamp) {
        let is_unused = |entry: &CallerEntry| entry.usage.is_empty(now) && entry.refused.is_empty();
        if self.callers.get(caller).is_some_and(is_unused) {
            self.callers.remove(caller);
        }
    }
}

fn summed_up(lines: &[CallerReport]) -> CallerReport {
    let sum = |of: fn(&CallerReport) -> &BTreeMap<QuotaKind, u64>| {
        let mut sum = BTreeMap::new();
        for (kind, n) in lines.iter().flat_map(of) {
            *sum.entry(*kind).or_default() += n;
        }
        sum
    };
    CallerReport { caller: None, used: sum(|line| &line.used), refused: sum(|line| &line.refused) }
}

/// What an execution of this phase counts as while no actor serves it.
pub(crate) const fn class_of(phase: ExecutionPhase) -> Option<QuotaClass> {
    match phase {
        ExecutionPhase::Unborn | ExecutionPhase::Finished => None,
        ExecutionPhase::Running => Some(QuotaClass::Running),
        ExecutionPhase::Paused | ExecutionPhase::Parked => Some(QuotaClass::Waiting),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;
    use store::sqlite::SqliteStore;

    const QUOTAS: QuotaLimits = QuotaLimits {
        running_max: 2,
        waiting_max: 2,
        cpu_seconds_per_hour_max: 10,
        held_runners_max: 1,
    };

    fn book() -> (Arc<QuotaBook>, ManualClock) {
        let hands = ManualClock::starting_at(Timestamp(1_700_000_000_000));
        let settings = QuotaSettings { usual: QUOTAS, callers: BTreeMap::new() };
        (Arc::new(QuotaBook::new(Clock::Manual(hands.clone()), settings)), hands)
    }

    fn caller(n: usize) -> CallerName {
        CallerName(format!("caller-{n:03}"))
    }

    #[test]
    fn a_held_runner_is_counted_until_it_is_dropped() {
        let (book, _) = book();
        let held = book.account(&caller(1)).hold_runner().unwrap();
        let refused = book.account(&caller(1)).hold_runner().unwrap_err();
        assert_eq!(refused, Rejection::QuotaReached { quota: QuotaKind::HeldRunners, max: 1 });
        assert!(book.account(&caller(2)).hold_runner().is_ok(), "another caller has its own");
        drop(held);
        assert!(book.account(&caller(1)).hold_runner().is_ok());
    }

    #[test]
    fn a_report_names_the_busiest_callers_and_sums_up_the_others() {
        let (book, _) = book();
        for n in 0..REPORTED_CALLERS_MAX + 20 {
            book.admit_start(&caller(n)).unwrap();
        }
        let busiest = caller(REPORTED_CALLERS_MAX + 19);
        book.admit_start(&busiest).unwrap();
        let report = book.report();
        assert_eq!(report.len(), REPORTED_CALLERS_MAX + 1);
        assert_eq!(report[0].caller, Some(busiest));
        let others = report.last().unwrap();
        assert_eq!((&others.caller, others.used[&QuotaKind::Running]), (&None, 20));
    }

    #[test]
    fn other_quotas_count_for_what_starts_from_then_on() {
        let (book, _) = book();
        book.admit_start(&caller(1)).unwrap();
        book.admit_start(&caller(1)).unwrap();
        assert!(book.admit_start(&caller(1)).is_err());
        let own = QuotaLimits { running_max: 3, ..QUOTAS };
        book.set(QuotaSettings { usual: QUOTAS, callers: [(caller(1), own)].into() });
        book.admit_start(&caller(1)).unwrap();
        assert!(book.admit_start(&caller(1)).is_err());
        book.release_start(&caller(1));
        book.admit_start(&caller(1)).unwrap();
    }

    #[test]
    fn callers_that_use_nothing_are_forgotten() {
        let (book, _) = book();
        for n in 0..10 {
            book.admit_start(&caller(n)).unwrap();
            book.release_start(&caller(n));
        }
        assert_eq!(book.report(), []);
    }

    #[tokio::test]
    async fn processor_time_is_noted_and_counts_from_when_it_was_noted() {
        let store = SqliteStore::temporary().unwrap();
        let (former, hands) = book();
        save_cpu_usage(&former, &store).await.unwrap();
        assert_eq!(store::RecordStore::all(&store, "quota").await.unwrap(), [], "nothing to note");
        former.charge_cpu(&caller(1), Duration::from_millis(10_500));
        save_cpu_usage(&former, &store).await.unwrap();

        hands.advance(Duration::from_mins(59));
        let settings = QuotaSettings { usual: QUOTAS, callers: BTreeMap::new() };
        let book = QuotaBook::new(Clock::Manual(hands.clone()), settings);
        load_cpu_usage(&book, &store, |at| at).await.unwrap();
        let refused = book.admit_start(&caller(1)).unwrap_err();
        assert_eq!(refused, Rejection::QuotaReached { quota: QuotaKind::CpuSeconds, max: 10 });
        hands.advance(Duration::from_mins(1));
        book.admit_start(&caller(1)).unwrap();
        store.close().await;
    }
}
