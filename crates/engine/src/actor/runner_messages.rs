//! Converts messages of the runner into intents, and handles the loss of the runner.

use super::ExecutionActor;
use super::call_results::program_failure;
use lifecycle::{ExecutionPhase, Failure, FailureCode, Intent, Json, LimitKind, Rejection};
use sandbox::{LossMeaning, ProgramFailure, RunnerLoss, RunnerMessage};

impl ExecutionActor {
    /// Handles one message of the runner.
    pub(super) fn handle_runner_message(&mut self, message: RunnerMessage) {
        if !self.runner.has_runner() {
            return; // sent before it was stopped
        }
        let active_ms = self.clock.active_ms();
        let intent = match message {
            RunnerMessage::Started(Some(prepared)) => Intent::Ready(prepared),
            RunnerMessage::ToolCalled { call, tool, args, line } => {
                let (tool, alias) = self.resolve(tool);
                let admission = self.admission(call, (&tool, alias.as_ref()), &args);
                Intent::Call { call, tool, args, line, alias, admission }
            }
            RunnerMessage::Logged { mark, level, line, exact: _ } => {
                Intent::Log { mark, level, line }
            }
            RunnerMessage::Emitted { mark, item } => Intent::Emit { mark, item },
            RunnerMessage::TimerSet { timer, delay_ms } => Intent::SetTimer { timer, delay_ms },
            RunnerMessage::TimerCleared { timer } => Intent::ClearTimer { timer },
            RunnerMessage::Idle(inputs) => {
                if let Some(runner) = self.runner.get_mut() {
                    runner.rest(inputs);
                }
                // A client that waits with an answer would otherwise find it running a moment later.
                if !self.is_at_rest() || !self.answers.is_empty() {
                    return;
                }
                Intent::Rest { inputs, active_ms }
            }
            RunnerMessage::Counted(iterations) => return self.journal.count(iterations),
            RunnerMessage::Synced => return self.restored(),
            RunnerMessage::Diverged(what) => return self.went_astray(Rejection::Diverged { what }),
            RunnerMessage::Done(_) if self.runner.is_coming_back() => {
                let what = "its end".to_owned();
                return self.went_astray(Rejection::Diverged { what });
            }
            RunnerMessage::Done(result) => self.end_of_program(result),
            RunnerMessage::Lost(loss) => return self.handle_loss(&loss),
            RunnerMessage::Leased
            | RunnerMessage::Started(None)
            | RunnerMessage::HostToolCalled(_)
            | RunnerMessage::TimersChanged
            | RunnerMessage::TooManyTimers
            | RunnerMessage::Session(_) => {
                return self.went_astray(Rejection::Unruly("a message of another link"));
            }
        };
        let ends = matches!(intent, Intent::Finish { .. });
        let runner = if ends { self.detach_runner() } else { None };
        if let Err(rejection) = self.submit(intent) {
            self.went_astray(rejection);
        }
        if let Some(runner) = runner {
            runner.finish();
        }
    }

    /// Interprets the program's own end: a limit that its runner enforces is one of ours.
    fn end_of_program(&self, result: Result<Option<Json>, ProgramFailure>) -> Intent {
        let active_ms = self.clock.active_ms();
        match result.map_err(ProgramFailure::into_failure) {
            Ok(value) => Intent::Finish { result: Ok(value), active_ms },
            Err((_, Some(limit))) => Intent::Expire { limit, active_ms },
            Err((failure, None)) => {
                let origin = self.journal.state().origin.as_ref();
                let codes = origin.map(|origin| origin.terms.codes).unwrap_or_default();
                let failure = program_failure(failure, codes);
                Intent::Finish { result: Err(failure), active_ms }
            }
        }
    }

    /// The runner was lost before its program ended.
    fn handle_loss(&mut self, loss: &RunnerLoss) {
        match loss.meaning() {
            LossMeaning::Restart => {
                self.detach_runner();
                self.launch();
            }
            LossMeaning::CountedRestart => self.killed_from_outside(),
            LossMeaning::BrokeRules(what) => self.went_astray(Rejection::Unruly(what)),
            LossMeaning::OutOfMemory if !self.runner.is_replaying() => {
                let active_ms = self.clock.active_ms();
                self.end_with(Intent::Expire { limit: LimitKind::Memory, active_ms });
            }
            LossMeaning::OutOfMemory => {
                self.not_restored(Rejection::NotRestored(loss.replay_failure()));
            }
            LossMeaning::Failed => self.went_wrong(loss.failure()),
        }
    }

    /// Another process killed the runner. The guest did not cause this directly, but its behaviour may:
    /// it counts as a failed recovery, so that it does not repeat forever.
    fn killed_from_outside(&mut self) {
        self.detach_runner();
        let why = "its runner was killed from outside".to_owned();
        let failure = Failure::new(FailureCode::Internal, why.clone());
        let _ = self.submit(Intent::FailRecovery { why });
        if self.is_over() {
            self.answers.refuse(&Rejection::NotRestored(failure));
        } else if self.journal.state().phase == ExecutionPhase::Running || !self.answers.is_empty()
        {
            self.launch();
        }
    }

    /// The runner violated the protocol: stops it, and blames the program.
    fn went_astray(&mut self, rejection: Rejection) {
        if self.runner.is_replaying() {
            return self.not_restored(rejection);
        }
        if self.journal.state().phase != ExecutionPhase::Finished {
            tracing::warn!(execution = %self.journal.execution(), %rejection, "runner went astray");
            self.went_wrong(RunnerLoss::Malformed("what the rules refuse").failure());
        }
    }

    fn went_wrong(&mut self, failure: Failure) {
        if self.runner.is_replaying() {
            return self.not_restored(Rejection::NotRestored(failure));
        }
        let active_ms = self.clock.active_ms();
        self.end_with(Intent::Finish { result: Err(failure), active_ms });
    }

    pub(super) fn end_with(&mut self, intent: Intent) {
        self.detach_runner();
        match self.submit(intent) {
            Ok(_) | Err(Rejection::AlreadyFinished) => {}
            Err(rejection) => tracing::warn!(%rejection, "an ending was refused"),
        }
    }
}
