//! The one decision on answers of people: whether they count, count once the program is replayed, or do not count. Pure.

use crate::answered::within;
use crate::{
    Answer, AnswerAuthor, AnswerExtras, CallAdmission, CallId, DecisionMoment, Event,
    ExecutionPhase, Failure, FailureCode, Intent, Policy, QuestionId, Rejection, State, decide,
};
use std::collections::BTreeSet;
use uuid::Uuid;

/// What a person answered to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenAnswer {
    /// The question.
    pub question: QuestionId,
    /// The answer.
    pub answer: Answer,
    /// Who answers, and as whom.
    pub by: AnswerAuthor,
    /// What comes with a yes.
    pub rider: AnswerExtras,
}

/// What is known about the held call at the moment of the decision, beside the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldCallFacts {
    /// The catalogue's present statement about the call with the arguments of the dispatch; none where it was not looked up.
    pub today: Option<CallAdmission>,
    /// Why what was filled in is not what the question's form asks for, if it is not.
    pub misfit: Option<String>,
    /// The tool that asked is gone, because the server that ran it died.
    pub is_tool_gone: bool,
}

/// What comes of answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerDecision {
    /// They count, and this happens.
    Accepted(Vec<Event>),
    /// They would count, but the program is not where the journal left it. They are decided on once it is: an accepted
    /// answer must never be lost to a replay that fails.
    AfterReplay,
}

impl DecisionMoment {
    /// The same moment with other randomness, for the `n`-th of several decisions that are made together.
    const fn nth(self, n: u32) -> Self {
        Self { entropy: Uuid::from_u128(self.entropy.as_u128() ^ n as u128), ..self }
    }
}

/// Decides on all of these answers together: all count or none does. Of a question that is answered already, the first
/// answer stands, also where that comes earlier in `answers`. `is_restored` says whether the program is where the journal
/// left it.
pub fn decide_answers(
    state: &State,
    policy: &Policy,
    moment: DecisionMoment,
    answers: Vec<(GivenAnswer, HeldCallFacts)>,
    is_restored: bool,
) -> Result<AnswerDecision, Rejection> {
    let (mut events, mut tools_gone) = (vec![], BTreeSet::new());
    let (mut taken, mut edited_bytes) = (BTreeSet::new(), 0);
    let mut already_answered = None;
    for ((given, facts), n) in answers.into_iter().zip(0..) {
        let question = given.question;
        let HeldCallFacts { today, misfit, is_tool_gone } = facts;
        let edited = match &given.rider {
            AnswerExtras::Arguments(edited) => edited.as_text().len() as u64,
            AnswerExtras::Nothing | AnswerExtras::Remember => 0,
        };
        let decided = decide(state, policy, moment.nth(n), given.into_intent(today));
        match decided {
            Ok(_) if misfit.is_some() => {
                return Err(Rejection::BadAnswer(misfit.unwrap_or_default().into()));
            }
            Ok(of_answer) if taken.insert(question) => {
                events.extend(of_answer);
                edited_bytes += edited;
                tools_gone.extend(call_of(state, question).filter(|_| is_tool_gone));
            }
            Ok(_) => {}
            Err(rejection @ Rejection::AlreadyAnswered(_)) => already_answered = Some(rejection),
            Err(rejection) => return Err(rejection),
        }
    }
    if let (true, Some(rejection)) = (taken.is_empty(), already_answered) {
        return Err(rejection);
    }
    within(state, edited_bytes)?;
    if state.phase == ExecutionPhase::Parked {
        return Err(Rejection::NotRestored(parked(state)));
    }
    if !is_restored {
        return Ok(AnswerDecision::AfterReplay);
    }
    // Before its answer: what becomes of a call whose tool is gone depends on its open questions.
    let n_taken = u32::try_from(taken.len()).unwrap_or(u32::MAX);
    let mut happens = vec![];
    for (call, n) in tools_gone.into_iter().zip(n_taken..) {
        // One that is not outstanding any more is not missed.
        let lost = decide(state, policy, moment.nth(n), Intent::Lose { call });
        happens.append(&mut lost.unwrap_or_default());
    }
    happens.append(&mut events);
    Ok(AnswerDecision::Accepted(happens))
}

impl GivenAnswer {
    fn into_intent(self, today: Option<CallAdmission>) -> Intent {
        let Self { question, answer, by, rider } = self;
        Intent::Answer { question, answer, by, rider, today }
    }
}

fn call_of(state: &State, question: QuestionId) -> Option<CallId> {
    state.questions.get(&question).map(|(question, _)| question.call)
}

/// Why a parked execution takes no answers, and what to do about it.
fn parked(state: &State) -> Failure {
    let advice = match state.entries_may_be_lost {
        true => {
            "it is parked because entries may be lost; an administrator continues or cancels it"
        }
        false => "it was given up after three attempts; cancel it and start it again",
    };
    Failure::new(FailureCode::Internal, advice)
}
