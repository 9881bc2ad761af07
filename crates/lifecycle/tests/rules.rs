//! Property tests: the rules hold for any intents in any order.

use crate::wishes::{
    Wish, admission, answer, edition, fitted, json, live, me, outcome, unavailable, wish,
};
use lifecycle::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

fn wishes() -> impl Strategy<Value = Vec<Wish>> {
    prop::collection::vec(wish(), 0..120)
}

/// Returns the number of cases: the soak's, else that of `PROPTEST_CASES`, else 1,000.
fn n_cases() -> u32 {
    if std::env::var_os("AIRLOCK_SOAK").is_some() {
        return 100_000;
    }
    let given = std::env::var("PROPTEST_CASES").ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(1_000)
}

/// A call that needs an approval: its execution (of two), its tool, the tool's edition, and the answer.
#[derive(Debug, Clone, Copy)]
struct Asking {
    execution: usize,
    tool: &'static str,
    edition: u8,
    accepted: bool,
    remember: bool,
}

fn asking() -> impl Strategy<Value = Asking> {
    let tool = prop::sample::select(vec!["mail.send", "mail.drop", "mail"]);
    let answer = (prop::bool::weighted(0.8), any::<bool>());
    (0..2usize, tool, 0..3u8, answer).prop_map(|(execution, tool, edition, answer)| {
        let (accepted, remember) = (answer.0, answer.0 && answer.1);
        Asking { execution, tool, edition, accepted, remember }
    })
}

/// Makes the call in `state`, as a new server that has only the journal would, and answers the question if
/// there is one. Returns whether there was one.
fn ask(state: &mut State, n: u128, asking: Asking) -> bool {
    let policy = Policy::default();
    let mut entropy = n << 64;
    let mut decided = |state: &mut State, intent: Intent| {
        entropy += 1 << 32;
        let moment = DecisionMoment { at: Timestamp(1), entropy: Uuid::from_u128(entropy) };
        let events = decide(state, &policy, moment, intent).unwrap();
        for event in &events {
            let written = serde_json::to_string(event).unwrap();
            state.apply(Timestamp(1), &serde_json::from_str(&written).unwrap());
        }
        events
    };
    let nature = ToolNature { read_only: false, runs: ToolHost::Here };
    let revision = edition(asking.edition);
    let admission =
        CallAdmission::Fit { nature, traits: ToolTraits::lasting(true), about: None, revision };
    let call = CallId(state.calls.len() as u32 + 1);
    let tool = ToolPath::parse(asking.tool).unwrap();
    let made = Intent::Call {
        call,
        tool,
        args: json("{}"),
        line: None,
        alias: None,
        admission: admission.clone(),
    };
    let asked = decided(state, made).iter().find_map(|event| match event {
        Event::CallAsked(question) => Some(question.id),
        _ => None,
    });
    if let Some(question) = asked {
        let answer = match asking.accepted {
            true => Answer::Accept { content: None },
            false => Answer::Decline,
        };
        let rider = if asking.remember { AnswerExtras::Remember } else { AnswerExtras::Nothing };
        let today = Some(admission);
        decided(state, Intent::Answer { question, answer, by: me().into(), rider, today });
    }
    if matches!(state.calls[&call].stage, CallStage::Dispatched(_)) {
        decided(state, Intent::Settle { call, outcome: outcome(0) });
    }
    asked.is_some()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(n_cases()))]

    #[test]
    fn a_state_is_what_its_written_events_make_of_it(wishes in wishes()) {
        let (entries, state) = live(&wishes);
        let mut rebuilt = State::default();
        for entry in &entries {
            let written = serde_json::to_string(entry).unwrap();
            let read: Entry = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(&read, entry);
            rebuilt.apply(read.at, &read.event);
        }
        prop_assert_eq!(rebuilt, state);
    }

    #[test]
    fn a_second_answer_is_refused_and_leaves_no_trace(wishes in wishes(), how in any::<u8>()) {
        let (entries, state) = live(&wishes);
        let mut n_answers = BTreeMap::new();
        for entry in &entries {
            if let Event::CallAnswered { question, .. } = &entry.event {
                *n_answers.entry(*question).or_insert(0) += 1;
            }
        }
        prop_assert!(n_answers.values().all(|n| *n == 1));
        let moment = DecisionMoment { at: Timestamp(0), entropy: Uuid::from_u128(99) };
        for question in n_answers.into_keys() {
            let by = me().into();
            let again =
                Intent::Answer { question, answer: answer(how), by, rider: AnswerExtras::Nothing, today: None };
            prop_assert_eq!(
                decide(&state, &Policy::default(), moment, again),
                Err(Rejection::AlreadyAnswered(question))
            );
        }
    }

    #[test]
    fn what_is_remembered_is_good_for_one_tool_in_one_edition_in_one_execution(
        askings in prop::collection::vec(asking(), 1..30)
    ) {
        let mut states = [State::default(), State::default()];
        for state in &mut states {
            let start = fitted(state, &Wish::Start { calls_max: 99, bytes_max: 9_999 });
            let moment = DecisionMoment { at: Timestamp(0), entropy: Uuid::nil() };
            for event in decide(state, &Policy::default(), moment, start).unwrap() {
                state.apply(Timestamp(0), &event);
            }
        }
        let mut expected = std::collections::BTreeSet::new();
        for (n, asking) in askings.into_iter().enumerate() {
            let key = (asking.execution, asking.tool, asking.edition);
            let asked = ask(&mut states[asking.execution], n as u128 + 1, asking);
            prop_assert_eq!(asked, !expected.contains(&key), "{:?}", asking);
            if asked && asking.remember {
                expected.insert(key);
            }
        }
    }

    #[test]
    fn a_yes_is_good_for_the_edition_that_was_asked_about(asked in 0..3u8, today in 0..3u8) {
        let mut state = State::default();
        let mut n = 0;
        let mut submit = |state: &mut State, intent| {
            n += 1;
            let moment = DecisionMoment { at: Timestamp(0), entropy: Uuid::from_u128(n << 64) };
            let events = decide(state, &Policy::default(), moment, intent).unwrap();
            events.iter().for_each(|event| state.apply(Timestamp(0), event));
            events
        };
        let fit = |n| CallAdmission::Fit {
            nature: ToolNature { read_only: false, runs: ToolHost::Here },
            traits: ToolTraits::lasting(true),
            about: None,
            revision: edition(n),
        };
        let start = fitted(&state, &Wish::Start { calls_max: 9, bytes_max: 999 });
        submit(&mut state, start);
        let tool = ToolPath::parse("mail.send").unwrap();
        let args = json("{}");
        submit(&mut state, Intent::Call { call: CallId(1), tool, args, line: Some(7), alias: None, admission: fit(asked) });
        let question = state.open_questions().next().unwrap().id;
        let (answer, today_is) = (Answer::Accept { content: None }, Some(fit(today)));
        let by = me().into();
        let events = submit(
            &mut state,
            Intent::Answer { question, answer, by, rider: AnswerExtras::Nothing, today: today_is },
        );
        let runs = events.iter().any(|event| matches!(event, Event::CallDispatched { .. }));
        prop_assert_eq!(runs, asked == today);
        prop_assert_eq!(state.open_questions().count(), usize::from(asked != today));
    }

    #[test]
    fn a_call_settles_once_and_goes_out_again_only_after_a_restart_or_an_answer(wishes in wishes()) {
        let (entries, _) = live(&wishes);
        let (mut settled, mut dispatched) = (BTreeMap::new(), BTreeMap::new());
        let mut out = BTreeSet::new();
        for entry in &entries {
            match &entry.event {
                Event::CallSettled { call, .. } => *settled.entry(*call).or_insert(0) += 1,
                Event::CallDispatched { call, attempt } => {
                    prop_assert!(!settled.contains_key(call), "sent out after it was settled");
                    *dispatched.entry(*call).or_insert(0) += 1;
                    prop_assert_eq!(dispatched[call], *attempt);
                    out.insert(*call);
                }
                // A dispatch that did not reach its tool does not count as an attempt.
                Event::CallDeferred { call } if out.remove(call) => {
                    *dispatched.entry(*call).or_insert(1) -= 1;
                }
                _ => {}
            }
        }
        prop_assert!(settled.values().all(|n| *n == 1));
    }

    #[test]
    fn a_harmful_call_goes_out_again_only_when_a_person_said_so(wishes in wishes()) {
        let (entries, state) = live(&wishes);
        let mut allowed: BTreeMap<CallId, u32> = BTreeMap::new();
        let mut harmful: BTreeMap<CallId, bool> = BTreeMap::new();
        let mut n_sent: BTreeMap<CallId, u32> = BTreeMap::new();
        for entry in &entries {
            match &entry.event {
                // A tool can change while a call waits for its source.
                Event::CallMade { call, nature, .. } | Event::CallAdmitted { call, nature, .. } => {
                    harmful.insert(*call, !nature.read_only);
                }
                // A question that the tool itself asks does not permit another call.
                Event::CallAnswered { question, call, .. }
                    if !state.questions[question].0.kind.is_of_the_tool() =>
                {
                    *allowed.entry(*call).or_insert(0) += 1;
                }
                Event::CallDispatched { call, .. } if harmful[call] => {
                    let n_sent = n_sent.entry(*call).or_insert(0);
                    *n_sent += 1;
                    let n_allowed = allowed.get(call).copied().unwrap_or(0);
                    prop_assert!(*n_sent <= n_allowed + 1);
                }
                // The dispatch never reached its tool.
                Event::CallDeferred { call } => {
                    n_sent.entry(*call).and_modify(|n_sent| *n_sent = n_sent.saturating_sub(1));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn an_accept_is_consumed_by_a_dispatch_or_the_call_asks_again(wishes in wishes()) {
        let (entries, state) = live(&wishes);
        // The next event of a call determines what happened to its accept.
        let mut accepted: BTreeSet<CallId> = BTreeSet::new();
        for entry in &entries {
            match &entry.event {
                Event::CallAnswered { question, call, answer: Answer::Accept { .. }, .. }
                    if state.questions[question].0.kind == QuestionKind::Approval =>
                {
                    accepted.insert(*call);
                }
                Event::CallDispatched { call, .. } => drop(accepted.remove(call)),
                Event::CallAsked(question) => drop(accepted.remove(&question.call)),
                Event::CallSettled { call, outcome: CallOutcome::Failed(failure) } => {
                    let is_lost = accepted.contains(call)
                        && failure.code == FailureCode::SourceUnavailable;
                    prop_assert!(!is_lost, "an accept ended as source_unavailable");
                }
                _ => {}
            }
        }
    }

    #[test]
    fn an_accept_is_refused_while_the_source_is_unavailable_and_a_no_counts(wishes in wishes()) {
        let (_, state) = live(&wishes);
        let moment = DecisionMoment { at: Timestamp(0), entropy: Uuid::from_u128(99) };
        let open: Vec<_> = state.open_questions().cloned().collect();
        for question in open {
            let submit = |answer: Answer, rider: AnswerExtras| {
                let (id, today) = (question.id, Some(unavailable()));
                let intent = Intent::Answer { question: id, answer, by: me().into(), rider, today };
                decide(&state, &Policy::default(), moment, intent)
            };
            let is_refused = |decided| matches!(decided, Err(Rejection::SourceUnavailable { .. }));
            let yes = || Answer::Accept { content: None };
            match question.kind {
                QuestionKind::Approval => {
                    prop_assert!(is_refused(submit(yes(), AnswerExtras::Nothing)));
                    prop_assert!(is_refused(submit(yes(), AnswerExtras::Remember)));
                }
                QuestionKind::InDoubt => {
                    prop_assert!(is_refused(submit(answer(3), AnswerExtras::Nothing)));
                    prop_assert!(submit(answer(4), AnswerExtras::Nothing).is_ok());
                    prop_assert!(submit(answer(5), AnswerExtras::Nothing).is_ok());
                }
                QuestionKind::Form { .. } | QuestionKind::Link { .. } => {}
            }
            prop_assert!(submit(Answer::Decline, AnswerExtras::Nothing).is_ok());
            prop_assert!(submit(Answer::Cancel, AnswerExtras::Nothing).is_ok());
        }
    }

    #[test]
    fn what_the_caller_runs_goes_out_once_whatever_happens_to_the_server(wishes in wishes()) {
        let (entries, state) = live(&wishes);
        for entry in &entries {
            if let Event::CallDispatched { call, attempt } = &entry.event
                && state.calls[call].nature.runs == ToolHost::AtCaller
            {
                prop_assert_eq!(*attempt, 1);
            }
        }
    }

    #[test]
    fn nothing_follows_the_end_and_numbers_have_no_gap(wishes in wishes()) {
        let (entries, state) = live(&wishes);
        let end = entries.iter().position(|entry| matches!(entry.event, Event::Finished { .. }));
        if let Some(end) = end {
            prop_assert_eq!(end, entries.len() - 1);
            prop_assert_eq!(state.phase, ExecutionPhase::Finished);
            prop_assert_eq!(state.open_questions().count(), 0);
        }
        let n_inputs = entries.iter().filter(|entry| entry.event.input().is_some()).count();
        prop_assert_eq!(state.inputs.0 as usize, n_inputs);
        let count = |wanted: fn(&CallStage) -> bool| {
            state.calls.values().filter(|call| wanted(&call.stage)).count()
        };
        prop_assert_eq!(state.held as usize, count(|stage| matches!(stage, CallStage::Held(_) | CallStage::Asking(_))));
        prop_assert_eq!(state.in_flight as usize, count(|stage| matches!(stage, CallStage::Deferred(_) | CallStage::Dispatched(_))));
        prop_assert_eq!(state.deferred as usize, count(|stage| matches!(stage, CallStage::Deferred(_))));
        let is_out = |call: &Call| matches!(call.stage, CallStage::Dispatched(_));
        let out: Vec<_> = state.calls.iter().filter(|(_, call)| is_out(call)).collect();
        let at_caller = out.iter().filter(|(_, call)| call.nature.runs == ToolHost::AtCaller);
        prop_assert_eq!(state.at_caller as usize, at_caller.count());
        prop_assert_eq!(
            state.dispatched.keys().collect::<Vec<_>>(),
            out.iter().map(|(id, _)| *id).collect::<Vec<_>>()
        );
    }
}

fn started(limits: ExecutionLimits) -> State {
    let mut state = State::default();
    let intent = Intent::Start {
        program: Program { source: "1".into(), convention: ValueConvention::LastExpression },
        caller: me(),
        limits,
        seed: RandomSeed([7; 32]),
        terms: Box::default(),
    };
    submit(&mut state, 0, intent);
    state
}

#[track_caller]
fn submit(state: &mut State, at: i64, intent: Intent) -> Vec<Event> {
    let moment = DecisionMoment { at: Timestamp(at), entropy: Uuid::from_u128(1 << 64) };
    let events = decide(state, &Policy::default(), moment, intent).unwrap();
    events.iter().for_each(|event| state.apply(Timestamp(at), event));
    events
}

fn call_at_caller(call: u32) -> Intent {
    let tool = ToolPath::parse("users:list").unwrap();
    Intent::Call {
        call: CallId(call),
        tool,
        args: Json::null(),
        line: None,
        alias: None,
        admission: admission(5),
    }
}

#[test]
fn a_program_that_waits_for_its_caller_rests_and_its_clocks_run_on() {
    let limits = ExecutionLimits {
        active_ms_max: 1_000,
        active_clock: ActiveClock::StopsForQuestions,
        call_ms_max: 700,
        idle_ms_max: 600,
        ..ExecutionLimits::default()
    };
    let mut state = started(limits);
    submit(&mut state, 10, call_at_caller(1));
    assert_eq!(state.due(), Some(Timestamp(710)));
    let rest = Intent::Rest { inputs: InputIndex(0), active_ms: 20 };
    let paused = Event::Paused { inputs: InputIndex(0), active_ms: 20 };
    assert_eq!(submit(&mut state, 20, rest), [paused]);
    assert_eq!(state.active_at_rest(), Some(Timestamp(20)));
    assert_eq!(state.due(), Some(Timestamp(620)), "idle time ends first");
    assert_eq!(submit(&mut state, 30, Intent::Recover), [], "it stays with the caller");
    assert_eq!(state.calls_overdue(Timestamp(709)), []);
    assert_eq!(state.calls_overdue(Timestamp(710)), [CallId(1)]);
}

#[test]
fn what_is_printed_beyond_its_bytes_ends_the_program_and_is_not_recorded() {
    let mut state = started(ExecutionLimits { log_bytes_max: 5, ..ExecutionLimits::default() });
    let log = |ordinal, line: &str| Intent::Log {
        mark: OutputMark { input: InputIndex(0), ordinal },
        level: LogLevel::Log,
        line: line.into(),
    };
    submit(&mut state, 1, log(1, "12345"));
    let events = submit(&mut state, 2, log(2, "6"));
    assert_eq!(events[0], Event::LimitReached { limit: LimitKind::Logs });
    assert_eq!(events.len(), 2);
}

#[test]
fn a_result_beyond_its_bytes_fails_its_call_and_nothing_else() {
    let mut state = started(ExecutionLimits { result_bytes_max: 3, ..ExecutionLimits::default() });
    submit(&mut state, 1, call_at_caller(1));
    let outcome = CallOutcome::Returned { value: Some(json("1234")) };
    submit(&mut state, 2, Intent::Settle { call: CallId(1), outcome });
    assert_eq!(
        (state.phase, &state.calls[&CallId(1)].stage),
        (ExecutionPhase::Running, &CallStage::Settled)
    );
    assert_eq!(state.bytes, 4, "only the arguments are retained");
}

#[test]
fn a_program_that_needs_no_preparing_is_written_once() {
    let ready = |text: &str| {
        let (prelude, fingerprint) = (1, "f".into());
        Intent::Ready(PreparedProgram { text: Some(text.into()), prelude, fingerprint })
    };
    let moment = DecisionMoment { at: Timestamp(1), entropy: Uuid::from_u128(1) };
    let told = |state: &State, text| decide(state, &Policy::default(), moment, ready(text));
    let mut state = started(ExecutionLimits::default());
    let source = state.origin.as_ref().unwrap().program.source.clone();
    let events = told(&state, &source).unwrap();
    let [Event::Prepared(prepared)] = events.as_slice() else { panic!("{events:?}") };
    let written = serde_json::to_string(prepared).unwrap();
    assert_eq!(written, r#"{"prelude":1,"fingerprint":"f"}"#);
    assert_eq!(serde_json::from_str::<PreparedProgram>(&written).unwrap(), *prepared);

    // This also holds if an earlier version stored the program's text a second time.
    for known in
        [prepared.clone(), PreparedProgram { text: Some(source.clone()), ..prepared.clone() }]
    {
        state.prepared = Some(known);
        assert_eq!(told(&state, &source), Ok(vec![]));
        told(&state, "another").unwrap_err();
    }
}
