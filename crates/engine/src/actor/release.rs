//! Releases the runner of a program that only waits, and restores the program when it has work to do.

use super::ExecutionActor;
use super::program_runner::ProgramRunner;
use crate::capacity::{OfferedRunner, WaitState};
use crate::fault::Fault;
use lifecycle::{ActiveClock, ExecutionPhase, Rejection};

impl ExecutionActor {
    /// Offers the runner while the program only waits.
    pub(super) fn offer_runner(&mut self) {
        let waiting = self.waits_for();
        let Some(runner) = self.runner.get_mut() else { return };
        if !runner.is_offered() && waiting.is_some() {
            let Some(origin) = &self.journal.state().origin else { return };
            let Some(meter) = runner.meter() else { return };
            let of = (origin.caller.to_string(), origin.limits.memory_bytes_max);
            let execution = self.journal.execution();
            runner.set_offered(OfferedRunner::register(&self.shared, execution, of, meter));
        }
        runner.offer(waiting);
    }

    /// What the program waits for, if it has consumed every input and nothing in progress needs its runner.
    fn waits_for(&mut self) -> Option<WaitState> {
        let is_waiting = self.is_at_rest()
            && self.answers.is_empty()
            && self.effects.is_empty()
            && self.runner.is_restored();
        if !is_waiting {
            self.runner.works();
            return None;
        }
        let now = self.shared.config.clock.now();
        let state = self.journal.state();
        Some(WaitState {
            since: self.runner.waits_since(now),
            due: state.timers.values().min().copied(),
            has_calls: state.in_flight > 0,
            journal_bytes: self.journal.journal_bytes(),
            came_back: self.runner.get().and_then(ProgramRunner::came_back),
        })
    }

    /// Another program needs the runner.
    pub(super) fn release_runner(&mut self) {
        let is_waiting = self.waits_for().is_some();
        let Some(runner) = self.runner.get() else { return };
        if !is_waiting {
            return runner.decline();
        }
        self.runner.release(self.journal.state().inputs);
        self.detach_runner();
        self.shared.capacity.count_release();
    }

    /// Whether the active clock runs for a program without a runner. It is stopped while the program waits for one.
    pub(super) fn is_active_without_runner(&self) -> bool {
        let state = self.journal.state();
        match self.runner.is_released() && !self.runner.is_requested() {
            true if state.phase == ExecutionPhase::Running => self.does_wait_count(),
            true | false => state.active_at_rest().is_some(),
        }
    }

    /// Whether a wait counts as active time.
    pub(super) fn does_wait_count(&self) -> bool {
        let state = self.journal.state();
        match state.limits().active_clock {
            ActiveClock::StopsForCallsAndQuestions => state.held + state.in_flight == 0,
            ActiveClock::StopsForQuestions => !state.waits_for_people_or_sources(),
        }
    }

    /// A released program is restored.
    pub(super) fn came_back(&mut self) {
        let Some(runner) = self.runner.come_back() else { return };
        let cost = runner.cpu_in_all().unwrap_or_default();
        runner.note_return(self.shared.config.clock.now(), cost);
        if let Some(origin) = &self.journal.state().origin {
            self.shared.capacity.count_replay(&origin.caller.0, cost);
            // Runners are only taken from callers above their share: this replay is the price of that.
            self.shared.quotas.charge_cpu(&origin.caller, cost);
        }
    }

    /// A released program could not be restored, although it was released only to free capacity.
    pub(super) fn count_failed_return(&self, rejection: &Rejection) {
        if self.runner.is_released() {
            self.shared.capacity.count_failure();
            let advice = "the program is tried again";
            drop(Fault::new(format!("a released program was not restored: {rejection}"), advice));
        }
    }
}
