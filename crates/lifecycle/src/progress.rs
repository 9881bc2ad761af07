//! Progress reports of running tools. They are for display only, so an excess is dropped.

use crate::decide::DecideResult;
use crate::{CallId, CallStage, Event, Rejection, State};

/// Bytes of progress stored for one call. The result contains the rest.
pub const PROGRESS_BYTES_MAX: usize = 64 << 10;

/// Bytes of progress stored for all calls of an execution.
pub const PROGRESS_OF_ALL_BYTES_MAX: usize = 4 << 20;

/// The least that a report counts, because an entry is larger than its text.
const WORD_BYTES_MIN: usize = 64;

/// How many bytes a report counts.
pub(crate) fn cost(text: &str) -> usize {
    text.len().max(WORD_BYTES_MIN)
}

/// Decides on the progress report `text` of the tool of `call`.
pub(crate) fn progressed(state: &State, call: CallId, text: String) -> DecideResult {
    let Some(known) = state.calls.get(&call) else {
        return Err(Rejection::NotOutstanding(call));
    };
    match known.stage {
        CallStage::Dispatched(_) | CallStage::Asking(_) => {
            let cost = cost(&text);
            let fits = known.progress_bytes + cost <= PROGRESS_BYTES_MAX
                && state.progress_bytes + cost <= PROGRESS_OF_ALL_BYTES_MAX;
            Ok(if fits { vec![Event::CallProgressed { call, text }] } else { vec![] })
        }
        CallStage::Held(_) | CallStage::Deferred(_) | CallStage::Settled => {
            Err(Rejection::NotOutstanding(call))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DecisionMoment, ExecutionLimits, Intent, Json, Policy, Program, RandomSeed, Timestamp,
        ToolHost, ToolNature, ToolPath, ToolTraits, ValueConvention, decide,
    };

    fn submit(state: &mut State, intent: Intent) -> DecideResult {
        let moment = DecisionMoment { at: Timestamp(1), entropy: uuid::Uuid::nil() };
        let events = decide(state, &Policy::default(), moment, intent)?;
        events.iter().for_each(|event| state.apply(Timestamp(1), event));
        Ok(events)
    }

    fn started() -> State {
        let mut state = State::default();
        let start = Intent::Start {
            program: Program { source: "1".into(), convention: ValueConvention::LastExpression },
            caller: crate::CallerName("me".into()),
            limits: ExecutionLimits { bytes_max: 10, ..ExecutionLimits::default() },
            seed: RandomSeed([7; 32]),
            terms: Box::default(),
        };
        submit(&mut state, start).unwrap();
        state
    }

    fn call(state: &mut State, n: u32) -> CallId {
        let nature = ToolNature { read_only: false, runs: ToolHost::Here };
        let traits = ToolTraits::lasting(false);
        let admission = crate::CallAdmission::Fit { nature, traits, about: None, revision: None };
        let (call, tool) = (CallId(n), ToolPath::parse("a.b").unwrap());
        let args = Json::parse(String::from("1")).unwrap();
        submit(state, Intent::Call { call, tool, args, line: None, alias: None, admission })
            .unwrap();
        call
    }

    fn n_kept(state: &mut State, call: CallId, text: &str, n_times: usize) -> usize {
        let mut say = |_| {
            let said = Intent::Progress { call, text: text.to_owned() };
            submit(state, said).unwrap().len()
        };
        (0..n_times).map(&mut say).sum()
    }

    #[test]
    fn too_much_progress_is_left_out_and_takes_nothing_from_the_program() {
        let mut state = started();
        let first = call(&mut state, 1);
        assert_eq!(n_kept(&mut state, first, "x", 2_000), PROGRESS_BYTES_MAX / WORD_BYTES_MIN);
        let page = "x".repeat(PROGRESS_BYTES_MAX);
        let n_pages = PROGRESS_OF_ALL_BYTES_MAX / PROGRESS_BYTES_MAX;
        for n in 2..=u32::try_from(n_pages).unwrap() {
            // Calls may make no more than ten bytes here: their progress does not count.
            state.bytes = 0;
            let next = call(&mut state, n);
            assert_eq!(n_kept(&mut state, next, &page, 2), 1);
        }
        state.bytes = 0;
        let last = call(&mut state, u32::try_from(n_pages + 1).unwrap());
        assert_eq!(n_kept(&mut state, last, "x", 1), 0);
    }

    #[test]
    fn only_tools_at_work_have_progress() {
        let mut state = started();
        let call = call(&mut state, 1);
        let outcome = crate::CallOutcome::Returned { value: None };
        submit(&mut state, Intent::Settle { call, outcome }).unwrap();
        for call in [call, CallId(7)] {
            let said = submit(&mut state, Intent::Progress { call, text: "late".into() });
            assert_eq!(said, Err(Rejection::NotOutstanding(call)));
        }
    }
}
