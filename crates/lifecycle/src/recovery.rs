//! Recovers an execution after the server died or lost entries: calls are retried or become questions, and
//! an execution that cannot be recovered is parked. Pure.

use crate::decide::{DecideResult, DecisionMoment, approval_message};
use crate::{
    CallId, CallStage, CallerName, Event, ExecutionPhase, Question, QuestionId, QuestionKind,
    Rejection, State, ToolHost, ToolNature,
};

/// After this many failed recoveries in a row an execution is parked.
const RECOVERIES_FAILED_MAX: u32 = 3;

/// Calls that were with their tools, or waited for their sources, when the server died.
pub(crate) fn recover(state: &State, moment: DecisionMoment) -> Vec<Event> {
    let events = state.calls.iter().zip(0..).filter_map(|((call, known), n)| match known.stage {
        // It was not dispatched, so it waits again.
        CallStage::Deferred(_) => Some(Event::CallDeferred { call: *call }),
        CallStage::Dispatched(_) | CallStage::Asking(_) => lost(state, moment.question(n), *call),
        CallStage::Held(_) | CallStage::Settled => None,
    });
    events.collect()
}

/// One of them, noticed when its question is answered.
pub(crate) fn lose(state: &State, moment: DecisionMoment, call: CallId) -> DecideResult {
    match state.calls.get(&call).map(|call| &call.stage) {
        Some(CallStage::Asking(_)) => {
            Ok(lost(state, moment.question(0), call).into_iter().collect())
        }
        Some(
            CallStage::Deferred(_)
            | CallStage::Dispatched(_)
            | CallStage::Held(_)
            | CallStage::Settled,
        )
        | None => Err(Rejection::NotOutstanding(call)),
    }
}

/// Whether a call's tool waits for a person before it has done anything.
fn waits_before_it_began(state: &State, call: CallId) -> bool {
    let is_asking =
        matches!(state.calls.get(&call).map(|call| &call.stage), Some(CallStage::Asking(_)));
    let mut open = state.open_questions().filter(|question| question.call == call);
    let is_prior =
        |question: &Question| matches!(question.kind, QuestionKind::Link { is_prior: true, .. });
    is_asking && open.next().is_some_and(is_prior) && open.next().is_none()
}

/// Retries calls that do no harm, and asks about the rest.
fn lost(state: &State, id: QuestionId, call: CallId) -> Option<Event> {
    let (known, args) = (state.calls.get(&call)?, state.args(call)?);
    match known.nature {
        ToolNature { runs: ToolHost::AtCaller, .. } => None,
        ToolNature { read_only: true, runs: ToolHost::Here } => {
            Some(Event::CallDispatched { call, attempt: known.attempts + 1 })
        }
        ToolNature { read_only: false, runs: ToolHost::Here }
            if waits_before_it_began(state, call) && !state.is_in_doubt(call, known.nature) =>
        {
            Some(Event::CallDispatched { call, attempt: known.attempts + 1 })
        }
        ToolNature { read_only: false, runs: ToolHost::Here } => {
            let about = format!(
                "Tool \"{}\" was called and the server stopped before its result was known. \
                 It may or may not have run. Try again, treat it as failed, or supply the result?",
                known.tool
            );
            let approval = approval_of(state, call);
            let message = match approval {
                // The approved call is the one that may have run; its question describes it best.
                Some(approval) if known.digest == args.digest() => {
                    format!("{about}\n\n{}", approval.message)
                }
                Some(_) | None => approval_message(&known.tool, &args, Some(about), None),
            };
            Some(Event::CallAsked(Question {
                id,
                call,
                kind: QuestionKind::InDoubt,
                message,
                revision: known.revision,
                editable: false,
                answer_only: approval.is_some_and(|approval| approval.answer_only),
            }))
        }
    }
}

/// The newest question by which `call` was approved.
fn approval_of(state: &State, call: CallId) -> Option<&Question> {
    let asked = state.asked.iter().rev().filter_map(|id| state.questions.get(id));
    let mut asked = asked.map(|(question, _)| question);
    asked.find(|question| question.call == call && question.kind == QuestionKind::Approval)
}

/// The execution is parked: nothing is dispatched before a person lets it continue.
pub(crate) fn lose_entries(state: &State) -> Vec<Event> {
    match state.phase {
        ExecutionPhase::Parked if state.entries_may_be_lost && state.doubts_asked.is_empty() => {
            vec![]
        }
        ExecutionPhase::Parked => vec![Event::EntriesMayBeLost],
        ExecutionPhase::Unborn
        | ExecutionPhase::Running
        | ExecutionPhase::Paused
        | ExecutionPhase::Finished => {
            vec![Event::EntriesMayBeLost, Event::Parked]
        }
    }
}

pub(crate) fn continue_parked(
    state: &State,
    moment: DecisionMoment,
    by: CallerName,
) -> DecideResult {
    if state.phase != ExecutionPhase::Parked {
        return Err(Rejection::NotParked);
    }
    let mut events = vec![Event::Continued { by }];
    events.append(&mut recover(state, moment));
    Ok(events)
}

pub(crate) fn fail_recovery(state: &State, why: String) -> Vec<Event> {
    let mut events = vec![Event::RecoveryFailed { why }];
    if state.recoveries_failed + 1 >= RECOVERIES_FAILED_MAX {
        events.push(Event::Parked);
    }
    events
}
