//! Giving a program its runner: the first time, after a pause, after a restart.

use super::Actor;
use super::program_runner::{ProgramRunner, Resumption};
use lifecycle::{InputIndex, Intent, Phase, Rejection, Seq};
use sandbox::{Demand, Lease, LeaseError, RunnerLoss};
use store::StoreError;

impl Actor {
    /// Asks for a runner, unless there is one or one is under way.
    pub(super) fn launch(&mut self) {
        if self.runner.is_some() || self.launching.is_some() || self.is_over() {
            return;
        }
        let state = &self.ledger.state;
        let demand = Demand {
            memory_bytes: state.limits().memory_bytes_max,
            caller: state.origin.as_ref().map(|origin| origin.caller.to_string()),
            is_held: false,
        };
        self.launching = Some(self.shared.sandbox.request_lease(demand));
    }

    /// A runner is there: hand it the program and all inputs the journal knows.
    pub(super) async fn leased(
        &mut self,
        lease: Result<Lease, LeaseError>,
    ) -> Result<(), StoreError> {
        self.launching = None;
        let lease = match lease {
            Ok(lease) => lease,
            Err(error) => {
                tracing::error!(%error, "no runner");
                self.no_runner(&RunnerLoss::NotLeased(error));
                return Ok(());
            }
        };
        if self.is_over() {
            return Ok(());
        }
        if self.ledger.state.inputs.0 > 0 {
            self.ledger.settle().await?;
            self.answer_kept();
        }
        let state = &self.ledger.state;
        let inputs = self.released.map_or(state.inputs, |released| released.inputs);
        let resumption =
            Resumption { began: self.ledger.began(), inputs, cpu_spent_ms: self.cpu_spent_ms };
        let Some(mut runner) = ProgramRunner::start(lease, state, resumption) else {
            return Ok(());
        };
        if runner.replaying && inputs == InputIndex(0) {
            runner.ask_when_restored();
        }
        let mut after = Seq(0);
        while runner.delivered < self.ledger.state.inputs {
            let entries = self.ledger.page(after).await?;
            let Some(last) = entries.last() else { break };
            after = last.seq;
            runner.replay(&entries);
        }
        self.clockwork.begin(self.shared.config.clock.now());
        self.runner = Some(runner);
        Ok(())
    }

    /// The program is where the journal left it.
    pub(super) fn restored(&mut self) {
        self.came_back();
        if let Some(runner) = &mut self.runner {
            runner.begin_own_work();
        }
        self.recovering = false;
        self.clockwork.begin(self.shared.config.clock.now());
        self.answer_waiting();
    }

    /// The program could not be brought back to where it was.
    pub(super) fn not_restored(&mut self, rejection: Rejection) {
        tracing::warn!(execution = %self.ledger.execution, %rejection, "not restored");
        self.count_failed_return(&rejection);
        self.detach_runner();
        self.refuse_waiting(&rejection);
        if self.ledger.state.phase == Phase::Paused && !self.recovering {
            return; // the question stays open; the next answer tries again
        }
        self.recovering = true;
        let _ = self.submit(Intent::FailRecovery { why: rejection.to_string() });
        if !self.is_over() {
            self.launch();
        }
    }

    fn no_runner(&mut self, loss: &RunnerLoss) {
        let failure = loss.failure();
        match self.ledger.state.prepared {
            // It ran before and will run again: keep it for a better day.
            Some(_) => self.not_restored(Rejection::NotRestored(failure)),
            None => {
                let active_ms = self.clockwork.active_ms;
                self.end(Intent::Finish { result: Err(failure), active_ms });
            }
        }
    }

    /// Whoever ran this is gone: settle what is in doubt, then go on unless only people can help.
    pub(super) fn recover(&mut self) {
        if self.is_over() {
            return;
        }
        self.recovering = true;
        if let Err(rejection) = self.submit(Intent::Recover) {
            tracing::warn!(%rejection, "recovery was refused");
        }
        let state = &self.ledger.state;
        let at_rest = state.rested == Some(state.inputs) && state.only_others_can_help();
        if !(at_rest && state.phase == Phase::Paused) {
            self.launch();
        }
    }

    /// Gives the runner back although the program is not over: everything waits for people.
    pub(super) fn cool_down(&mut self) {
        if self.is_warm_pause() {
            self.detach_runner();
        }
    }

    /// Whether a runner is kept only in the hope of an early answer.
    pub(super) fn is_warm_pause(&self) -> bool {
        self.ledger.state.phase == Phase::Paused
            && self.waiting.is_empty()
            && self.runner.as_ref().is_some_and(|runner| !runner.replaying)
    }

    /// Whether the guest has taken every input there is and waits.
    pub(super) fn is_at_rest(&self) -> bool {
        self.runner.as_ref().is_some_and(|runner| runner.rested == Some(self.ledger.state.inputs))
    }

    pub(super) fn is_over(&self) -> bool {
        match self.ledger.state.phase {
            Phase::Unborn | Phase::Parked | Phase::Finished => true,
            Phase::Running | Phase::Paused => false,
        }
    }
}
