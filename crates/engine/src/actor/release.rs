//! Gives the runner of a program that only waits to others, and brings the program back when it has something to do.

use super::Actor;
use crate::capacity::{OfferedRunner, Waiting};
use crate::fault::Fault;
use lifecycle::{ActiveClock, InputIndex, Phase, Rejection};

/// A program that runs although it has no runner at present.
#[derive(Debug, Clone, Copy)]
pub(super) struct Released {
    /// The inputs that it had received. A replay repeats these and no more: what follows is the program's own work.
    pub(super) inputs: InputIndex,
}

impl Actor {
    /// Offers the runner while the program only waits.
    pub(super) fn offer_runner(&mut self) {
        let waiting = self.waits_for();
        let Some(runner) = &mut self.runner else { return };
        if runner.held.is_none() && waiting.is_some() {
            let Some(origin) = &self.ledger.state.origin else { return };
            let Some(meter) = runner.meter() else { return };
            let of = (origin.caller.to_string(), origin.limits.memory_bytes_max);
            let execution = self.ledger.execution;
            runner.held = Some(OfferedRunner::register(&self.shared, execution, of, meter));
        }
        if let Some(held) = &runner.held {
            held.offer(waiting);
        }
    }

    /// What the program waits for, if it has taken every input and nothing is under way that needs its runner.
    fn waits_for(&mut self) -> Option<Waiting> {
        let is_waiting = self.is_at_rest()
            && self.waiting.is_empty()
            && self.due.is_empty()
            && self.runner.as_ref().is_some_and(|runner| !runner.replaying);
        if !is_waiting {
            self.rests_since = None;
            return None;
        }
        let now = self.shared.config.clock.now();
        let state = &self.ledger.state;
        Some(Waiting {
            since: *self.rests_since.get_or_insert(now),
            due: state.timers.values().min().copied(),
            has_calls: state.in_flight > 0,
            journal_bytes: self.ledger.journal_bytes(),
            came_back: self.runner.as_ref().and_then(|runner| runner.came_back),
        })
    }

    /// Others need the runner.
    pub(super) fn release_runner(&mut self) {
        let is_waiting = self.waits_for().is_some();
        let Some(runner) = &mut self.runner else { return };
        if !is_waiting {
            if let Some(held) = &runner.held {
                held.decline();
            }
            return;
        }
        // What it used counts on, also in the next runner.
        self.cpu_spent_ms += runner.cpu_ms();
        self.released = Some(Released { inputs: self.ledger.state.inputs });
        self.detach_runner();
        self.shared.capacity.count_release();
    }

    /// Whether the active clock runs for a program without a runner. It stands still while the program waits for one.
    pub(super) fn is_active_without_runner(&self) -> bool {
        let state = &self.ledger.state;
        match (self.released, &self.launching) {
            (Some(_), None) if state.phase == Phase::Running => self.does_wait_count(),
            (Some(_) | None, _) => state.active_at_rest().is_some(),
        }
    }

    /// Whether a wait counts as active time.
    pub(super) fn does_wait_count(&self) -> bool {
        let state = &self.ledger.state;
        match state.limits().active_clock {
            ActiveClock::StopsForCallsAndQuestions => state.held + state.in_flight == 0,
            ActiveClock::StopsForQuestions => !state.waits_for_people_or_sources(),
        }
    }

    /// Whether the runner repeats what the program did before its runner was released.
    pub(super) fn is_coming_back(&self) -> bool {
        self.released.is_some() && self.runner.as_ref().is_some_and(|runner| runner.replaying)
    }

    /// A released program is where it was.
    pub(super) fn came_back(&mut self) {
        let (Some(_), Some(runner)) = (self.released.take(), &mut self.runner) else { return };
        let cost = runner.cpu_in_all().unwrap_or_default();
        runner.came_back = Some((self.shared.config.clock.now(), cost));
        if let Some(origin) = &self.ledger.state.origin {
            self.shared.capacity.count_replay(&origin.caller.0, cost);
            // Runners are only taken from callers above their share: this replay is the price of that.
            self.shared.quotas.charge_cpu(&origin.caller, cost);
        }
    }

    /// A released program could not be brought back, although nothing but our need for its runner made that necessary.
    pub(super) fn count_failed_return(&self, rejection: &Rejection) {
        if self.released.is_some() {
            self.shared.capacity.count_failure();
            let advice = "the program is tried again";
            drop(Fault::new(format!("a released program was not restored: {rejection}"), advice));
        }
    }
}
