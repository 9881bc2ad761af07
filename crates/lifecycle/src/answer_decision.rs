//! The one decision on answers of people: they are accepted, accepted once the program is replayed, or refused. Pure.

use crate::answered::within;
use crate::{
    Answer, AnswerAuthor, AnswerExtras, CallAdmission, CallId, DecisionMoment, Event,
    ExecutionPhase, Failure, FailureCode, Intent, Policy, QuestionId, Rejection, State, decide,
};
use std::collections::BTreeSet;
use uuid::Uuid;

/// A person's answer to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenAnswer {
    /// The question.
    pub question: QuestionId,
    /// The answer.
    pub answer: Answer,
    /// Who answers, and in which role.
    pub by: AnswerAuthor,
    /// An addition to an approval.
    pub rider: AnswerExtras,
}

/// Information about the held call at the time of the decision that is not in the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldCallFacts {
    /// The catalogue's present statement about the call with the arguments of the dispatch; none where it was not looked up.
    pub today: Option<CallAdmission>,
    /// Why the content does not match the question's form, if it does not.
    pub misfit: Option<String>,
    /// The tool that asked has ended, because the server that ran it died.
    pub is_tool_gone: bool,
}

/// The result of a decision on answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerDecision {
    /// They are accepted, with these events.
    Accepted(Vec<Event>),
    /// They would be accepted, but the program is not in the state that the journal describes. They are
    /// decided on once it is: an accepted answer must never be lost to a replay that fails.
    AfterReplay,
}

impl DecisionMoment {
    /// The same moment with other randomness, for the `n`-th of several joint decisions.
    const fn nth(self, n: u32) -> Self {
        Self { entropy: Uuid::from_u128(self.entropy.as_u128() ^ n as u128), ..self }
    }
}

/// Decides on all of these answers together: either all are accepted or none is. If a question is already
/// answered, the first answer counts, also if that comes earlier in `answers`. `is_restored` tells whether
/// the program is in the state that the journal describes.
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
    // Before its answer: the decision on a call whose tool has ended depends on its open questions.
    let n_taken = u32::try_from(taken.len()).unwrap_or(u32::MAX);
    let mut happens = vec![];
    for (call, n) in tools_gone.into_iter().zip(n_taken..) {
        // A call that is no longer outstanding needs no event.
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

/// Why a parked execution accepts no answers, and what to do about it.
fn parked(state: &State) -> Failure {
    let advice = match state.entries_may_be_lost {
        true => {
            "it is parked because entries may be lost; an administrator continues or cancels it"
        }
        false => "it was given up after three attempts; cancel it and start it again",
    };
    Failure::new(FailureCode::Internal, advice)
}
