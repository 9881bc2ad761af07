//! Accounts for what the execution uses of its caller's quotas: a slot, and processor time.

use super::program_runner::ProgramRunner;
use super::{ExecutionActor, LeaveReason};
use lifecycle::Intent;
use std::time::Duration;
use store::StoreError;

impl ExecutionActor {
    /// The start was admitted before the actor existed.
    pub(super) fn count_start(&mut self, intent: &Intent) {
        if let Intent::Start { caller, .. } = intent {
            self.counted.admitted(caller.clone());
        }
    }

    /// The start was admitted, but an execution of that id exists already.
    pub(super) fn uncount_start(&self, intent: &Intent) {
        if let Intent::Start { caller, .. } = intent {
            self.shared.quotas.release_start(caller);
        }
    }

    /// Updates the class that the execution counts in. Called before its events are written, so that a caller that has read
    /// about an end can start the next one.
    pub(super) fn update_count(&mut self) {
        let waits_for_timers = self.waits_for_timers();
        self.counted.update(self.journal.state(), waits_for_timers);
    }

    /// From here on the count follows the journal alone.
    pub(super) fn leave_count(&mut self, left: &LeaveReason) {
        match left {
            LeaveReason::Done => self.counted.update(self.journal.state(), false),
            LeaveReason::Broken(StoreError::Conflict) => self.counted.cede(),
            LeaveReason::Broken(_) => self.counted.fail(self.journal.state()),
        }
    }

    /// Detaches the runner, and charges the caller for what the program used. The returned runner can be retained for the
    /// caller's next program.
    pub(super) fn detach_runner(&mut self) -> Option<ProgramRunner> {
        let is_coming_back = self.runner.is_coming_back();
        let mut runner = self.runner.take()?;
        // A replay that was made to free capacity is charged, also one that was not finished.
        let used = if is_coming_back { runner.cpu_in_all() } else { runner.cpu_to_charge() };
        let used = used.unwrap_or_else(|| self.cpu_bound());
        if let Some(origin) = &self.journal.state().origin {
            self.shared.quotas.charge_cpu(&origin.caller, used);
        }
        Some(runner)
    }

    /// Upper bound of what a lost runner can have used.
    fn cpu_bound(&self) -> Duration {
        let since_ms = self.clock.runner_ms(self.shared.config.clock.now());
        let active_ms = since_ms.min(self.clock.active_ms());
        Duration::from_millis(active_ms.min(self.journal.state().limits().cpu_ms_max))
    }

    fn waits_for_timers(&self) -> bool {
        let state = self.journal.state();
        let has_no_runner = self.runner.is_empty();
        state.in_flight == 0 && !state.timers.is_empty() && (has_no_runner || self.is_at_rest())
    }
}
