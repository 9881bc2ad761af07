//! Answers to approvals: their optional parts, and the outcome of the call.

use super::*;

/// Starts an execution with a held call that has this admission.
fn held(admission: CallAdmission) -> ExecutionScript {
    let mut script = ExecutionScript::started();
    asked(&script.call(admission));
    script
}

/// Holds a call under a rule that allows or forbids editing the arguments.
fn held_under(editable: bool) -> ExecutionScript {
    let mut script = ExecutionScript::started();
    script.policy = editable_policy(editable);
    let event = script.call(fit(WRITES, true));
    assert_eq!(asked(&event).editable, editable);
    script
}

fn editable_policy(editable: bool) -> Policy {
    let rule = PolicyRule::lasting(ToolPattern::parse("*").unwrap(), PolicyAction::RequireApproval);
    Policy::new(vec![vec![PolicyRule { editable, ..rule }]])
}

fn bad(why: &str) -> Rejection {
    Rejection::BadAnswer(why.to_owned().into())
}

const ASKS_EACH_TIME: &str =
    "this tool asks each time, so its approval cannot be remembered; answer without remembering";
const ONLY_REMEMBERED: &str = "only a call that is approved can be remembered";
const ONLY_EDITED: &str = "only a call that is approved can get other arguments";
const NOT_ALLOWED: &str =
    "the policy does not allow other arguments; approve the call as it is, or decline it";

#[test]
fn an_approval_is_remembered_only_where_it_is_one_and_the_tool_does_not_ask_each_time() {
    let today = || Some(fit(WRITES, true));
    let remembers = |mut script: ExecutionScript, answer, today| {
        let intent = script.reply(answer, AnswerExtras::Remember, today);
        script.try_submit(intent).map(|events| events[0].clone())
    };
    let answered = remembers(held(fit(WRITES, true)), yes(), today()).unwrap();
    assert!(matches!(answered, Event::CallAnswered { remember: true, .. }), "{answered:?}");
    let answered = remembers(held(fit(WRITES, true)), yes(), None).unwrap();
    assert!(matches!(answered, Event::CallAnswered { remember: true, .. }), "{answered:?}");
    for answer in [Answer::Decline, Answer::Cancel] {
        for admission in [fit(WRITES, true), answer_only("1")] {
            let refused = remembers(held(admission), answer.clone(), today());
            assert_eq!(refused, Err(bad(ONLY_REMEMBERED)));
        }
    }
    let cases = [
        (answer_only("1"), Some(answer_only("1"))),
        (answer_only("1"), today()),
        (answer_only("1"), None),
        (fit(WRITES, true), Some(answer_only("1"))),
    ];
    for (then, today) in cases {
        assert_eq!(remembers(held(then), yes(), today), Err(bad(ASKS_EACH_TIME)));
    }
}

#[test]
fn what_is_no_approval_takes_no_rider() {
    let doubting = || {
        let mut script = ExecutionScript::started();
        script.call(fit(WRITES, false));
        script.submit(Intent::Recover);
        script
    };
    let asking = || {
        let mut script = ExecutionScript::started();
        script.call(fit(WRITES, false));
        script.ask_for_a_form(1);
        script
    };
    for mut script in [doubting(), asking()] {
        let answer = with_content(r#"{"choice":"retry"}"#);
        let edited = AnswerExtras::Arguments(json("[]"));
        let intent = script.reply(answer.clone(), AnswerExtras::Remember, None);
        assert_eq!(script.refused(intent), bad(ONLY_REMEMBERED));
        let intent = script.reply(answer, edited, None);
        assert_eq!(script.refused(intent), bad(ONLY_EDITED));
    }
    let mut script = held_under(true);
    let intent = script.reply(Answer::Cancel, AnswerExtras::Arguments(json("[]")), None);
    assert_eq!(script.refused(intent), bad(ONLY_EDITED));
}

#[test]
fn arguments_are_changed_where_the_question_and_the_policy_of_today_allow_it() {
    let block = || policy(&[("*", PolicyAction::Block)]);
    let approve = || policy(&[("*", PolicyAction::Approve)]);
    let cases = [
        (held_under(true), editable_policy(true), true),
        (held_under(true), editable_policy(false), false),
        (held_under(false), editable_policy(true), false),
        (held_under(false), editable_policy(false), false),
        (held_under(true), approve(), true),
        (held_under(false), approve(), false),
        (held_under(true), block(), true),
    ];
    for (idx, (mut script, policy, is_allowed)) in cases.into_iter().enumerate() {
        script.policy = policy;
        let rider = AnswerExtras::Arguments(json("[1]"));
        let intent = script.reply(yes(), rider, Some(fit(WRITES, true)));
        let refused = script.try_submit(intent).err();
        assert_eq!(refused, (!is_allowed).then(|| bad(NOT_ALLOWED)), "case {idx}");
    }
}

#[test]
fn changed_arguments_must_be_taken_by_the_tool_of_today() {
    let unfit = CallAdmission::Unfit(Failure::new(FailureCode::Validation, "to is missing."));
    let told = CallAdmission::Told(json(r#""to?""#));
    let cases =
        [(unfit, "to is missing"), (told, "the tool would not take these arguments: \"to?\"")];
    for (today, why) in cases {
        let mut script = held_under(true);
        let intent = script.reply(yes(), AnswerExtras::Arguments(json("[]")), Some(today));
        assert_eq!(script.refused(intent), bad(why));
    }
}

#[test]
fn changed_arguments_may_use_the_last_byte_and_no_more() {
    let edited = "[1234]";
    // The program's own arguments are 2 bytes.
    for (bytes_max, is_allowed) in [(9, true), (8, true), (7, false), (2, false)] {
        let limits = ExecutionLimits { bytes_max, ..ExecutionLimits::default() };
        let policy = editable_policy(true);
        let mut script = ExecutionScript { policy, ..ExecutionScript::within(limits) };
        script.call(fit(WRITES, true));
        let intent =
            script.reply(yes(), AnswerExtras::Arguments(json(edited)), Some(fit(WRITES, true)));
        let refused = script.try_submit(intent).err();
        let why = "with these arguments the program would move too many bytes";
        assert_eq!(refused, (!is_allowed).then(|| bad(why)), "{bytes_max}");
    }
}

#[test]
fn an_approved_call_goes_out_unless_the_tool_of_today_is_another() {
    let unfit = CallAdmission::Unfit(Failure::new(FailureCode::ToolNotFound, "gone"));
    let none = || edition(WRITES, true, None);
    let goes_out = [
        (fit(WRITES, true), None),
        (fit(WRITES, true), Some(fit(WRITES, true))),
        (fit(WRITES, true), Some(none())),
        (none(), Some(fit(WRITES, true))),
    ];
    for (then, today) in goes_out {
        assert_eq!(held(then).accept(today), [dispatched(1, 1)]);
    }
    let gone = failed(1, FailureCode::ToolNotFound, "gone");
    assert_eq!(held(fit(WRITES, true)).accept(Some(unfit)), [gone]);
    assert_eq!(
        held(fit(WRITES, true)).accept(Some(CallAdmission::Told(json("7")))),
        [returned(1, "7")]
    );
    let mut script = held(fit(WRITES, true));
    script.policy = policy(&[("*", PolicyAction::Block)]);
    assert_eq!(script.accept(None), [blocked(1)]);
}

#[test]
fn an_accept_while_the_source_is_unavailable_is_refused_unless_the_tool_is_blocked() {
    let mut script = held(fit(WRITES, true));
    let intent = script.reply(yes(), AnswerExtras::Nothing, Some(unavailable()));
    let expected =
        Rejection::SourceUnavailable { tool: tool("mail.send"), why: "it is down".into() };
    assert_eq!(script.refused(intent), expected);
    let mut script = held(fit(WRITES, true));
    script.policy = policy(&[("*", PolicyAction::Block)]);
    assert_eq!(script.accept(Some(unavailable())), [blocked(1)]);
}

#[test]
fn a_changed_tool_asks_once_more_about_itself() {
    let changed = "Tool \"mail.send\" has changed since its approval was asked for, so the yes does not count. \
                   Approve the call of the tool as it is now?";
    let cases = [
        (fit(WRITES, true), edition(WRITES, true, Some("2")), false, changed.to_owned()),
        (answer_only("1"), edition(WRITES, true, Some("2")), true, changed.to_owned()),
        (fit(WRITES, true), answer_only("2"), true, format!("{changed}\n\nAbout.")),
        (answer_only("1"), answer_only("2"), true, format!("{changed}\n\nAbout.")),
    ];
    for (then, today, answer_only, about) in cases {
        let mut script = held(then);
        let events = script.accept(Some(today));
        let expected = Question {
            id: QuestionId::from_uuid(Uuid::from_u128(script.entropy | 1)),
            call: CallId(1),
            kind: QuestionKind::Approval,
            message: format!("{about}\n\nArguments:\n{{}}"),
            revision: Some(ToolRevision::from_text("2")),
            editable: false,
            answer_only,
        };
        assert_eq!(events, [Event::CallAsked(expected)]);
    }
    let mut script = held_under(true);
    let today = Some(edition(WRITES, true, Some("2")));
    let events = script.submit(script.reply(yes(), AnswerExtras::Arguments(json("[1]")), today));
    let question = asked(&events[1]);
    assert_eq!(question.message, format!("{changed}\n\nArguments:\n[\n  1\n]"));
    assert!(question.editable);
}

#[test]
fn a_no_settles_the_call_in_executors_words() {
    let sentence = |how: &str| {
        format!("Tool \"mail.send\" requires approval but the request was {how} by the user.")
    };
    let cases = [
        (Answer::Decline, FailureCode::Declined, sentence("declined")),
        (Answer::Cancel, FailureCode::QuestionCancelled, sentence("cancelled")),
    ];
    for (answer, code, message) in cases {
        let mut script = held(fit(WRITES, true));
        let question = script.question().id;
        let by = AnswerAuthor { caller: me(), role: AnswerRole::Model };
        let (rider, today) = (AnswerExtras::Nothing, None);
        let intent = Intent::Answer { question, answer: answer.clone(), by, rider, today };
        let events = script.submit(intent);
        let answered = Event::CallAnswered {
            question,
            call: CallId(1),
            answer,
            by: me(),
            role: AnswerRole::Model,
            remember: false,
            arguments: None,
        };
        assert_eq!(events, [answered, failed(1, code, &message)]);
    }
}

#[test]
fn the_answer_to_a_tools_own_question_only_goes_to_the_tool() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, false));
    script.ask_for_a_form(1);
    script.ask_for_a_visit(1, false);
    let call = || CallId(1);
    for (answer, stage) in [
        (yes(), CallStage::Asking(json("{}"))),
        (Answer::Decline, CallStage::Dispatched(json("{}"))),
    ] {
        let events =
            script.submit(script.reply(answer, AnswerExtras::Nothing, Some(unavailable())));
        assert!(matches!(events[..], [Event::CallAnswered { .. }]), "{events:?}");
        assert_eq!(script.state.calls[&call()].stage, stage);
        let is_at_work = matches!(stage, CallStage::Dispatched(_));
        assert_eq!(script.state.dispatched.contains_key(&call()), is_at_work);
    }
}

#[test]
fn an_approval_from_before_entries_were_lost_becomes_a_doubt_about_what_would_run() {
    let lost = || {
        let mut script = held_under(true);
        assert_eq!(script.lose_and_continue(), []);
        script
    };
    for (rider, args) in
        [(AnswerExtras::Nothing, "{}"), (AnswerExtras::Arguments(json("[1]")), "[\n  1\n]")]
    {
        let mut script = lost();
        let events = script.submit(script.reply(yes(), rider, Some(fit(WRITES, true))));
        let question = asked(&events[1]);
        assert_eq!((question.call, &question.kind), (CallId(1), &QuestionKind::InDoubt));
        assert!(question.message.ends_with(&format!("Arguments:\n{args}")), "{}", question.message);
    }
    // A read-only call is dispatched.
    let mut script = held(fit(READS, true));
    assert_eq!(script.lose_and_continue(), []);
    assert_eq!(script.accept(Some(fit(READS, true))), [dispatched(1, 1)]);
}
