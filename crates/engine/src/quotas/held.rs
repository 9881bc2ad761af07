//! Runners that execbox channels and REPL sessions hold: they count while they are held, and their programs' usage is
//! charged while they run.

use super::QuotaBook;
use lifecycle::{CallerName, QuotaLimits, Rejection};
use sandbox::{CpuMeter, LeaseDemand};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the processor time of a program at work is charged: a program may run for a day.
const CHARGE_INTERVAL: Duration = Duration::from_secs(1);

/// The quotas of one caller, for a protocol that holds runners. Cheap to clone.
#[derive(Debug, Clone)]
pub struct QuotaAccount {
    book: Arc<QuotaBook>,
    caller: CallerName,
}

impl QuotaAccount {
    pub(super) const fn new(book: Arc<QuotaBook>, caller: CallerName) -> Self {
        Self { book, caller }
    }

    /// Counts a runner as held, if the quotas admit it.
    pub fn hold_runner(&self) -> Result<HeldRunner, Rejection> {
        let now = self.book.clock.now();
        let count = |usage: &mut lifecycle::CallerUsage| usage.held_runners += 1;
        self.book.lock().admit_caller(&self.caller, now, QuotaLimits::admit_runner, count)?;
        Ok(HeldRunner { account: self.clone() })
    }

    /// Whether another program may begin in a held runner.
    pub fn admit_program(&self) -> Result<(), Rejection> {
        let now = self.book.clock.now();
        self.book.lock().admit_caller(&self.caller, now, QuotaLimits::admit_cpu, |_| {})
    }

    /// The demand of a held runner to the sandbox, in the queue of its caller.
    pub fn demand(&self, memory_bytes: u64) -> LeaseDemand {
        let caller = Some(self.caller.to_string());
        LeaseDemand { memory_bytes, caller, is_held: true }
    }

    /// Charges the account with what a runner uses from now on.
    pub fn charge_runner(&self, meter: CpuMeter) -> RunnerCharge {
        let charged = meter.total().unwrap_or_default();
        RunnerCharge { account: self.clone(), meter, charged, working_since: None }
    }
}

/// A runner that an execbox channel or a REPL session holds. It is counted until this is dropped.
#[derive(Debug)]
pub struct HeldRunner {
    account: QuotaAccount,
}

impl Drop for HeldRunner {
    fn drop(&mut self) {
        let QuotaAccount { book, caller } = &self.account;
        let now = book.clock.now();
        let mut tables = book.lock();
        let held = &mut tables.entry(caller, now).usage.held_runners;
        *held = held.saturating_sub(1);
        tables.forget_if_unused(caller, now);
    }
}

/// Charges an account with the processor time of a held runner. Drop it before the runner: the usage of a runner that is
/// gone can no longer be read, and is then charged as the time for which it worked since the last reading.
#[derive(Debug)]
pub struct RunnerCharge {
    account: QuotaAccount,
    meter: CpuMeter,
    /// The part of the meter that was charged.
    charged: Duration,
    /// Since when it may have used time that is not charged; none while it rests.
    working_since: Option<Instant>,
}

impl RunnerCharge {
    /// The runner has work from now on.
    pub fn begin_work(&mut self) {
        self.working_since.get_or_insert_with(Instant::now);
    }

    /// The runner is idle.
    pub fn end_work(&mut self) {
        self.charge();
        self.working_since = None;
    }

    /// When to call [`Self::charge_if_due`]; none while the runner is idle.
    pub fn due(&self) -> Option<Instant> {
        self.working_since.map(|since| since + CHARGE_INTERVAL)
    }

    /// Charges the usage since the last time, if that is long ago.
    pub fn charge_if_due(&mut self) {
        if self.due().is_some_and(|due| due <= Instant::now()) {
            self.charge();
        }
    }

    fn charge(&mut self) {
        let used = match self.meter.total() {
            Some(total) => {
                let before = std::mem::replace(&mut self.charged, total);
                self.working_since = self.working_since.map(|_| Instant::now());
                total.saturating_sub(before)
            }
            None => self.working_since.take().map_or(Duration::ZERO, |since| since.elapsed()),
        };
        self.account.book.charge_cpu(&self.account.caller, used);
    }
}

impl Drop for RunnerCharge {
    fn drop(&mut self) {
        self.charge();
    }
}
