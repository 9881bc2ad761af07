//! Leases a runner for a program: at the start, after a pause, after a restart.

use super::ExecutionActor;
use super::program_runner::{ProgramRunner, ReplayStart};
use lifecycle::{ExecutionPhase, InputIndex, Intent, Rejection, Seq};
use sandbox::{Lease, LeaseDemand, LeaseError, RunnerLoss};
use store::StoreError;

impl ExecutionActor {
    /// Requests a runner, unless there is one or one was requested.
    pub(super) fn launch(&mut self) {
        if !self.runner.is_empty() || self.is_over() {
            return;
        }
        let state = self.journal.state();
        let demand = LeaseDemand {
            memory_bytes: state.limits().memory_bytes_max,
            caller: state.origin.as_ref().map(|origin| origin.caller.to_string()),
            is_held: false,
        };
        self.runner.request(self.shared.sandbox.request_lease(demand));
    }

    /// A runner was leased: passes it the program and all recorded inputs.
    pub(super) async fn leased(
        &mut self,
        lease: Result<Lease, LeaseError>,
    ) -> Result<(), StoreError> {
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
        if self.journal.state().inputs.0 > 0 {
            self.journal.flush_appends().await?;
            self.replies.send_kept(&self.journal);
        }
        let state = self.journal.state();
        let inputs = self.runner.inputs_to_repeat(state.inputs);
        let resumption = ReplayStart {
            began: self.journal.began(),
            inputs,
            cpu_spent_ms: self.runner.cpu_spent_ms(),
        };
        let Some(mut runner) = ProgramRunner::start(lease, state, resumption) else {
            return Ok(());
        };
        if runner.is_replaying() && inputs == InputIndex(0) {
            runner.ask_when_restored();
        }
        let mut after = Seq(0);
        while runner.delivered() < self.journal.state().inputs {
            let entries = self.journal.page(after).await?;
            let Some(last) = entries.last() else { break };
            after = last.seq;
            runner.replay(&entries);
        }
        self.clock.begin_activity(self.shared.config.clock.now());
        self.runner.put(runner);
        Ok(())
    }

    /// The program is restored to the state of the journal.
    pub(super) fn restored(&mut self) {
        self.came_back();
        if let Some(runner) = self.runner.get_mut() {
            runner.begin_own_work();
        }
        self.runner.set_recovering(false);
        self.clock.begin_activity(self.shared.config.clock.now());
        self.answer_waiting();
    }

    /// The program could not be restored.
    pub(super) fn not_restored(&mut self, rejection: Rejection) {
        tracing::warn!(execution = %self.journal.execution(), %rejection, "not restored");
        self.count_failed_return(&rejection);
        self.detach_runner();
        self.answers.refuse(&rejection);
        if self.journal.state().phase == ExecutionPhase::Paused && !self.runner.is_recovering() {
            return; // the question stays open; the next answer tries again
        }
        self.runner.set_recovering(true);
        let _ = self.submit(Intent::FailRecovery { why: rejection.to_string() });
        if !self.is_over() {
            self.launch();
        }
    }

    fn no_runner(&mut self, loss: &RunnerLoss) {
        let failure = loss.failure();
        match self.journal.state().prepared {
            // It ran before and will run again: it is retained for a later attempt.
            Some(_) => self.not_restored(Rejection::NotRestored(failure)),
            None => {
                let active_ms = self.clock.active_ms();
                self.end_with(Intent::Finish { result: Err(failure), active_ms });
            }
        }
    }

    /// The previous server is gone: settles what is in doubt, then continues unless only people can help.
    pub(super) fn recover(&mut self) {
        if self.is_over() {
            return;
        }
        self.runner.set_recovering(true);
        if let Err(rejection) = self.submit(Intent::Recover) {
            tracing::warn!(%rejection, "recovery was refused");
        }
        let state = self.journal.state();
        let at_rest = state.rested == Some(state.inputs) && state.only_others_can_help();
        if !(at_rest && state.phase == ExecutionPhase::Paused) {
            self.launch();
        }
    }

    /// Releases the runner of a program that waits only for people.
    pub(super) fn cool_down(&mut self) {
        if self.is_warm_pause() {
            self.detach_runner();
        }
    }

    /// Whether a runner is retained only in case of an early answer.
    pub(super) fn is_warm_pause(&self) -> bool {
        self.journal.state().phase == ExecutionPhase::Paused
            && self.answers.is_empty()
            && self.runner.is_restored()
    }

    /// Whether the guest has consumed every input and waits.
    pub(super) fn is_at_rest(&self) -> bool {
        self.runner.is_at_rest(self.journal.state().inputs)
    }

    pub(super) fn is_over(&self) -> bool {
        match self.journal.state().phase {
            ExecutionPhase::Unborn | ExecutionPhase::Parked | ExecutionPhase::Finished => true,
            ExecutionPhase::Running | ExecutionPhase::Paused => false,
        }
    }
}
