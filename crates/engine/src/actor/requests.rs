//! What callers and people want of an execution.

use super::calls::CallEnd;
use super::{Actor, Leave, Reply};
use crate::fault::Error;
use lifecycle::{
    Admission, Failure, FailureCode, Intent, Moment, Phase, QuestionId, Rejection, Rider, Runs,
    Stage, decide,
};
use std::time::Duration;
use uuid::Uuid;

/// How long a stopping server waits for tools at work, so that fewer calls end in doubt.
const CLOSING_GRACE: Duration = Duration::from_secs(3);

impl Actor {
    /// Looks at the clock for somebody, and answers once what came of it is kept.
    pub(super) fn wake(&mut self, reply: Reply) {
        self.look_at_clock();
        self.replies.push_back((self.ledger.newest_gate(), reply));
        self.answer_kept();
    }

    /// Decides on what somebody wants, and answers once it is kept.
    pub(super) fn request(&mut self, mut intent: Intent, reply: Reply) {
        if let Intent::Cancel { active_ms, .. } | Intent::Expire { active_ms, .. } = &mut intent {
            *active_ms = self.clockwork.active_ms;
        }
        if let Intent::Settle { call, .. } = intent
            && self.ledger.state.calls.get(&call).is_some_and(|call| call.nature.runs == Runs::Here)
        {
            // What runs here is settled here: nobody else may say how it ended.
            let _ = reply.send(Err(Rejection::NotOutstanding(call).into()));
            return;
        }
        if matches!(intent, Intent::Answer { .. }) {
            return self.answer_all(vec![intent], reply);
        }
        // It is brought back as after a restart.
        self.recovering |=
            matches!(intent, Intent::Continue { .. }) && self.ledger.state.phase == Phase::Parked;
        match self.is_known(&intent) {
            Ok(()) => self.decide_all(vec![intent], reply),
            Err(rejection) => drop(reply.send(Err(rejection.into()))),
        }
    }

    /// Takes all of these answers or none; of questions that are answered already, the first answer
    /// stands.
    pub(super) fn answer_all(&mut self, intents: Vec<Intent>, reply: Reply) {
        let intents = match self.acceptable(intents) {
            Ok(intents) => intents,
            Err(rejection) => return drop(reply.send(Err(rejection.into()))),
        };
        if self.ledger.state.phase == Phase::Parked {
            let advice = match self.ledger.state.entries_may_be_lost {
                true => {
                    "it is parked because entries may be lost; an administrator continues or cancels it"
                }
                false => "it was given up after three attempts; cancel it and start it again",
            };
            let failure = Failure::new(FailureCode::Internal, advice);
            let _ = reply.send(Err(Rejection::NotRestored(failure).into()));
            return;
        }
        for intent in &intents {
            if let Intent::Answer { question, .. } = intent {
                self.miss(*question);
            }
        }
        if !self.is_restored() {
            // An accepted answer must never be lost to a replay that fails: replay first.
            self.waiting.push((intents, reply));
            self.launch();
            return;
        }
        self.decide_all(intents, reply);
    }

    /// Those that are not answered yet, if there are any and each of them fits.
    fn acceptable(&self, intents: Vec<Intent>) -> Result<Vec<Intent>, Rejection> {
        let mut open = vec![];
        let mut answered = None;
        for mut intent in intents {
            self.look_up_today(&mut intent);
            match self.would_accept(&intent).and_then(|()| self.fits(&intent)) {
                Ok(()) => open.push(intent),
                Err(rejection @ Rejection::AlreadyAnswered(_)) => answered = Some(rejection),
                Err(rejection) => return Err(rejection),
            }
        }
        match answered {
            Some(rejection) if open.is_empty() => Err(rejection),
            Some(_) | None => Ok(open),
        }
    }

    /// The program is back where it was: now answers can be accepted.
    pub(super) fn answer_waiting(&mut self) {
        for (intents, reply) in std::mem::take(&mut self.waiting) {
            match self.acceptable(intents) {
                Ok(intents) => self.decide_all(intents, reply),
                Err(rejection) => drop(reply.send(Err(rejection.into()))),
            }
        }
        self.rest();
    }

    /// The program cannot be brought back: the questions stay open.
    pub(super) fn refuse_waiting(&mut self, rejection: &Rejection) {
        for (_, reply) in self.waiting.drain(..) {
            let _ = reply.send(Err(rejection.clone().into()));
        }
    }

    /// Tells those whose wishes are kept by now.
    pub(super) fn answer_kept(&mut self) {
        while let Some((gate, reply)) = self.replies.pop_front() {
            if !self.ledger.is_open(gate) {
                self.replies.push_front((gate, reply));
                return;
            }
            let _ = reply.send(Ok(()));
        }
    }

    /// The server stops: let tools at work end, keep what came of it, and go. The journal has the rest.
    pub(super) async fn close(&mut self) -> Leave {
        self.refuse_waiting(&Rejection::ShuttingDown);
        self.detach_runner();
        self.launching = None;
        let _ = tokio::time::timeout(CLOSING_GRACE, self.let_tools_end()).await;
        self.calls.abandon();
        match self.ledger.settle().await {
            Ok(()) => {
                self.answer_kept();
                Leave::Done
            }
            Err(error) => Leave::Broken(error),
        }
    }

    async fn let_tools_end(&mut self) {
        let harmful = |actor: &Self| {
            actor.ledger.state.calls.values().any(|call| {
                matches!(call.stage, Stage::Dispatched(_))
                    && !call.nature.read_only
                    && call.nature.runs == Runs::Here
            })
        };
        while harmful(self)
            && let Some((call, end)) = self.calls.next().await
        {
            // A call that waits for its source waits again after the next start.
            let CallEnd::Returned(outcome) = end else { continue };
            self.settle(call, outcome);
            self.ledger.flush(&self.shared.config.clock);
        }
    }

    fn decide_all(&mut self, intents: Vec<Intent>, reply: Reply) {
        for mut intent in intents {
            self.look_up_today(&mut intent);
            match self.submit(intent) {
                // The same question twice in one breath: the first answer stands.
                Ok(_) | Err(Rejection::AlreadyAnswered(_)) => {}
                Err(rejection) => return drop(reply.send(Err(Error::Rejected(rejection)))),
            }
        }
        self.replies.push_back((self.ledger.newest_gate(), reply));
        self.answer_kept();
    }

    fn look_up_today(&self, intent: &mut Intent) {
        if let Intent::Answer { question, rider, today, .. } = intent {
            *today = self.admitted_today(*question, rider);
        }
    }

    /// What the catalogue says by now about the call that a question holds, with what it would get.
    fn admitted_today(&self, question: QuestionId, rider: &Rider) -> Option<Admission> {
        let state = &self.ledger.state;
        let (question, _) = state.questions.get(&question)?;
        let call = state.calls.get(&question.call)?;
        let args = match rider {
            Rider::Arguments(edited) => edited.clone(),
            Rider::Nothing | Rider::Remember => state.args(question.call)?,
        };
        self.admit_held(call, &args)
    }

    /// Of an execution that nobody started, nothing can be wanted but that it starts.
    fn is_known(&self, intent: &Intent) -> Result<(), Rejection> {
        match (self.ledger.state.phase, intent) {
            (Phase::Unborn, Intent::Start { .. }) => Ok(()),
            (Phase::Unborn, _) => Err(Rejection::UnknownExecution(self.ledger.execution)),
            _ => Ok(()),
        }
    }

    fn would_accept(&self, intent: &Intent) -> Result<(), Rejection> {
        self.is_known(intent)?;
        let state = &self.ledger.state;
        let at = self.shared.config.clock.now();
        let moment = Moment { at, entropy: Uuid::nil() };
        decide(state, &self.shared.config.policies.live(), moment, intent.clone()).map(drop)
    }

    fn is_restored(&self) -> bool {
        self.runner.as_ref().is_some_and(|runner| !runner.replaying)
    }
}
