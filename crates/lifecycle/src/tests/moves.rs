//! Intents of the program: output, calls, timers, rests, and the limits of each.

use super::*;

fn mark(input: u32, ordinal: u32) -> OutputMark {
    OutputMark { input: InputIndex(input), ordinal }
}

fn log(mark: OutputMark, line: &str) -> Intent {
    Intent::Log { mark, level: LogLevel::Warn, line: line.into() }
}

fn emit(mark: OutputMark, item: &str) -> Intent {
    Intent::Emit { mark, item: json(item) }
}

fn diverged(what: &str) -> Rejection {
    Rejection::Diverged { what: what.into() }
}

#[test]
fn a_new_output_is_recorded_and_an_old_one_must_be_the_same() {
    let mut script = ExecutionScript::started();
    let (first, third) = (mark(0, 1), mark(0, 3));
    let logged = Event::Logged { mark: first, level: LogLevel::Warn, line: "a".into() };
    assert_eq!(script.submit(log(first, "a")), [logged]);
    let emitted = Event::Emitted { mark: third, item: json("2") };
    assert_eq!(script.submit(emit(third, "2")), [emitted]);
    for known in [log(first, "a"), emit(third, "2")] {
        assert_eq!(script.submit(known), []);
    }
    for (changed, what) in [
        (log(first, "b"), "output 1 after input 0"),
        (emit(third, "3"), "output 3 after input 0"),
        (log(mark(0, 2), "a"), "output 2 after input 0"),
    ] {
        assert_eq!(script.refused(changed), diverged(what));
    }
    let later = mark(1, 1);
    assert_eq!(script.submit(emit(later, "1")), [Event::Emitted { mark: later, item: json("1") }]);
}

#[test]
fn a_line_that_was_recorded_is_no_second_time_over_the_limit() {
    let mut script =
        ExecutionScript::within(ExecutionLimits { log_bytes_max: 5, ..ExecutionLimits::default() });
    assert_eq!(script.submit(log(mark(0, 1), "12345")).len(), 1);
    assert_eq!(script.submit(log(mark(0, 1), "12345")), []);
    let events = script.submit(log(mark(0, 2), "6"));
    let expected =
        (LimitKind::Logs, FailureCode::LimitExceeded, "The program printed more than 5 bytes.");
    assert_eq!(expired(&events), expected);
}

#[test]
fn outputs_beyond_their_number_end_the_program() {
    let mut script =
        ExecutionScript::within(ExecutionLimits { outputs_max: 2, ..ExecutionLimits::default() });
    assert_eq!(script.submit(log(mark(0, 1), "a")).len(), 1);
    assert_eq!(script.submit(emit(mark(0, 2), "1")).len(), 1);
    let events = script.submit(log(mark(0, 3), "c"));
    let message = "The program wrote more than 2 lines and items.";
    assert_eq!(expired(&events), (LimitKind::Outputs, FailureCode::LimitExceeded, message));
}

#[test]
fn what_moves_more_bytes_than_allowed_ends_the_program() {
    let within = |bytes_max| {
        let mut script =
            ExecutionScript::within(ExecutionLimits { bytes_max, ..ExecutionLimits::default() });
        script.submit(log(mark(0, 1), "12345"));
        script
    };
    let message = |n| format!("The program moved more than {n} bytes.");
    let cases = [
        log(mark(0, 2), "123"),
        emit(mark(0, 2), "123"),
        make_call(1, "mail.send", "123", fit(WRITES, false)),
        make_call(1, "mail.send", "123", fit(WRITES, true)),
    ];
    for intent in cases {
        let events = within(8).submit(intent.clone());
        assert!(!matches!(events[0], Event::LimitReached { .. }), "{events:?}");
        let events = within(7).submit(intent);
        let expected = (LimitKind::Bytes, FailureCode::LimitExceeded, message(7));
        let (limit, code, told) = expired(&events);
        assert_eq!((limit, code, told.to_owned()), expected);
    }
}

#[test]
fn results_and_questions_of_tools_count_as_bytes() {
    // The arguments are 2 bytes; the question has 4 and 2.
    for (bytes_max, fits) in [(8, true), (7, false)] {
        let mut script =
            ExecutionScript::within(ExecutionLimits { bytes_max, ..ExecutionLimits::default() });
        script.call(fit(WRITES, false));
        let events = script.submit(Intent::Ask { call: CallId(1), wish: form("Who?") });
        assert_eq!(matches!(events[0], Event::CallAsked(_)), fits, "{events:?}");
        let mut script =
            ExecutionScript::within(ExecutionLimits { bytes_max, ..ExecutionLimits::default() });
        script.call(fit(WRITES, false));
        let events = script.submit(settle(1, Some("123456")));
        assert_eq!(events == [returned(1, "123456")], fits, "{events:?}");
    }
    let mut script =
        ExecutionScript::within(ExecutionLimits { bytes_max: 2, ..ExecutionLimits::default() });
    script.call(fit(WRITES, false));
    let failure = CallOutcome::Failed(Failure::new(FailureCode::Tool, "a long message"));
    let events = script.submit(Intent::Settle { call: CallId(1), outcome: failure });
    assert!(matches!(events[..], [Event::CallSettled { .. }]), "a failure moves nothing");
}

#[test]
fn a_result_at_its_limit_is_taken_and_one_beyond_fails_the_call() {
    let within = || {
        let mut script = ExecutionScript::within(ExecutionLimits {
            result_bytes_max: 3,
            ..ExecutionLimits::default()
        });
        script.call(fit(WRITES, false));
        script
    };
    for result in ["12", "123"] {
        assert_eq!(within().submit(settle(1, Some(result))), [returned(1, result)]);
    }
    let message = "The tool returned 4 bytes; at most 3 are taken.";
    let expected = failed(1, FailureCode::LimitExceeded, message);
    assert_eq!(within().submit(settle(1, Some("1234"))), [expected]);
}

#[test]
fn a_call_made_again_must_be_the_same() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, false));
    let again = |path, args| make_call(1, path, args, fit(WRITES, false));
    assert_eq!(script.submit(again("mail.send", "{}")), []);
    let other = diverged("call 1 (mail.send)");
    assert_eq!(script.refused(again("mail.drop", "{}")), other);
    assert_eq!(script.refused(again("mail.send", "[]")), other);
    assert_eq!(script.refused(again("mail.drop", "[]")), other);
}

#[test]
fn calls_are_numbered_and_counted() {
    let mut script =
        ExecutionScript::within(ExecutionLimits { calls_max: 2, ..ExecutionLimits::default() });
    let unruly = Rejection::Unruly("calls must be numbered one after the other");
    for call in [0, 2] {
        let intent = make_call(call, "mail.send", "{}", fit(WRITES, false));
        assert_eq!(script.refused(intent), unruly);
    }
    script.call(fit(WRITES, false));
    script.call(fit(WRITES, false));
    let events = script.submit(make_call(3, "mail.send", "{}", fit(WRITES, false)));
    let message = "The program made more than 2 tool calls.";
    assert_eq!(expired(&events), (LimitKind::Calls, FailureCode::LimitExceeded, message));
}

#[test]
fn timers_are_numbered_counted_and_set_once() {
    let mut script =
        ExecutionScript::within(ExecutionLimits { timers_max: 2, ..ExecutionLimits::default() });
    script.at = 100;
    let set = |timer, delay_ms| Intent::SetTimer { timer: TimerId(timer), delay_ms };
    let first = Event::TimerSet { timer: TimerId(1), due: Timestamp(105) };
    assert_eq!(script.submit(set(1, 5)), [first]);
    assert_eq!(script.submit(set(1, 9)), [], "replay sets its timers again");
    let unruly = Rejection::Unruly("timers must be numbered one after the other");
    assert_eq!(script.refused(set(3, 5)), unruly);
    assert_eq!(script.submit(set(2, 7)).len(), 1);
    assert_eq!(script.state.timers_set, TimerId(2));
    let events = script.submit(set(3, 5));
    let message = "The program set more than 2 timers.";
    assert_eq!(expired(&events), (LimitKind::Timers, FailureCode::LimitExceeded, message));
}

#[test]
fn a_timer_fires_or_is_cleared_once() {
    let mut script = ExecutionScript::started();
    let timer = |n| TimerId(n);
    script.submit(Intent::SetTimer { timer: timer(1), delay_ms: 1 });
    script.submit(Intent::SetTimer { timer: timer(2), delay_ms: 1 });
    let clear = |n| Intent::ClearTimer { timer: timer(n) };
    let fire = |n| Intent::Fire { timer: timer(n) };
    assert_eq!(script.submit(fire(1)), [Event::TimerFired { timer: timer(1) }]);
    assert_eq!(script.state.inputs, InputIndex(1), "a timer is an input");
    assert_eq!(script.submit(clear(2)), [Event::TimerCleared { timer: timer(2) }]);
    assert_eq!(script.state.inputs, InputIndex(1));
    for over in [fire(1), clear(1), fire(2), clear(2), fire(3), clear(3)] {
        assert_eq!(script.submit(over), []);
    }
}

#[test]
fn a_rest_pauses_where_only_others_can_help_and_says_so_once() {
    let rest = |inputs| Intent::Rest { inputs: InputIndex(inputs), active_ms: 5 };
    let paused = |inputs| [Event::Paused { inputs: InputIndex(inputs), active_ms: 5 }];
    let mut script = ExecutionScript::started();
    assert_eq!(script.submit(rest(0)), [], "nothing waits for a person");
    script.call(fit(WRITES, true));
    assert_eq!(script.submit(rest(1)), [], "another input is on its way");
    assert_eq!(script.submit(rest(0)), paused(0));
    assert_eq!((script.state.phase, script.state.active_ms), (ExecutionPhase::Paused, 5));
    assert_eq!(script.submit(rest(0)), [], "it is known");
    // Another call is made, dispatched and asks: the inputs are the same, but it has a separate rest.
    script.call(fit(WRITES, false));
    assert_eq!((script.state.phase, script.submit(rest(0))), (ExecutionPhase::Running, vec![]));
    script.ask_for_a_form(2);
    assert_eq!(script.submit(rest(0)), paused(0));
    script.submit(settle(2, None));
    assert_eq!(script.submit(rest(0)), [], "it rested before its newest input");
    assert_eq!(script.submit(rest(1)), paused(1));
}

#[test]
fn a_tool_asks_and_settles_only_while_it_is_at_work() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, true));
    script.call(unavailable());
    script.call(fit(WRITES, false));
    script.submit(settle(3, None));
    for call in [1, 2, 3, 4] {
        let call_id = CallId(call);
        let refused = Rejection::NotOutstanding(call_id);
        let ask = Intent::Ask { call: call_id, wish: form("Who?") };
        assert_eq!(script.refused(ask), refused, "call {call}");
        assert_eq!(script.refused(settle(call, None)), refused, "call {call}");
        assert_eq!(script.refused(Intent::Lose { call: call_id }), refused, "call {call}");
        let progress = Intent::Progress { call: call_id, text: "half".into() };
        assert_eq!(script.refused(progress), refused, "call {call}");
    }
    script.call(fit(WRITES, false));
    assert_eq!(
        script.refused(Intent::Lose { call: CallId(4) }),
        Rejection::NotOutstanding(CallId(4)),
        "it has asked nothing"
    );
    script.ask_for_a_form(4);
    let question = script.question();
    assert_eq!(
        (question.call, question.kind),
        (CallId(4), QuestionKind::Form { schema: json("{}") })
    );
    assert_eq!(script.submit(settle(4, Some("1"))), [returned(4, "1")]);
    assert_eq!(script.state.questions[&question.id].1, Some(Answer::Cancel));
}

#[test]
fn every_limit_ends_the_program_with_its_code_and_sentence() {
    let limits = ExecutionLimits {
        cpu_ms_max: 1,
        active_ms_max: 2,
        total_ms_max: 3,
        memory_bytes_max: 4,
        calls_max: 5,
        timers_max: 6,
        outputs_max: 7,
        bytes_max: 8,
        log_bytes_max: 9,
        idle_ms_max: 10,
        grace_ms_max: 11,
        loop_rounds_max: 12,
        ..ExecutionLimits::default()
    };
    use FailureCode::{LimitExceeded, MemoryLimit, Timeout};
    let cases = [
        (LimitKind::Cpu, "cpu", Timeout, "used more than 1 ms of processor time"),
        (LimitKind::Active, "active", Timeout, "ran longer than 2 ms"),
        (LimitKind::Total, "total", Timeout, "was not finished 3 ms after its start"),
        (LimitKind::Memory, "memory", MemoryLimit, "needed more than 4 bytes of memory"),
        (LimitKind::Calls, "calls", LimitExceeded, "made more than 5 tool calls"),
        (LimitKind::Timers, "timers", LimitExceeded, "set more than 6 timers"),
        (LimitKind::Outputs, "outputs", LimitExceeded, "wrote more than 7 lines and items"),
        (LimitKind::Bytes, "bytes", LimitExceeded, "moved more than 8 bytes"),
        (LimitKind::Logs, "logs", LimitExceeded, "printed more than 9 bytes"),
        (LimitKind::Idle, "idle", Timeout, "waited longer than 10 ms for its caller"),
        (LimitKind::Grace, "grace", Timeout, "ran 11 ms while nobody listened"),
        (LimitKind::Rounds, "rounds", LimitExceeded, "went round one loop more than 12 times"),
    ];
    for (limit, name, code, sentence) in cases {
        let mut script = ExecutionScript::within(limits);
        let events = script.submit(Intent::Expire { limit, active_ms: 42 });
        let outcome =
            ExecutionOutcome::Failed(Failure::new(code, format!("The program {sentence}.")));
        let finished = Event::Finished { outcome, active_ms: 42, iterations: 0 };
        assert_eq!(events, [Event::LimitReached { limit }, finished]);
        assert_eq!((limit.to_string(), limit.sentence(&limits)), (name.into(), sentence.into()));
    }
}
