//! Answers of people. `lifecycle::decide_answers` is the single place that decides on them. The actor adds what the journal
//! does not contain, and restores the program first if necessary.

use super::{ExecutionActor, ReplySender};
use crate::fault::Fault;
use lifecycle::{
    Answer, AnswerExtras, CallAdmission, CallId, CallStage, ExecutionPhase, GivenAnswer,
    HeldCallFacts, Json, QuestionKind, Rejection,
};

/// Answers that are decided as soon as the program is restored.
#[derive(Default)]
pub(super) struct WaitingAnswers(Vec<(Vec<GivenAnswer>, ReplySender)>);

impl WaitingAnswers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The program cannot be restored: the questions stay open.
    pub(super) fn refuse(&mut self, rejection: &Rejection) {
        for (_, reply) in self.0.drain(..) {
            let _ = reply.send(Err(rejection.clone().into()));
        }
    }

    /// The journal failed: whether the question still exists is unknown.
    pub(super) fn fail(&mut self, fault: &Fault) {
        for (_, reply) in self.0.drain(..) {
            let _ = reply.send(Err(fault.clone().into()));
        }
    }
}

impl ExecutionActor {
    /// Takes all of these answers or none, and replies once they are durable.
    pub(super) fn answer_question(&mut self, answers: Vec<GivenAnswer>, reply: ReplySender) {
        match self.decide_answers(&answers) {
            Ok(true) => {
                self.replies.push(self.journal.newest_gate(), reply);
                self.replies.send_kept(&self.journal);
            }
            Ok(false) => {
                self.answers.0.push((answers, reply));
                self.launch();
            }
            Err(rejection) => drop(reply.send(Err(rejection.into()))),
        }
    }

    /// Decides on the answers that waited until the program was restored.
    pub(super) fn answer_waiting(&mut self) {
        for (answers, reply) in std::mem::take(&mut self.answers.0) {
            self.answer_question(answers, reply);
        }
        self.rest();
    }

    /// Records the answers; false if the program must be restored first.
    fn decide_answers(&mut self, answers: &[GivenAnswer]) -> Result<bool, Rejection> {
        if self.journal.state().phase == ExecutionPhase::Unborn {
            return Err(Rejection::UnknownExecution(self.journal.execution()));
        }
        let with_facts = answers.iter().map(|given| (given.clone(), self.held_call_facts(given)));
        let with_facts = with_facts.collect();
        let at = self.shared.config.clock.now();
        let policy = self.shared.config.policies.live();
        let is_restored = self.runner.is_restored();
        let Some((duties, gate)) =
            self.journal.decide_answer(&policy, at, with_facts, is_restored)?
        else {
            return Ok(false);
        };
        for duty in duties {
            self.owe(duty, at, gate);
        }
        Ok(true)
    }

    fn held_call_facts(&self, given: &GivenAnswer) -> HeldCallFacts {
        let Some((question, None)) = self.journal.state().questions.get(&given.question) else {
            return HeldCallFacts::default();
        };
        HeldCallFacts {
            today: self.admitted_today(question.call, &given.rider),
            misfit: form_misfit(&question.kind, &given.answer),
            is_tool_gone: self.is_tool_gone(question.call),
        }
    }

    /// The present admission of a held call, with the arguments that it would get.
    fn admitted_today(&self, call: CallId, rider: &AnswerExtras) -> Option<CallAdmission> {
        let state = self.journal.state();
        let args = match rider {
            AnswerExtras::Arguments(edited) => edited.clone(),
            AnswerExtras::Nothing | AnswerExtras::Remember => state.args(call)?,
        };
        self.admit_held(state.calls.get(&call)?, &args)
    }

    /// Whether the tool that asked during `call` is gone, because its server died.
    fn is_tool_gone(&self, call: CallId) -> bool {
        let stage = self.journal.state().calls.get(&call).map(|call| &call.stage);
        matches!(stage, Some(CallStage::Asking(_))) && !self.questions.is_at_work(call)
    }
}

/// Why the content of an answer does not match the form, if it does not.
fn form_misfit(kind: &QuestionKind, answer: &Answer) -> Option<String> {
    let (QuestionKind::Form { schema }, Answer::Accept { content }) = (kind, answer) else {
        return None;
    };
    let nothing = Json::parse("{}".to_owned()).expect("an empty object is JSON");
    tools::misfit(schema, content.as_ref().unwrap_or(&nothing))
}
