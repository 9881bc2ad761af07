//! Totals of an execution: the bytes of calls, output, questions and progress.

use super::*;

#[test]
fn every_byte_is_counted_once_where_it_belongs() {
    let mut script = ExecutionScript::started();
    let mut totals = vec![];
    let rule =
        PolicyRule::lasting(ToolPattern::parse("mail.*").unwrap(), PolicyAction::RequireApproval);
    script.policy = Policy::new(vec![vec![PolicyRule { editable: true, ..rule }]]);
    let mut note = |script: &ExecutionScript| {
        totals.push((script.state.bytes, script.state.log_bytes, script.state.progress_bytes));
    };
    let mark = |ordinal| OutputMark { input: InputIndex(0), ordinal };
    for ordinal in [1, 2] {
        let line = "12345".to_owned();
        script.submit(Intent::Log { mark: mark(ordinal), level: LogLevel::Log, line });
    }
    note(&script);
    script.submit(Intent::Emit { mark: mark(3), item: json("\"7\"") });
    note(&script);
    script.submit(make_call(1, "file.read", "[1, 2]", fit(READS, false)));
    note(&script);
    for text in ["half", &"x".repeat(100)] {
        script.submit(Intent::Progress { call: CallId(1), text: text.into() });
    }
    note(&script);
    script.submit(Intent::Ask { call: CallId(1), wish: form("Who?") });
    note(&script);
    script.submit(settle(1, Some("\"result\"")));
    note(&script);
    script.submit(make_call(2, "mail.send", "{}", fit(WRITES, true)));
    note(&script);
    let today = Some(fit(WRITES, true));
    script.submit(script.reply(yes(), AnswerExtras::Arguments(json("[1]")), today));
    note(&script);
    let expected = [
        (10, 10, 0),
        (13, 10, 0),
        (19, 10, 0),
        (19, 10, 164),
        (25, 10, 164),
        (33, 10, 164),
        (35, 10, 164),
        (38, 10, 164),
    ];
    assert_eq!(totals, expected);
    assert_eq!(script.state.calls[&CallId(1)].progress_bytes, 164);
    assert_eq!(script.state.outputs.len(), 3);
    assert_eq!(script.state.args(CallId(2)), Some(json("[1]")));
}

#[test]
fn a_question_is_as_large_as_its_message_and_what_it_asks_for() {
    let id = QuestionId::from_uuid(Uuid::nil());
    let bytes = |wish: ToolPrompt| wish.question(id, CallId(1), &RandomSeed([7; 32])).bytes();
    let schema = json("[123]");
    assert_eq!(bytes(ToolPrompt::Form { message: "Who?".into(), schema }), 4 + 5);
    let url = "https://a.example/".to_owned();
    assert_eq!(bytes(ToolPrompt::Link { message: "Go".into(), url, is_prior: false }), 2 + 18);
    let approval = Question {
        kind: QuestionKind::Approval,
        ..form("Who?").question(id, CallId(1), &RandomSeed([7; 32]))
    };
    assert_eq!(approval.bytes(), 4);
}

#[test]
fn progress_fits_to_the_last_byte_of_a_call_and_of_all_calls() {
    let mut script = ExecutionScript::started();
    script.call(fit(WRITES, false));
    let n_kept = |script: &mut ExecutionScript, call, n_bytes: usize| {
        let text = "x".repeat(n_bytes);
        script.submit(Intent::Progress { call: CallId(call), text }).len()
    };
    assert_eq!(n_kept(&mut script, 1, PROGRESS_BYTES_MAX + 1), 0);
    assert_eq!(n_kept(&mut script, 1, PROGRESS_BYTES_MAX - 100), 1);
    assert_eq!(n_kept(&mut script, 1, 101), 0);
    assert_eq!(n_kept(&mut script, 1, 100), 1);
    assert_eq!(n_kept(&mut script, 1, 1), 0);
    assert_eq!(script.state.progress_bytes, PROGRESS_BYTES_MAX);
    script.call(fit(WRITES, false));
    script.state.progress_bytes = PROGRESS_OF_ALL_BYTES_MAX - 100;
    assert_eq!(n_kept(&mut script, 2, 101), 0);
    assert_eq!(n_kept(&mut script, 2, 100), 1);
    assert_eq!(n_kept(&mut script, 2, 1), 0);
    assert_eq!((PROGRESS_BYTES_MAX, PROGRESS_OF_ALL_BYTES_MAX), (65_536, 4_194_304));
}
