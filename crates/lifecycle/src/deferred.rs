//! Calls that wait for their sources: what happens when the wait begins, and when it ends. Pure.

use crate::answered::{RepeatedQuestion, asked_again};
use crate::decide::{
    DecideResult, DecisionMoment, JudgedCall, approval_message, blocked_call, doubted, judge,
};
use crate::{
    CallAdmission, CallId, CallOutcome, CallStage, Event, Json, Policy, Question, QuestionKind,
    Rejection, State, ToolHost, ToolNature, ToolTraits, UnavailableSource,
};

/// A dispatched call has not reached its tool and waits for its source.
pub(crate) fn defer(state: &State, call: CallId) -> DecideResult {
    match state.calls.get(&call) {
        Some(known)
            if known.nature.runs == ToolHost::Here
                && matches!(known.stage, CallStage::Dispatched(_) | CallStage::Asking(_)) =>
        {
            Ok(vec![Event::CallDeferred { call }])
        }
        Some(_) | None => Err(Rejection::NotOutstanding(call)),
    }
}

/// The wait has ended: the call is decided on as if it were made now, and an accept that it has counts.
pub(crate) fn admit_deferred(
    state: &State,
    policy: &Policy,
    moment: DecisionMoment,
    call: CallId,
    admission: CallAdmission,
) -> DecideResult {
    let Some((known, CallStage::Deferred(args))) = state.calls.get(&call).map(|k| (k, &k.stage))
    else {
        return Err(Rejection::NotOutstanding(call));
    };
    let settled = |outcome| Ok(vec![Event::CallSettled { call, outcome }]);
    let accepted = state.accepted(call);
    match admission {
        CallAdmission::Unavailable(source) => match accepted {
            _ if policy.hides(&known.tool, ToolTraits::lasting(true)) => {
                Ok(vec![blocked_call(call, &known.tool)])
            }
            Some(question) => Ok(vec![ask_anew(moment, question, known, args, &source)]),
            None => settled(source.outcome),
        },
        CallAdmission::Unfit(failure) => settled(CallOutcome::Failed(failure)),
        CallAdmission::Told(value) => settled(CallOutcome::Returned { value: Some(value) }),
        CallAdmission::Fit { nature, traits, about, revision } => {
            let nature = ToolNature { runs: ToolHost::Here, ..nature };
            let attempt = known.attempts.saturating_add(1);
            let next = match accepted {
                Some(_) if policy.hides(&known.tool, traits) => blocked_call(call, &known.tool),
                Some(question) if state.is_in_doubt(call, nature) => {
                    let answer_only = question.answer_only || traits.answer_only;
                    let id = moment.question(0);
                    Event::CallAsked(doubted(id, call, &known.tool, args, (revision, answer_only)))
                }
                Some(question) => {
                    let answer_only = traits.answer_only;
                    let again =
                        revision.map(|revision| RepeatedQuestion { revision, about, answer_only });
                    accepted_call(moment, question, known, (attempt, again))
                }
                None => {
                    let judged = JudgedCall { call, tool: &known.tool, args, attempt, nature };
                    judge(state, policy, moment, judged, (traits, about, revision))
                }
            };
            Ok(vec![Event::CallAdmitted { call, nature, revision }, next])
        }
    }
}

/// Dispatches the call, or asks again if the tool is not the one that was accepted.
fn accepted_call(
    moment: DecisionMoment,
    question: &Question,
    known: &crate::Call,
    (attempt, again): (u32, Option<RepeatedQuestion>),
) -> Event {
    match (question.revision, again) {
        (Some(asked), Some(again)) if asked != again.revision => {
            asked_again(moment, question, (known, None), again)
        }
        (Some(_) | None, _) => Event::CallDispatched { call: question.call, attempt },
    }
}

/// The accepted call could not be dispatched: it asks again and states the reason.
fn ask_anew(
    moment: DecisionMoment,
    question: &Question,
    known: &crate::Call,
    args: &Json,
    source: &UnavailableSource,
) -> Event {
    let tool = &known.tool;
    let why = &source.why;
    let about = match question.kind {
        QuestionKind::InDoubt => format!(
            "The accepted retry of tool \"{tool}\" was not dispatched, because its source is not \
             available: {why}. An earlier attempt may or may not have run. \
             Try again, treat it as failed, or supply the result?"
        ),
        QuestionKind::Approval | QuestionKind::Form { .. } | QuestionKind::Link { .. } => format!(
            "The approved call of tool \"{tool}\" was not dispatched, because its source is not \
             available: {why}. It has not run. Approve it again when the source is available?"
        ),
    };
    Event::CallAsked(Question {
        id: moment.question(0),
        call: question.call,
        kind: question.kind.clone(),
        message: approval_message(tool, args, Some(about), None),
        revision: question.revision,
        editable: question.editable,
        answer_only: question.answer_only,
    })
}
