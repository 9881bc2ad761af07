//! Quotas: what one caller may use at a time, so that no caller starves another. Pure rules; the engine
//! does the counting.

use crate::{Rejection, Timestamp};
use std::fmt;

/// Minutes of a CPU window.
const CPU_WINDOW_MINUTES: usize = 60;

const MINUTE_MS: i64 = 60_000;

const HOUR_SECONDS: u64 = 3_600;

/// What a quota bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuotaKind {
    /// Executions that run, including those that wait for a runner.
    Running,
    /// Executions that wait for people or timers, or were parked.
    Waiting,
    /// Processor time of programs within an hour.
    CpuSeconds,
    /// Runners held by execbox channels and REPL sessions.
    HeldRunners,
}

impl QuotaKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Running, Self::Waiting, Self::CpuSeconds, Self::HeldRunners];

    /// The key in `airlock.toml`, which is also the name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running_max",
            Self::Waiting => "waiting_max",
            Self::CpuSeconds => "cpu_seconds_per_hour_max",
            Self::HeldRunners => "held_runners_max",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Running => "running executions",
            Self::Waiting => "waiting executions",
            Self::CpuSeconds => "CPU seconds within an hour",
            Self::HeldRunners => "held runners",
        }
    }

    const fn advice(self) -> &'static str {
        match self {
            Self::Running => "wait until one has ended, or cancel one",
            Self::Waiting => "answer the open questions, or cancel executions that wait",
            Self::CpuSeconds => "try again later",
            Self::HeldRunners => "close an execbox channel or a REPL session",
        }
    }
}

impl fmt::Display for QuotaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The quotas of one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaLimits {
    /// Executions that run, including those that wait for a runner.
    pub running_max: u64,
    /// Executions that wait for people or timers. An execution that starts is not refused later because it waits, so
    /// a caller can exceed this by as many as it has running.
    pub waiting_max: u64,
    /// Processor time of programs within an hour.
    pub cpu_seconds_per_hour_max: u64,
    /// Runners held by execbox channels and REPL sessions.
    pub held_runners_max: u64,
}

impl QuotaLimits {
    /// The quotas on a machine with this many processors, where no configuration names others.
    pub const fn usual(n_processors: u64) -> Self {
        Self {
            running_max: 20_000,
            waiting_max: 1_000_000,
            // Half of the machine.
            cpu_seconds_per_hour_max: n_processors.saturating_mul(HOUR_SECONDS / 2),
            held_runners_max: 128,
        }
    }

    /// The value of one quota.
    pub const fn value(&self, kind: QuotaKind) -> u64 {
        match kind {
            QuotaKind::Running => self.running_max,
            QuotaKind::Waiting => self.waiting_max,
            QuotaKind::CpuSeconds => self.cpu_seconds_per_hour_max,
            QuotaKind::HeldRunners => self.held_runners_max,
        }
    }

    /// Whether a caller that uses this much may start another execution.
    pub fn admit_start(&self, usage: &CallerUsage, now: Timestamp) -> Result<(), Rejection> {
        self.check_quota(QuotaKind::Running, usage.running)?;
        self.check_quota(QuotaKind::Waiting, usage.waiting)?;
        self.admit_cpu(usage, now)
    }

    /// Whether a caller that uses this much may hold another runner.
    pub fn admit_runner(&self, usage: &CallerUsage, now: Timestamp) -> Result<(), Rejection> {
        self.check_quota(QuotaKind::HeldRunners, usage.held_runners)?;
        self.admit_cpu(usage, now)
    }

    /// Whether a caller that uses this much may begin another program in a runner that it holds.
    pub fn admit_cpu(&self, usage: &CallerUsage, now: Timestamp) -> Result<(), Rejection> {
        self.check_quota(QuotaKind::CpuSeconds, usage.cpu.seconds(now))
    }

    const fn check_quota(&self, quota: QuotaKind, used: u64) -> Result<(), Rejection> {
        let max = self.value(quota);
        if used < max { Ok(()) } else { Err(Rejection::QuotaReached { quota, max }) }
    }
}

/// What a caller uses now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerUsage {
    /// Executions that run, or wait for a runner.
    pub running: u64,
    /// Executions that wait for people or timers, or were parked.
    pub waiting: u64,
    /// Runners held by execbox channels and REPL sessions.
    pub held_runners: u64,
    /// Processor time within the last hour.
    pub cpu: CpuWindow,
}

impl CallerUsage {
    /// Whether nothing is counted.
    pub fn is_empty(&self, now: Timestamp) -> bool {
        self.running + self.waiting + self.held_runners == 0 && self.cpu.used_us(now) == 0
    }

    /// How much of one quota is used.
    pub fn value(&self, kind: QuotaKind, now: Timestamp) -> u64 {
        match kind {
            QuotaKind::Running => self.running,
            QuotaKind::Waiting => self.waiting,
            QuotaKind::CpuSeconds => self.cpu.seconds(now),
            QuotaKind::HeldRunners => self.held_runners,
        }
    }
}

/// Processor time within the last hour, by the minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuWindow {
    /// Microseconds of the newest minutes; the minute `m` is at `m % 60`.
    used_us: Box<[u64]>,
    /// The newest minute that is counted.
    minute: i64,
}

impl Default for CpuWindow {
    fn default() -> Self {
        Self { used_us: Box::default(), minute: i64::MIN }
    }
}

impl CpuWindow {
    /// Adds what was used at `now`.
    pub fn charge(&mut self, now: Timestamp, us: u64) {
        if us == 0 {
            return;
        }
        if self.used_us.is_empty() {
            self.used_us = vec![0; CPU_WINDOW_MINUTES].into_boxed_slice();
        }
        let minute = now.0.div_euclid(MINUTE_MS);
        // A clock that went back must not erase what was used.
        let minute = minute.max(self.minute);
        let n_new = minute.saturating_sub(self.minute).clamp(0, CPU_WINDOW_MINUTES as i64);
        for passed in 0..n_new {
            self.used_us[slot(minute - passed)] = 0;
        }
        self.minute = minute;
        self.used_us[slot(minute)] = self.used_us[slot(minute)].saturating_add(us);
    }

    /// Microseconds used within the hour before `now`.
    pub fn used_us(&self, now: Timestamp) -> u64 {
        if self.used_us.is_empty() {
            return 0;
        }
        let age = now.0.div_euclid(MINUTE_MS).saturating_sub(self.minute).max(0);
        let n_counted = (CPU_WINDOW_MINUTES as i64).saturating_sub(age).max(0);
        let minutes = (0..n_counted).map(|back| self.used_us[slot(self.minute - back)]);
        minutes.fold(0, u64::saturating_add)
    }

    fn seconds(&self, now: Timestamp) -> u64 {
        self.used_us(now) / 1_000_000
    }
}

fn slot(minute: i64) -> usize {
    let slot = minute.rem_euclid(CPU_WINDOW_MINUTES as i64);
    usize::try_from(slot).expect("a remainder of 60 is small")
}

/// The message for a caller whose quota is reached.
pub(crate) fn refusal(quota: QuotaKind, max: u64) -> String {
    let (unit, advice) = (quota.unit(), quota.advice());
    format!("this caller has reached its quota {quota} of {max} {unit}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTAS: QuotaLimits = QuotaLimits {
        running_max: 2,
        waiting_max: 3,
        cpu_seconds_per_hour_max: 10,
        held_runners_max: 1,
    };

    fn at(minute: i64) -> Timestamp {
        Timestamp(minute * MINUTE_MS)
    }

    fn usage(running: u64, waiting: u64, held_runners: u64, cpu_us: u64) -> CallerUsage {
        let mut cpu = CpuWindow::default();
        cpu.charge(at(0), cpu_us);
        CallerUsage { running, waiting, held_runners, cpu }
    }

    #[test]
    fn each_quota_refuses_at_its_value_and_not_before() {
        let start = |usage: CallerUsage| QUOTAS.admit_start(&usage, at(0));
        let runner = |usage: CallerUsage| QUOTAS.admit_runner(&usage, at(0));
        let reached = |quota, max| Err(Rejection::QuotaReached { quota, max });
        assert_eq!(start(usage(1, 2, 1, 9_999_999)), Ok(()));
        assert_eq!(start(usage(2, 0, 0, 0)), reached(QuotaKind::Running, 2));
        assert_eq!(start(usage(0, 3, 0, 0)), reached(QuotaKind::Waiting, 3));
        assert_eq!(start(usage(0, 0, 0, 10_000_000)), reached(QuotaKind::CpuSeconds, 10));
        assert_eq!(runner(usage(2, 3, 0, 9_999_999)), Ok(()));
        assert_eq!(runner(usage(0, 0, 1, 0)), reached(QuotaKind::HeldRunners, 1));
        assert_eq!(runner(usage(0, 0, 0, 10_000_000)), reached(QuotaKind::CpuSeconds, 10));
    }

    #[test]
    fn a_program_in_a_held_runner_is_refused_for_processor_time_only() {
        let program = |usage: CallerUsage| QUOTAS.admit_cpu(&usage, at(0));
        assert_eq!(program(usage(2, 3, 1, 9_999_999)), Ok(()));
        let reached = Rejection::QuotaReached { quota: QuotaKind::CpuSeconds, max: 10 };
        assert_eq!(program(usage(0, 0, 0, 10_000_000)), Err(reached));
    }

    #[test]
    fn a_refusal_names_the_quota_its_value_and_what_to_do() {
        let shown = Rejection::QuotaReached { quota: QuotaKind::Running, max: 2 }.to_string();
        let expected = "this caller has reached its quota running_max of 2 running executions; wait until one has ended, \
                        or cancel one";
        assert_eq!(shown, expected);
    }

    #[test]
    fn processor_time_counts_for_an_hour() {
        let mut window = CpuWindow::default();
        window.charge(at(100), 5);
        window.charge(at(101), 7);
        let used = |window: &CpuWindow, minute| window.used_us(at(minute));
        assert_eq!([101, 159, 160, 161].map(|minute| used(&window, minute)), [12, 12, 7, 0]);
        window.charge(at(160), 1);
        assert_eq!([160, 161].map(|minute| used(&window, minute)), [8, 1]);
        window.charge(at(1_000), 2);
        assert_eq!(used(&window, 1_000), 2, "what is older than the window is gone");
    }

    #[test]
    fn a_clock_that_goes_back_erases_nothing() {
        let mut window = CpuWindow::default();
        window.charge(at(100), 5);
        window.charge(at(40), 7);
        assert_eq!([40, 100, 160].map(|minute| window.used_us(at(minute))), [12, 12, 0]);
    }
}
