//! What the guest's side says, turned into intents.

use super::Actor;
use super::guest::{Said, in_own_words};
use lifecycle::{
    Admission, CallId, Convention, Failure, FailureCode, Intent, Json, LimitKind, Nature, Phase,
    Rejection, Runs, ToolPath, Traits, Verdict,
};
use sandbox::Exit;

impl Actor {
    /// Takes one thing the guest's side said.
    pub(super) fn hear(&mut self, said: Said) {
        if self.guest.is_none() {
            return; // said before it was stopped
        }
        let active_ms = self.clockwork.active_ms;
        let intent = match said {
            Said::Ready(prepared) => Intent::Ready(prepared),
            Said::Called { call, tool, args, line } => {
                let (tool, alias) = self.resolve(tool);
                let admission = self.admission(call, (&tool, alias.as_ref()), &args);
                Intent::Call { call, tool, args, line, alias, admission }
            }
            Said::Logged { mark, level, line } => Intent::Log { mark, level, line },
            Said::Emitted { mark, item } => Intent::Emit { mark, item },
            Said::TimerSet { timer, delay_ms } => Intent::SetTimer { timer, delay_ms },
            Said::TimerCleared { timer } => Intent::ClearTimer { timer },
            Said::Idle(inputs) => {
                if let Some(guest) = &mut self.guest {
                    guest.rested = Some(inputs);
                }
                // Who waits with an answer will not find it paused a moment later.
                if !self.is_at_rest() || !self.waiting.is_empty() {
                    return;
                }
                Intent::Rest { inputs, active_ms }
            }
            Said::Counted(iterations) => return self.ledger.count(iterations),
            Said::Restored => return self.restored(),
            Said::Diverged(what) => return self.went_astray(Rejection::Diverged { what }),
            Said::Done(_) if self.is_coming_back() => {
                let what = "its end".to_owned();
                return self.went_astray(Rejection::Diverged { what });
            }
            Said::Done(Ok(value)) => Intent::Finish { result: Ok(value), active_ms },
            Said::Done(Err((_, Some(limit)))) => Intent::Expire { limit, active_ms },
            Said::Done(Err((failure, None))) => {
                let origin = self.ledger.state.origin.as_ref();
                let codes = origin.map(|origin| origin.terms.codes).unwrap_or_default();
                let failure = in_own_words(failure, codes);
                Intent::Finish { result: Err(failure), active_ms }
            }
            Said::Nonsense(what) => return self.went_astray(Rejection::Unruly(what)),
            Said::Gone(exit) => return self.lost(&exit),
        };
        let ends = matches!(intent, Intent::Finish { .. });
        let guest = if ends { self.release_guest() } else { None };
        if let Err(rejection) = self.submit(intent) {
            self.went_astray(rejection);
        }
        if let Some(guest) = guest {
            guest.finish();
        }
    }

    /// What the catalogue says about a call; a blocked tool is not in it.
    pub(super) fn admit(&self, tool: &ToolPath, args: &Json) -> Admission {
        let policy = self.shared.config.policies.live();
        let catalogue = &self.shared.config.catalogue;
        let mut admission =
            catalogue.admit_seen(tool, args, |found| !policy.shows(&found.path(), found.traits()));
        // To take a fingerprint of all that is said about a tool costs time: only for those who are asked.
        if let Admission::Fit { traits, revision, about, .. } = &mut admission
            && matches!(policy.verdict(tool, *traits), Verdict::Ask { .. })
        {
            // Nobody is asked about a call that could not be made.
            if let Some(told) = catalogue.objection(tool, args) {
                return Admission::Told(told);
            }
            match catalogue.compose_question(tool, args) {
                Some(Ok(question)) => *about = Some(question),
                Some(Err(told)) => return Admission::Told(told),
                None => {}
            }
            *revision = catalogue.revision(tool);
        }
        admission
    }

    /// The tool that the program means, and the alias by which it does, if it used one.
    fn resolve(&self, said: ToolPath) -> (ToolPath, Option<ToolPath>) {
        match &self.ledger.state.origin {
            Some(origin) => origin.terms.resolve(said),
            None => (said, None),
        }
    }

    fn admission(
        &self,
        call: CallId,
        (tool, alias): (&ToolPath, Option<&ToolPath>),
        args: &Json,
    ) -> Admission {
        let (state, catalogue) = (&self.ledger.state, &self.shared.config.catalogue);
        // A call that replay makes again is judged by what was recorded, not by today's catalogue.
        if state.calls.contains_key(&call) {
            return Admission::Unfit(Failure::new(FailureCode::Internal, "known"));
        }
        let at_caller = state.origin.as_ref().is_some_and(|origin| origin.terms.caller_runs(tool));
        if at_caller && catalogue.find(tool).is_none() && !catalogue.is_undescribed(tool) {
            let nature = Nature { read_only: false, runs: Runs::AtCaller };
            let traits = Traits::lasting(false);
            return Admission::Fit { nature, traits, about: None, revision: None };
        }
        let admission = self.admit_as(tool, alias, args);
        let is_executor = state
            .origin
            .as_ref()
            .is_some_and(|origin| origin.program.convention == Convention::ExplicitReturn);
        // Programs of the other protocols expect an exception.
        match &admission {
            Admission::Unfit(failure) if is_executor && alias.is_none() => {
                let value = catalogue.unknown_namespace_value(tool, failure);
                value.map_or(admission, Admission::Told)
            }
            Admission::Unfit(_)
            | Admission::Told(_)
            | Admission::Unavailable(_)
            | Admission::Fit { .. } => admission,
        }
    }

    /// The same for a call by an alias, if it is one: its result is the tool's own value, and its failure is thrown.
    pub(super) fn admit_as(
        &self,
        tool: &ToolPath,
        alias: Option<&ToolPath>,
        args: &Json,
    ) -> Admission {
        let admission = self.admit(tool, args);
        match (admission, alias) {
            (Admission::Told(told), Some(_)) => match tools::envelope::unwrapped(&told) {
                Ok(_) => Admission::Told(told),
                Err(failure) => Admission::Unfit(failure),
            },
            (admission, _) => admission,
        }
    }

    /// The runner is gone before its program ended.
    fn lost(&mut self, exit: &Exit) {
        let sentence = match exit {
            Exit::Lost => {
                // Not the guest's doing: give it another runner and go on where it was.
                self.release_guest();
                return self.launch();
            }
            Exit::KilledFromOutside => return self.killed_from_outside(),
            Exit::OutOfMemory if self.is_replaying() => {
                let sentence = "The system ran out of memory during the replay.";
                let failure = Failure::new(FailureCode::MemoryLimit, sentence);
                return self.not_restored(Rejection::NotRestored(failure));
            }
            Exit::OutOfMemory => {
                let active_ms = self.clockwork.active_ms;
                return self.end(Intent::Expire { limit: LimitKind::Memory, active_ms });
            }
            Exit::Crashed { signal } => {
                format!("The program crashed its sandbox (signal {signal}).")
            }
            Exit::Violation => "The program tried something its sandbox forbids.".to_owned(),
            Exit::Unruly => "The program broke its sandbox's rules.".to_owned(),
            Exit::Ended | Exit::Killed => "The program's sandbox ended unexpectedly.".to_owned(),
        };
        self.went_wrong(Failure::new(FailureCode::Internal, sentence));
    }

    /// Another process killed the runner. That is not the guest's doing, but what causes it may be what the program does:
    /// it counts as a failed recovery, so that it does not go on for ever.
    fn killed_from_outside(&mut self) {
        self.release_guest();
        let why = "its runner was killed from outside".to_owned();
        let failure = Failure::new(FailureCode::Internal, why.clone());
        let _ = self.submit(Intent::FailRecovery { why });
        if self.is_over() {
            self.refuse_waiting(&Rejection::NotRestored(failure));
        } else if self.ledger.state.phase == Phase::Running || !self.waiting.is_empty() {
            self.launch();
        }
    }

    fn is_replaying(&self) -> bool {
        self.guest.as_ref().is_some_and(|guest| guest.replaying)
    }

    /// The runner did what it must not: stop it, and blame the program.
    fn went_astray(&mut self, rejection: Rejection) {
        if self.is_replaying() {
            return self.not_restored(rejection);
        }
        if self.ledger.state.phase != Phase::Finished {
            tracing::warn!(execution = %self.ledger.execution, %rejection, "runner went astray");
            let sentence = "The program broke its sandbox's rules.";
            self.went_wrong(Failure::new(FailureCode::Internal, sentence));
        }
    }

    fn went_wrong(&mut self, failure: Failure) {
        if self.is_replaying() {
            return self.not_restored(Rejection::NotRestored(failure));
        }
        let active_ms = self.clockwork.active_ms;
        self.end(Intent::Finish { result: Err(failure), active_ms });
    }

    pub(super) fn end(&mut self, intent: Intent) {
        self.release_guest();
        match self.submit(intent) {
            Ok(_) | Err(Rejection::AlreadyFinished) => {}
            Err(rejection) => tracing::warn!(%rejection, "an ending was refused"),
        }
    }
}
