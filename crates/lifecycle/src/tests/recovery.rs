//! Calls that were in flight when a server died.

use super::*;

const UNKNOWN: &str = "Tool \"mail.send\" was called and the server stopped before its result was known. \
                       It may or may not have run. Try again, treat it as failed, or supply the result?";

/// Returns the question about a call that may have run.
#[track_caller]
fn in_doubt(event: &Event, call: u32) -> &Question {
    let question = asked(event);
    assert_eq!((question.call, &question.kind), (CallId(call), &QuestionKind::InDoubt));
    question
}

#[test]
fn each_stage_and_nature_recovers_in_its_own_way() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, true));
    script.call(unavailable());
    script.call(fit(READS, false));
    script.call(fit(AT_CALLER, false));
    script.call(fit(WRITES, false));
    script.call(fit(WRITES, false));
    script.call(fit(WRITES, false));
    script.submit(settle(7, None));
    let events = script.submit(Intent::Recover);
    assert_eq!(events[..2], [Event::CallDeferred { call: CallId(2) }, dispatched(3, 2)]);
    let question = |call: u32, n: u128| {
        Event::CallAsked(Question {
            // One id for each question, derived from the call's position in the list of all calls.
            id: QuestionId::from_uuid(Uuid::from_u128((script.entropy | 1) ^ n)),
            call: CallId(call),
            kind: QuestionKind::InDoubt,
            message: format!("{UNKNOWN}\n\nArguments:\n{{}}"),
            revision: None,
            editable: false,
            answer_only: false,
        })
    };
    assert_eq!(events[2..], [question(5, 4), question(6, 5)]);
    assert_eq!(script.submit(Intent::Recover).len(), 2, "those in doubt wait for a person");
}

#[test]
fn a_call_that_only_reads_goes_out_again_each_time() {
    let mut script = ExecutionScript::started();
    script.call(fit(READS, false));
    for attempt in 2..5 {
        assert_eq!(script.submit(Intent::Recover), [dispatched(1, attempt)]);
        assert_eq!(script.state.calls[&CallId(1)].attempts, attempt);
    }
}

#[test]
fn a_tool_that_waits_for_a_visit_before_it_began_is_called_again() {
    let asking = |nature| {
        let mut script = ExecutionScript::started();
        script.call(fit(nature, false));
        script.ask_for_a_visit(1, true);
        script
    };
    assert_eq!(asking(WRITES).submit(Intent::Recover), [dispatched(1, 2)]);
    let lose = || Intent::Lose { call: CallId(1) };
    assert_eq!(asking(WRITES).submit(lose()), [dispatched(1, 2)]);
    assert_eq!(asking(READS).submit(lose()), [dispatched(1, 2)]);
    assert_eq!(asking(AT_CALLER).submit(lose()), []);
    // After a second restart, the same visit is still open.
    let mut script = asking(WRITES);
    script.submit(Intent::Recover);
    assert_eq!(script.submit(Intent::Recover), [dispatched(1, 3)]);
}

#[test]
fn a_tool_that_may_have_begun_is_in_doubt() {
    let called = || {
        let mut script = ExecutionScript::started();
        script.call(fit(WRITES, false));
        script
    };
    let mut cases = [called(), called(), called(), called(), called()];
    cases[0].ask_for_a_visit(1, false);
    cases[1].ask_for_a_form(1);
    cases[2].ask_for_a_visit(1, true);
    cases[2].ask_for_a_form(1);
    // The visit was completed, so the tool continues.
    cases[3].ask_for_a_visit(1, true);
    cases[3].submit(cases[3].reply(yes(), AnswerExtras::Nothing, None));
    // A visit of another call does not count for this one.
    cases[4].call(fit(AT_CALLER, false));
    cases[4].ask_for_a_visit(2, true);
    for (idx, script) in cases.iter_mut().enumerate() {
        let events = script.submit(Intent::Recover);
        assert_eq!(events.len(), 1, "case {idx}: {events:?}");
        in_doubt(&events[0], 1);
    }
    let mut script = called();
    script.ask_for_a_form(1);
    in_doubt(&script.submit(Intent::Lose { call: CallId(1) })[0], 1);
}

#[test]
fn after_entries_were_lost_a_visit_before_the_beginning_proves_nothing() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, false));
    script.ask_for_a_visit(1, true);
    let events = script.lose_and_continue();
    assert_eq!(events.len(), 1, "{events:?}");
    in_doubt(&events[0], 1);
}

#[test]
fn what_was_approved_is_shown_with_the_doubt() {
    let with_question = |admission: CallAdmission, rider: AnswerExtras| {
        let mut script = ExecutionScript::started();
        let rule =
            PolicyRule::lasting(ToolPattern::parse("*").unwrap(), PolicyAction::RequireApproval);
        script.policy = Policy::new(vec![vec![PolicyRule { editable: true, ..rule }]]);
        // Another call of the same tool, with a different approval.
        script.submit(make_call(1, "mail.send", "[]", fit(WRITES, true)));
        script.accept(Some(fit(WRITES, true)));
        script.call(admission.clone());
        let approval = script.question();
        script.submit(script.reply(yes(), rider, Some(admission)));
        script.submit(make_call(3, "mail.send", "[]", fit(WRITES, true)));
        script.accept(Some(fit(WRITES, true)));
        let events = script.submit(Intent::Recover);
        (approval, in_doubt(&events[1], 2).clone())
    };
    let (approval, question) = with_question(answer_only("1"), AnswerExtras::Nothing);
    assert!(approval.message.starts_with("About."), "{}", approval.message);
    assert_eq!(question.message, format!("{UNKNOWN}\n\n{}", approval.message));
    assert_eq!(
        (question.answer_only, question.revision),
        (true, Some(ToolRevision::from_text("1")))
    );
    // If the answer changed the arguments, those of the approval are not the ones that may have run.
    let (_, question) = with_question(fit(WRITES, true), AnswerExtras::Arguments(json("[1]")));
    assert_eq!(question.message, format!("{UNKNOWN}\n\nArguments:\n[\n  1\n]"));
    assert!(!question.answer_only);
}

#[test]
fn the_newest_approval_of_a_call_is_shown() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, true));
    script.accept(Some(edition(WRITES, true, Some("2"))));
    let approval = script.question();
    assert!(approval.message.contains("has changed since"), "{}", approval.message);
    assert_eq!(script.accept(Some(edition(WRITES, true, Some("2")))), [dispatched(1, 1)]);
    let events = script.submit(Intent::Recover);
    assert_eq!(in_doubt(&events[0], 1).message, format!("{UNKNOWN}\n\n{}", approval.message));
}

#[test]
fn whoever_decides_about_a_doubt_may_try_again_give_up_or_supply_the_result() {
    let doubting = || {
        let mut script = ExecutionScript::started();
        script.call(fit(WRITES, false));
        in_doubt(&script.submit(Intent::Recover)[0], 1);
        script
    };
    let given_up = failed(
        1,
        FailureCode::InDoubt,
        "Tool \"mail.send\" may or may not have run; it was given up.",
    );
    let cases = [
        (with_content(r#"{"choice":"retry"}"#), dispatched(1, 2)),
        (with_content(r#"{"choice":"fail"}"#), given_up.clone()),
        (with_content(r#"{"choice":"supply","result":[1]}"#), returned(1, "[1]")),
        (Answer::Decline, given_up.clone()),
        (Answer::Cancel, given_up),
    ];
    for (answer, expected) in cases {
        let mut script = doubting();
        let events = script.submit(script.reply(answer, AnswerExtras::Nothing, None));
        assert_eq!(events[1..], [expected]);
    }
    let help = r#"content must be {"choice":"retry"}, {"choice":"fail"} or {"choice":"supply","result":…}"#;
    for answer in [yes(), with_content("1"), with_content(r#"{"choice":"supply"}"#)] {
        let mut script = doubting();
        let intent = script.reply(answer, AnswerExtras::Nothing, None);
        assert_eq!(script.refused(intent), Rejection::BadAnswer(help.into()));
    }
}
