//! Calls that wait for their sources, and their outcomes when the wait ends.

use super::*;

fn admit(admission: CallAdmission) -> Intent {
    Intent::Admit { call: CallId(1), admission }
}

fn admitted(nature: ToolNature, edition: &str) -> Event {
    let (call, revision) = (CallId(1), Some(ToolRevision::from_text(edition)));
    Event::CallAdmitted { call, nature, revision }
}

/// Starts an execution with a call that waits for its source and has no accept.
fn waiting() -> ExecutionScript {
    let mut script = ExecutionScript::started();
    assert_eq!(script.call(unavailable()), Event::CallDeferred { call: CallId(1) });
    script
}

/// Starts an execution with a call that was accepted and has not reached its tool.
fn accepted(then: CallAdmission) -> ExecutionScript {
    let mut script = ExecutionScript::started();
    script.call(then.clone());
    assert_eq!(script.accept(Some(then)), [dispatched(1, 1)]);
    script.submit(Intent::Defer { call: CallId(1) });
    assert_eq!(script.state.calls[&CallId(1)].attempts, 0, "it was no attempt");
    script
}

#[test]
fn only_a_dispatched_call_of_this_server_can_wait_for_its_source() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, true));
    script.call(unavailable());
    script.call(fit(AT_CALLER, false));
    script.call(fit(WRITES, false));
    script.submit(settle(4, None));
    for call in 1..6 {
        let refused = script.refused(Intent::Defer { call: CallId(call) });
        assert_eq!(refused, Rejection::NotOutstanding(CallId(call)));
    }
    script.call(fit(WRITES, false));
    script.call(fit(WRITES, false));
    script.ask_for_a_form(6);
    for call in [5, 6] {
        let deferred = Event::CallDeferred { call: CallId(call) };
        assert_eq!(script.submit(Intent::Defer { call: CallId(call) }), [deferred]);
        assert_eq!(script.state.calls[&CallId(call)].stage, CallStage::Deferred(json("{}")));
        assert_eq!(script.state.calls[&CallId(call)].attempts, 0);
    }
    assert_eq!(script.state.dispatched.keys().collect::<Vec<_>>(), [&CallId(3)]);
    // A second wait is not an attempt that could be withdrawn.
    let mut script = ExecutionScript::started();
    script.call(fit(READS, false));
    script.submit(Intent::Recover);
    script.submit(Intent::Defer { call: CallId(1) });
    script.submit(Intent::Recover);
    assert_eq!(script.state.calls[&CallId(1)].attempts, 1);
}

#[test]
fn only_a_call_that_waits_for_its_source_can_be_admitted() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, false));
    let refused = Rejection::NotOutstanding(CallId(1));
    assert_eq!(script.refused(admit(fit(WRITES, false))), refused);
}

#[test]
fn a_call_without_an_accept_is_decided_on_as_if_it_were_made_now() {
    let unfit = CallAdmission::Unfit(Failure::new(FailureCode::Validation, "no"));
    let settled = [
        (unavailable(), failed(1, FailureCode::SourceUnavailable, "No.")),
        (unfit, failed(1, FailureCode::Validation, "no")),
        (CallAdmission::Told(json("7")), returned(1, "7")),
    ];
    for (admission, expected) in settled {
        assert_eq!(waiting().submit(admit(admission)), [expected]);
    }
    for (given, nature) in [(WRITES, WRITES), (READS, READS), (AT_CALLER, WRITES)] {
        let mut script = waiting();
        let events = script.submit(admit(fit(given, false)));
        assert_eq!(events, [admitted(nature, "1"), dispatched(1, 1)]);
        let call = &script.state.calls[&CallId(1)];
        assert_eq!((call.nature, call.revision), (nature, Some(ToolRevision::from_text("1"))));
    }
    let mut script = waiting();
    let events = script.submit(admit(fit(WRITES, true)));
    assert_eq!(events[0], admitted(WRITES, "1"));
    assert_eq!(asked(&events[1]).kind, QuestionKind::Approval);
    for admission in [unavailable(), fit(WRITES, false)] {
        let mut script = waiting();
        script.policy = policy(&[("*", PolicyAction::Block)]);
        assert_eq!(script.submit(admit(admission)).last(), Some(&blocked(1)));
    }
}

#[test]
fn an_accept_counts_for_the_edition_that_was_accepted() {
    let admit_edition = |then: Option<&str>, now: Option<&str>| {
        let mut script = accepted(edition(WRITES, true, then));
        script.submit(admit(edition(WRITES, true, now)))[1].clone()
    };
    for (then, now) in [(Some("1"), Some("1")), (Some("1"), None), (None, Some("1"))] {
        assert_eq!(admit_edition(then, now), dispatched(1, 1), "{then:?} {now:?}");
    }
    let event = admit_edition(Some("1"), Some("2"));
    let question = asked(&event);
    assert!(question.message.contains("has changed since"), "{}", question.message);
    assert_eq!(question.revision, Some(ToolRevision::from_text("2")));
    for admission in [unavailable(), fit(WRITES, true)] {
        let mut script = accepted(fit(WRITES, true));
        script.policy = policy(&[("*", PolicyAction::Block)]);
        assert_eq!(script.submit(admit(admission)).last(), Some(&blocked(1)));
    }
}

#[test]
fn an_accept_that_reached_no_tool_is_asked_for_again() {
    let mut script = accepted(answer_only("1"));
    let events = script.submit(admit(unavailable()));
    let message = "The approved call of tool \"mail.send\" was not dispatched, because its source is not available: \
                   it is down. It has not run. Approve it again when the source is available?\n\nArguments:\n{}";
    let expected = Question {
        id: QuestionId::from_uuid(Uuid::from_u128(script.entropy | 1)),
        call: CallId(1),
        kind: QuestionKind::Approval,
        message: message.into(),
        revision: Some(ToolRevision::from_text("1")),
        editable: false,
        answer_only: true,
    };
    assert_eq!(events, [Event::CallAsked(expected)]);
}

#[test]
fn after_entries_were_lost_an_accept_does_not_dispatch_what_writes() {
    let cases = [
        (fit(WRITES, true), fit(WRITES, true), false),
        (answer_only("1"), fit(WRITES, true), true),
        (fit(WRITES, true), answer_only("1"), true),
    ];
    for (then, now, answer_only) in cases {
        let mut script = accepted(then);
        assert_eq!(script.lose_and_continue(), [Event::CallDeferred { call: CallId(1) }]);
        let events = script.submit(admit(now));
        let question = asked(&events[1]);
        assert_eq!((&question.kind, question.answer_only), (&QuestionKind::InDoubt, answer_only));
    }
    let mut script = accepted(fit(READS, true));
    script.lose_and_continue();
    let events = script.submit(admit(fit(READS, true)));
    assert_eq!(events[1], dispatched(1, 1));
}
