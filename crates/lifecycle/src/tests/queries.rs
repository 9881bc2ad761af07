//! Queries of a state: who an execution waits for, its earlier questions, and its due times.

use super::*;

/// Returns a state with these numbers of calls.
fn counting(held: u32, in_flight: u32, deferred: u32, at_caller: u32) -> State {
    State { held, in_flight, deferred, at_caller, ..State::default() }
}

#[test]
fn who_can_help_follows_from_where_the_calls_are() {
    // Held, in flight, of these deferred, of these at the caller: people, people or sources, people or the caller.
    let cases = [
        (counting(0, 0, 0, 0), [false, false, false]),
        (counting(1, 0, 0, 0), [true, true, true]),
        (counting(2, 0, 0, 0), [true, true, true]),
        (counting(0, 1, 0, 0), [false, false, false]),
        (counting(1, 1, 0, 0), [false, false, false]),
        (counting(0, 1, 1, 0), [false, true, false]),
        (counting(1, 1, 1, 0), [false, true, false]),
        (counting(1, 2, 1, 0), [false, false, false]),
        (counting(0, 2, 1, 0), [false, false, false]),
        (counting(0, 1, 0, 1), [false, false, true]),
        (counting(1, 1, 0, 1), [false, false, true]),
        (counting(1, 2, 0, 1), [false, false, false]),
        (counting(0, 2, 0, 1), [false, false, false]),
        (counting(2, 2, 2, 0), [false, true, false]),
        (counting(2, 2, 0, 2), [false, false, true]),
    ];
    for (state, expected) in cases {
        let found = [
            state.only_people_can_help(),
            state.waits_for_people_or_sources(),
            state.only_others_can_help(),
        ];
        assert_eq!(found, expected, "{state:?}");
    }
}

#[test]
fn calls_are_counted_where_they_are() {
    let counts = |state: &State| {
        let dispatched: Vec<_> = state.dispatched.iter().map(|(call, at)| (call.0, at.0)).collect();
        ([state.held, state.in_flight, state.deferred, state.at_caller], dispatched)
    };
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, true));
    assert_eq!(counts(&script.state), ([1, 0, 0, 0], vec![]));
    script.at = 5;
    script.call(fit(AT_CALLER, false));
    assert_eq!(counts(&script.state), ([1, 1, 0, 1], vec![(2, 5)]));
    script.call(unavailable());
    assert_eq!(counts(&script.state), ([1, 2, 1, 1], vec![(2, 5)]));
    script.at = 6;
    script.call(fit(WRITES, false));
    assert_eq!(counts(&script.state), ([1, 3, 1, 1], vec![(2, 5), (4, 6)]));
    script.at = 7;
    script.ask_for_a_form(4);
    assert_eq!(counts(&script.state), ([2, 2, 1, 1], vec![(2, 5)]));
    script.submit(script.reply(yes(), AnswerExtras::Nothing, None));
    assert_eq!(counts(&script.state), ([1, 3, 1, 1], vec![(2, 5), (4, 7)]), "a new time begins");
    script.submit(Intent::Defer { call: CallId(4) });
    assert_eq!(counts(&script.state), ([1, 3, 2, 1], vec![(2, 5)]));
    script.submit(settle(2, None));
    assert_eq!(counts(&script.state), ([1, 2, 2, 0], vec![]));
    assert_eq!(script.state.args(CallId(1)), Some(json("{}")));
    assert_eq!(script.state.args(CallId(2)), None);
    assert_eq!(script.state.args(CallId(9)), None);
}

#[test]
fn a_question_is_the_one_of_an_earlier_attempt_where_all_of_it_is_the_same() {
    let mut script = ExecutionScript::started();
    script.call(fit(READS, false));
    script.call(fit(READS, false));
    let ask = |call, text: &str| Intent::Ask { call: CallId(call), wish: form(text) };
    script.submit(ask(1, "Who?"));
    let who = script.question().id;
    script.submit(ask(1, "When?"));
    let when = script.question().id;
    script.submit(script.reply(with_content("7"), AnswerExtras::Nothing, None));
    let state = &script.state;
    let before = |call, text: &str, heard: &[QuestionId]| {
        state.asked_before(CallId(call), &form(text), heard)
    };
    assert_eq!(before(1, "Who?", &[]), Some((who, None)));
    assert_eq!(before(1, "Who?", &[when]), Some((who, None)));
    assert_eq!(before(1, "Who?", &[who]), None);
    assert_eq!(before(1, "When?", &[who]), Some((when, Some(with_content("7")))));
    assert_eq!(before(1, "Where?", &[]), None);
    assert_eq!(before(2, "Who?", &[]), None);
    assert_eq!(State::default().asked_before(CallId(1), &form("Who?"), &[]), None);
}

#[test]
fn open_questions_are_those_without_an_answer_oldest_first() {
    let mut script = ExecutionScript::started();
    let mut asked = vec![];
    // The ids descend, so the order of the questions differs from the order of their ids.
    for n in (1..4_u128).rev() {
        script.entropy = n << 96;
        script.call(fit(WRITES, true));
        asked.push(script.question().id);
    }
    let open = |script: &ExecutionScript| -> Vec<_> {
        script.state.open_questions().map(|question| question.id).collect()
    };
    assert_eq!(open(&script), asked);
    script.accept(None);
    assert_eq!(open(&script), asked[..2]);
}

#[test]
fn an_accept_is_the_newest_word_about_its_call() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, true));
    assert_eq!(script.state.accepted(CallId(1)), None);
    let first = script.question();
    script.accept(Some(fit(WRITES, true)));
    assert_eq!(script.state.accepted(CallId(1)), Some(&first));
    assert_eq!(script.state.accepted(CallId(2)), None);
    // The answer to a question of the tool is not an approval of the call.
    script.ask_for_a_form(1);
    script.submit(script.reply(Answer::Decline, AnswerExtras::Nothing, None));
    assert_eq!(script.state.accepted(CallId(1)), Some(&first));
    // Neither an open question about the same call nor a question about another call changes the result.
    script.call(fit(WRITES, true));
    assert_eq!(script.state.accepted(CallId(1)), Some(&first));
    assert_eq!(script.state.accepted(CallId(2)), None);
    script.submit(script.reply(Answer::Decline, AnswerExtras::Nothing, None));
    assert_eq!(script.state.accepted(CallId(2)), None);
    script.submit(Intent::Recover);
    assert_eq!(script.state.accepted(CallId(1)), None);
}

/// Limits in which each kind of time has its own order of magnitude.
const LIMITS: fn() -> ExecutionLimits = || ExecutionLimits {
    active_ms_max: 1_000,
    total_ms_max: 100_000,
    call_ms_max: 700,
    idle_ms_max: 5_000,
    ..ExecutionLimits::default()
};

#[test]
fn what_is_due_is_the_first_of_all_times() {
    let mut script = ExecutionScript::within(LIMITS());
    assert_eq!(State::default().due(), None);
    assert_eq!(script.state.due(), Some(Timestamp(100_000)));
    script.submit(Intent::SetTimer { timer: TimerId(1), delay_ms: 90_000 });
    script.submit(Intent::SetTimer { timer: TimerId(2), delay_ms: 80_000 });
    assert_eq!(script.state.due(), Some(Timestamp(80_000)));
    script.submit(Intent::ClearTimer { timer: TimerId(2) });
    assert_eq!(script.state.due(), Some(Timestamp(90_000)));
    script.at = 20;
    script.call(fit(WRITES, false));
    script.at = 10;
    script.call(fit(WRITES, false));
    assert_eq!(script.state.due(), Some(Timestamp(710)));
    let overdue = |at| script.state.calls_overdue(Timestamp(at));
    assert_eq!(overdue(709), []);
    assert_eq!(overdue(710), [CallId(2)]);
    assert_eq!(overdue(720), [CallId(1), CallId(2)]);
}

#[test]
fn a_pause_is_due_when_it_has_lasted_too_long() {
    let mut script = ExecutionScript::within(LIMITS());
    script.call(fit(WRITES, true));
    assert_eq!(script.state.idle_until(), None);
    script.at = 30;
    script.submit(Intent::Rest { inputs: InputIndex(0), active_ms: 10 });
    assert_eq!(script.state.idle_until(), Some(Timestamp(5_030)));
    assert_eq!(script.state.due(), Some(Timestamp(5_030)));
    let standing = ExecutionSummary {
        phase: ExecutionPhase::Paused,
        caller: me(),
        due: Some(Timestamp(5_030)),
    };
    assert_eq!(script.state.standing(), Some(standing));
    script.accept(None);
    assert_eq!(script.state.idle_until(), None, "it runs again");
    assert_eq!(State::default().standing(), None);
}

#[test]
fn the_active_clock_runs_at_rest_only_where_calls_at_the_caller_count() {
    let resting = |active_clock, at_caller: bool| {
        let mut script = ExecutionScript::within(ExecutionLimits { active_clock, ..LIMITS() });
        if at_caller {
            script.call(fit(AT_CALLER, false));
        }
        script.call(fit(WRITES, true));
        assert_eq!(script.state.active_at_rest(), None, "it does not rest yet");
        script.at = 30;
        script.submit(Intent::Rest { inputs: InputIndex(0), active_ms: 900 });
        script.state
    };
    use ActiveClock::{StopsForCallsAndQuestions, StopsForQuestions};
    let at_rest = |state: State| (state.active_at_rest(), state.due());
    let (at, idle, overdue) = (Timestamp(30), Timestamp(5_030), Timestamp(700));
    assert_eq!(at_rest(resting(StopsForQuestions, true)), (Some(at), Some(Timestamp(130))));
    assert_eq!(at_rest(resting(StopsForQuestions, false)), (None, Some(idle)));
    assert_eq!(at_rest(resting(StopsForCallsAndQuestions, true)), (None, Some(overdue)));
    let mut running = resting(StopsForQuestions, true);
    running.phase = ExecutionPhase::Running;
    assert_eq!(running.active_at_rest(), None);
}

#[test]
fn nothing_is_due_of_what_is_parked_or_over() {
    let mut script = ExecutionScript::within(LIMITS());
    script.submit(Intent::SetTimer { timer: TimerId(1), delay_ms: 5 });
    script.submit(Intent::LoseEntries);
    assert_eq!((script.state.due(), script.state.timers.len()), (None, 1));
    script.submit(Intent::Continue { by: me() });
    assert_eq!(script.state.due(), Some(Timestamp(5)));
    script.submit(Intent::Finish { result: Ok(None), active_ms: 0 });
    assert_eq!((script.state.due(), script.state.timers.len()), (None, 0));
}

#[test]
fn a_doubt_is_about_calls_that_write_and_is_asked_once() {
    let state = |entries_may_be_lost, asked: &[u32]| State {
        entries_may_be_lost,
        doubts_asked: asked.iter().map(|call| CallId(*call)).collect(),
        ..State::default()
    };
    let in_doubt = |state: &State, nature| state.is_in_doubt(CallId(1), nature);
    assert!(in_doubt(&state(true, &[]), WRITES));
    assert!(in_doubt(&state(true, &[2]), WRITES));
    assert!(!in_doubt(&state(false, &[]), WRITES));
    assert!(!in_doubt(&state(true, &[1]), WRITES));
    assert!(!in_doubt(&state(true, &[]), READS));
    assert!(!in_doubt(&state(false, &[1]), READS));
}

#[test]
fn doubts_are_counted_only_after_entries_were_lost() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, false));
    script.submit(Intent::Recover);
    assert_eq!(script.question().kind, QuestionKind::InDoubt);
    assert_eq!(script.state.doubts_asked.len(), 0);
    let mut script = ExecutionScript::started();
    script.lose_and_continue();
    script.call(fit(READS, true));
    assert_eq!(script.question().kind, QuestionKind::Approval);
    assert_eq!(script.state.doubts_asked.len(), 0);
    script.call(fit(WRITES, false));
    assert_eq!(script.state.doubts_asked.iter().collect::<Vec<_>>(), [&CallId(2)]);
}
