//! The decision about a call from the policy, the tool and remembered approvals.

use super::*;

/// The outcome of a call in short form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallFate {
    Runs,
    Asks,
    IsNotThere,
}

#[track_caller]
fn fate(event: &Event) -> CallFate {
    if *event == dispatched(1, 1) {
        CallFate::Runs
    } else if *event == blocked(1) {
        CallFate::IsNotThere
    } else {
        assert_eq!(asked(event).kind, QuestionKind::Approval);
        CallFate::Asks
    }
}

#[test]
fn the_policy_decides_and_otherwise_the_tool() {
    use PolicyAction::{Approve, Block, RequireApproval};
    let traits = |asks, answer_only| ToolTraits { answer_only, ..ToolTraits::lasting(asks) };
    let cases = [
        (None, traits(false, false), CallFate::Runs),
        (None, traits(true, false), CallFate::Asks),
        (None, traits(false, true), CallFate::Asks),
        (Some(Approve), traits(true, false), CallFate::Runs),
        (Some(Approve), traits(false, true), CallFate::Asks),
        (Some(RequireApproval), traits(false, false), CallFate::Asks),
        (Some(Block), traits(false, false), CallFate::IsNotThere),
        (Some(Block), traits(false, true), CallFate::IsNotThere),
    ];
    for (action, traits, expected) in cases {
        let rules: Vec<_> = action.into_iter().map(|action| ("mail.*", action)).collect();
        let mut script = ExecutionScript::under(&rules);
        let admission = CallAdmission::Fit { nature: WRITES, traits, about: None, revision: None };
        let event = script.call(admission);
        assert_eq!(fate(&event), expected, "{action:?} {traits:?}");
    }
}

#[test]
fn a_question_says_what_is_asked_about() {
    let args = "Arguments:\n{}";
    let about = |about: Option<&str>| {
        let (traits, about) = (ToolTraits::lasting(true), about.map(str::to_owned));
        CallAdmission::Fit {
            nature: WRITES,
            traits,
            about,
            revision: Some(ToolRevision::from_text("1")),
        }
    };
    let cases = [
        (None, None, "Approve mail.send?"),
        (Some("mail.*"), None, "Approve tools.mail.send? (matched policy: mail.*)"),
        (None, Some("Sends."), "Sends."),
        (Some("mail.*"), Some("Sends."), "Sends."),
    ];
    for (pattern, text, first) in cases {
        let rules: Vec<_> =
            pattern.into_iter().map(|pattern| (pattern, PolicyAction::RequireApproval)).collect();
        let mut script = ExecutionScript::under(&rules);
        let event = script.call(about(text));
        let expected = Question {
            id: QuestionId::from_uuid(Uuid::from_u128(script.entropy | 1)),
            call: CallId(1),
            kind: QuestionKind::Approval,
            message: format!("{first}\n\n{args}"),
            revision: Some(ToolRevision::from_text("1")),
            editable: false,
            answer_only: false,
        };
        assert_eq!(event, Event::CallAsked(expected));
    }
}

#[test]
fn a_remembered_approval_is_good_for_its_tool_and_edition_unless_each_call_asks() {
    let remembered = || {
        let mut script = ExecutionScript::started();
        script.call(fit(WRITES, true));
        let events =
            script.submit(script.reply(yes(), AnswerExtras::Remember, Some(fit(WRITES, true))));
        assert_eq!(events[1], dispatched(1, 1));
        let key = (tool("mail.send"), ToolRevision::from_text("1"));
        assert_eq!(script.state.remembered.iter().collect::<Vec<_>>(), [&key]);
        script
    };
    assert_eq!(remembered().call(fit(WRITES, true)), dispatched(2, 1));
    asked(&remembered().call(edition(WRITES, true, Some("2"))));
    asked(&remembered().call(edition(WRITES, true, None)));
    asked(&remembered().call(answer_only("1")));
    let events = remembered().submit(make_call(2, "mail.drop", "{}", fit(WRITES, true)));
    asked(&events[1]);
    let mut script = remembered();
    script.policy = policy(&[("*", PolicyAction::Block)]);
    assert_eq!(script.call(fit(WRITES, true)), blocked(2));
    // An approval is not remembered unless the answer requests it.
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, true));
    script.accept(Some(fit(WRITES, true)));
    asked(&script.call(fit(WRITES, true)));
}

#[test]
fn after_entries_were_lost_a_call_that_writes_is_in_doubt_unless_it_is_refused() {
    let lost = || {
        let mut script = ExecutionScript::started();
        assert_eq!(script.lose_and_continue(), []);
        script
    };
    let mut script = lost();
    let question = asked(&script.call(answer_only("1"))).clone();
    let message = "The server lost entries of this execution, so nobody knows whether tool \"mail.send\" was called \
                   with this before. It may or may not have run. Try again, treat it as failed, or supply the \
                   result?\n\nArguments:\n{}";
    let expected = Question {
        id: QuestionId::from_uuid(Uuid::from_u128(script.entropy | 1)),
        call: CallId(1),
        kind: QuestionKind::InDoubt,
        message: message.into(),
        revision: Some(ToolRevision::from_text("1")),
        editable: false,
        answer_only: true,
    };
    assert_eq!(question, expected);
    assert_eq!(lost().call(fit(READS, false)), dispatched(1, 1));
    let mut script = lost();
    script.policy = policy(&[("*", PolicyAction::Block)]);
    assert_eq!(script.call(fit(WRITES, false)), blocked(1));
}

#[test]
fn a_call_that_goes_nowhere_is_settled_as_the_catalogue_says() {
    let failure = Failure::new(FailureCode::Validation, "to is missing");
    let cases = [
        (CallAdmission::Unfit(failure), failed(1, FailureCode::Validation, "to is missing")),
        (CallAdmission::Told(json("[1]")), returned(1, "[1]")),
        (unavailable(), Event::CallDeferred { call: CallId(1) }),
    ];
    for (admission, expected) in cases {
        let mut script = ExecutionScript::started();
        let events = script.submit(make_call(1, "mail.send", "{}", admission));
        let (call, tool, args) = (CallId(1), tool("mail.send"), json("{}"));
        let made = Event::CallMade { call, tool, args, nature: READS, line: None, alias: None };
        assert_eq!(events, [made, expected]);
    }
    let mut script = ExecutionScript::under(&[("mail.*", PolicyAction::Block)]);
    assert_eq!(script.call(unavailable()), blocked(1));
}

#[test]
fn arguments_in_a_question_are_cut() {
    let mut script = ExecutionScript::started();
    let args = format!("\"{}\"", "x".repeat(5_000));
    let events = script.submit(make_call(1, "mail.send", &args, fit(WRITES, true)));
    let message = &asked(&events[1]).message;
    let shown = format!("\"{}\n... [truncated 1002 chars]", "x".repeat(3_999));
    assert_eq!(*message, format!("Approve mail.send?\n\nArguments:\n{shown}"));
}
