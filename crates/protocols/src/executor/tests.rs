use super::*;
use lifecycle::{
    Answer, AnswerRole, CallId, CallOutcome, CallerName, Entry, Event, ExecutionLimits,
    ExecutionOutcome, Failure, FailureCode, InputIndex, Json, LogLevel, OutputMark, Program,
    Question, QuestionId, QuestionKind, RandomSeed, Seq, Timestamp, ToolHost, ToolNature, ToolPath,
    ValueConvention,
};

fn question(n: u32) -> QuestionId {
    format!("exec_00000000-0000-0000-0000-{n:012}").parse().unwrap()
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn started() -> Event {
    Event::Started {
        program: Program { source: "return 1".into(), convention: ValueConvention::ExplicitReturn },
        caller: CallerName("ann".into()),
        limits: ExecutionLimits::default(),
        seed: RandomSeed([7; 32]),
        terms: Box::default(),
    }
}

fn asks(n: u32, kind: QuestionKind) -> Vec<Event> {
    let nature = ToolNature { read_only: false, runs: ToolHost::Here };
    let tool = ToolPath::parse("mail.send").unwrap();
    let message = format!("Approve mail.send?\n\nArguments:\n{{\n  \"to\": {n}\n}}");
    vec![
        Event::CallMade {
            call: CallId(n),
            tool,
            args: json(&format!("{{\"to\":{n}}}")),
            nature,
            line: None,
            alias: None,
        },
        Event::CallAsked(Question {
            id: question(n),
            call: CallId(n),
            kind,
            message,
            revision: None,
            editable: false,
            answer_only: false,
        }),
    ]
}

fn answered(n: u32) -> Vec<Event> {
    vec![
        Event::CallAnswered {
            question: question(n),
            call: CallId(n),
            answer: Answer::Accept { content: None },
            by: CallerName("bob".into()),
            role: AnswerRole::Person,
            remember: false,
            arguments: None,
        },
        Event::CallDispatched { call: CallId(n), attempt: 1 },
        Event::CallSettled { call: CallId(n), outcome: CallOutcome::Returned { value: None } },
    ]
}

fn finished(outcome: ExecutionOutcome) -> Event {
    Event::Finished { outcome, active_ms: 3, iterations: 0 }
}

fn logged(level: LogLevel, line: &str) -> Event {
    let mark = OutputMark { input: InputIndex(0), ordinal: 1 };
    Event::Logged { mark, level, line: line.into() }
}

fn emitted() -> Event {
    Event::Emitted { mark: OutputMark::default(), item: json("1") }
}

fn account(events: impl IntoIterator<Item = Event>) -> ExecutionView {
    let mut account = ExecutionView::default();
    for (event, seq) in events.into_iter().zip(1..) {
        account.handle_entry(&Entry { seq: Seq(seq), at: Timestamp(1_000), event });
    }
    account
}

fn execution() -> lifecycle::ExecutionId {
    "run_00000000-0000-0000-0000-000000000001".parse().unwrap()
}

#[track_caller]
fn check_over(events: Vec<Event>, outcome: ExecutionOutcome, expected: &str) {
    let account = account(events);
    assert_eq!(outbound::completed(execution(), &account, &outcome, RESULT_BYTES_MAX), expected);
}

fn value(text: &str) -> ExecutionOutcome {
    ExecutionOutcome::Completed { value: Some(json(text)) }
}

#[test]
fn a_value_is_shown_to_models_and_programs() {
    let cases = [
        (r#"{"b":1,"a":2}"#, r#"{\n  \"b\": 1,\n  \"a\": 2\n}"#),
        (r#""plain \"text\"""#, r#"plain \"text\""#),
        ("[]", "[]"),
        ("null", "(no result)"),
        (r#""""#, "(no result)"),
        ("false", "false"),
    ];
    for (result, text) in cases {
        let expected = format!(
            r#"{{"status":"completed","text":"{text}","structured":{{"status":"completed","result":{result},"logs":[]}},"isError":false}}"#
        );
        check_over(vec![], value(result), &expected);
    }
}

#[test]
fn a_string_that_has_no_plain_text_is_shown_as_written() {
    let shown =
        outbound::completed(execution(), &account([]), &value(r#""\ud800""#), RESULT_BYTES_MAX);
    assert!(shown.contains(r#""text":"\"\\ud800\"""#), "{shown}");
}

#[test]
fn logs_and_emitted_items_are_told() {
    check_over(
        vec![logged(LogLevel::Log, "a {\"x\":1}"), logged(LogLevel::Warn, "w")],
        value("1"),
        r#"{"status":"completed","text":"1\n\nLogs:\n[log] a {\"x\":1}\n[warn] w","structured":{"status":"completed","result":1,"logs":["[log] a {\"x\":1}","[warn] w"]},"isError":false}"#,
    );
    check_over(
        vec![emitted(), emitted()],
        ExecutionOutcome::Completed { value: None },
        r#"{"status":"completed","text":"(no return value; 2 items emitted to the user)","structured":{"status":"completed","result":null,"emitted":2,"items":[{"text":"1","type":"text"},{"text":"1","type":"text"}],"logs":[]},"isError":false}"#,
    );
    check_over(
        vec![emitted()],
        value("5"),
        r#"{"status":"completed","text":"5","structured":{"status":"completed","result":5,"emitted":1,"items":[{"text":"1","type":"text"}],"logs":[]},"isError":false}"#,
    );
}

#[test]
fn an_error_keeps_its_class_and_the_programs_own_lines() {
    let failure = Failure {
        name: Some("TypeError".into()),
        stack: Some("    at f (program.js:1:7)".into()),
        ..Failure::new(FailureCode::Runtime, "no")
    };
    check_over(
        vec![logged(LogLevel::Error, "e")],
        ExecutionOutcome::Failed(failure),
        r#"{"status":"completed","text":"Error: TypeError: no\n    at f (program.js:1:7)\n\nLogs:\n[error] e","structured":{"status":"error","error":"TypeError: no\n    at f (program.js:1:7)","logs":["[error] e"]},"isError":true}"#,
    );
    check_over(
        vec![],
        ExecutionOutcome::Cancelled { by: CallerName("ann".into()), reason: None },
        r#"{"status":"completed","text":"Error: The execution was cancelled by ann.","structured":{"status":"error","error":"The execution was cancelled by ann.","logs":[]},"isError":true}"#,
    );
}

#[test]
fn what_an_envelope_leaves_out_is_told_with_its_place() {
    let huge = format!("\"{}\"", "x".repeat(RESULT_BYTES_MAX));
    let lines = (0..OUTPUTS_MAX + 3).map(|_| logged(LogLevel::Log, "l"));
    let items = (0..OUTPUTS_MAX + 4).map(|_| emitted());
    let shown = outbound::completed(
        execution(),
        &account(lines.chain(items)),
        &value(&huge),
        RESULT_BYTES_MAX,
    );
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let at = "/api/executions/run_00000000-0000-0000-0000-000000000001";
    let expected = serde_json::json!({
        "result": { "bytes": RESULT_BYTES_MAX + 2, "at": format!("{at}/result") },
        "logs": { "left": 3, "at": format!("{at}/events?type=log&after=1000") },
        "items": { "left": 4, "at": format!("{at}/events?type=emitted&after=2003") },
    });
    let structured = &shown["structured"];
    assert_eq!(structured["more"], expected);
    assert_eq!((&structured["result"], &structured["emitted"]), (&().into(), &1_004.into()));
    let n_kept = |name: &str| structured[name].as_array().unwrap().len();
    assert_eq!((n_kept("logs"), n_kept("items")), (OUTPUTS_MAX, OUTPUTS_MAX));
    let text = shown["text"].as_str().unwrap();
    assert!(
        text.ends_with(&format!("[3 more lines at {at}/events?type=log&after=1000]")),
        "{text}"
    );
}

/// The parts of an envelope, joined. The value is the journal's own text, not a copy of it.
fn joined(split: &outbound::SplitEnvelope, outcome: &ExecutionOutcome) -> String {
    let ExecutionOutcome::Completed { value: Some(value) } = outcome else { panic!("{outcome:?}") };
    assert_eq!(split.value.as_text().as_ptr(), value.as_text().as_ptr(), "the value is held once");
    [&split.head, split.value.as_text(), &split.tail].concat()
}

#[test]
fn a_large_value_is_sent_whole_and_not_copied() {
    let account = account([logged(LogLevel::Log, "\"structured\":{\"status\""), emitted()]);
    let large = value(&format!("\"{}\"", "x".repeat(RESULT_BYTES_MAX)));
    let split = outbound::split(execution(), &account, &large).unwrap();
    let whole = outbound::completed(execution(), &account, &large, usize::MAX);
    assert_eq!(joined(&split, &large), whole);
    let split = outbound::split_result(&large).unwrap();
    assert_eq!(joined(&split, &large), outbound::result(&large));
    let small = value(&format!("\"{}\"", "x".repeat(RESULT_BYTES_MAX - 2)));
    assert!(outbound::split(execution(), &account, &small).is_none());
    assert!(outbound::split_result(&small).is_none());
}

#[test]
fn long_texts_are_cut_where_what_is_structured_is_whole() {
    let long = format!("\"{}\"", "x".repeat(TEXT_CHARS_MAX + 12));
    let shown = outbound::completed(
        execution(),
        &account([logged(LogLevel::Log, "l")]),
        &value(&long),
        RESULT_BYTES_MAX,
    );
    let text =
        format!("{}\\n... [truncated 12 chars]\\n\\nLogs:\\n[log] l", "x".repeat(TEXT_CHARS_MAX));
    assert!(shown.starts_with(&format!(r#"{{"status":"completed","text":"{text}","#)));
    assert!(shown.contains(&format!(r#""result":{long},"#)));

    let failure = Failure::new(FailureCode::Runtime, "y".repeat(TEXT_CHARS_MAX));
    let shown = outbound::completed(
        execution(),
        &account([]),
        &ExecutionOutcome::Failed(failure),
        RESULT_BYTES_MAX,
    );
    assert!(shown.contains("yyy\\n... [truncated 7 chars]\""), "the word Error: counts too");
}

#[test]
fn an_error_of_the_engine_begins_with_the_words_of_executors_engine() {
    let shown = |name: Option<&str>, code, message: &str| {
        let failure = Failure { name: name.map(Into::into), ..Failure::new(code, message) };
        let outcome = ExecutionOutcome::Failed(failure);
        outbound::in_words(execution(), &account([]), &outcome).1.unwrap()
    };
    let needed = "The program needed more than 4 bytes of memory.";
    assert_eq!(
        shown(None, FailureCode::MemoryLimit, needed),
        "out of memory. The program needed more than 4 bytes of memory."
    );
    let full = "Maximum call stack size exceeded";
    assert_eq!(
        shown(Some("RangeError"), FailureCode::Runtime, full),
        "RangeError: stack overflow. Maximum call stack size exceeded"
    );
    assert_eq!(shown(Some("Error"), FailureCode::Tool, full), format!("Error: {full}"));
}

#[test]
fn a_question_is_asked_in_executors_shape() {
    let account = account([started()].into_iter().chain(asks(1, QuestionKind::Approval)));
    let Some(WaitEnd::Asked(asked)) = account.now() else { panic!("nothing is asked") };
    let id = "exec_00000000-0000-0000-0000-000000000001";
    let instructions = format!(
        r#"A person decides. If they agree, resume \"{id}\" with action \"accept\" and, where requestedSchema has properties, content that fits it. If they refuse, use action \"decline\"; if they will not say, \"cancel\"."#
    );
    let message = r#"Approve mail.send?\n\nArguments:\n{\n  \"to\": 1\n}"#;
    let shown = format!(
        r#""text":"Execution paused: {message}\n\nRequested schema:\n{{\n  \"type\": \"object\",\n  \"properties\": {{}}\n}}\n\nThis waits for a person. What they fill in must fit the requested schema.\n\nexecutionId: {id}\n\ninstructions: {instructions}","structured":{{"status":"waiting_for_interaction","executionId":"{id}","interaction":{{"kind":"form","message":"{message}","instructions":"{instructions}","address":"tools.mail.send","args":{{"to":1}},"requestedSchema":{{"type":"object","properties":{{}}}}}}}}}}"#
    );
    assert_eq!(
        outbound::paused(asked, &QuestionReader::MayAnswer),
        format!(r#"{{"status":"paused",{shown}"#)
    );
    assert_eq!(outbound::question_json(asked, &QuestionReader::MayAnswer), format!("{{{shown}"));
}

#[test]
fn a_reader_who_may_not_answer_gets_the_page_and_nothing_that_answers() {
    let link = QuestionKind::Link { url: "https://x/?state=secret".into(), is_prior: false };
    let reader = QuestionReader::MayNot { origin: "https://airlock.example".into() };
    for kind in [QuestionKind::Approval, QuestionKind::InDoubt, link.clone()] {
        let account = account([started()].into_iter().chain(asks(1, kind.clone())));
        let asked = account.open().next().unwrap();
        let page = "https://airlock.example/resume/exec_00000000-0000-0000-0000-000000000001";
        for text in [outbound::paused(asked, &reader), outbound::question_json(asked, &reader)] {
            assert!(text.contains(&format!(r#""approvalUrl":"{page}""#)), "{text}");
            let hints = ["accept", "secret", "resume \\\""];
            assert!(hints.iter().all(|hint| !text.contains(hint)), "{kind:?}: {text}");
        }
    }
    let asked = asks(1, link).pop().unwrap();
    let entry = Entry { seq: Seq(2), at: Timestamp(1), event: asked };
    assert!(!outbound::entry_for(&entry, &reader).contains("secret"));
    assert!(outbound::entry_for(&entry, &QuestionReader::MayAnswer).contains("secret"));
}

#[test]
fn a_reader_who_is_no_administrator_gets_the_page_of_a_call_that_manages_the_server() {
    let reader = QuestionReader::MayAnswerUnmanaged { origin: "https://airlock.example".into() };
    let shown = |answer_only: bool| {
        let mut asked = asks(1, QuestionKind::Approval);
        for event in &mut asked {
            if let Event::CallAsked(question) = event {
                question.answer_only = answer_only;
            }
        }
        let account = account([started()].into_iter().chain(asked));
        outbound::question_json(account.open().next().unwrap(), &reader)
    };
    assert!(shown(false).contains(r#"with action \"accept\""#), "{}", shown(false));
    let managed = shown(true);
    assert!(
        managed.contains("an administrator decides, on the page https://airlock.example/resume/")
    );
    assert!(!managed.contains("accept"), "{managed}");
}

#[test]
fn a_doubt_says_what_can_be_chosen() {
    let account = account([started()].into_iter().chain(asks(1, QuestionKind::InDoubt)));
    let shown = outbound::question_json(account.open().next().unwrap(), &QuestionReader::MayAnswer);
    assert!(shown.contains(r#""enum":["retry","fail","supply"]"#), "{shown}");
}

/// The event after the answer to question `n`, as text.
fn after(account: &ExecutionView, n: u32) -> String {
    match account.after(question(n)) {
        None => "wait".into(),
        Some(WaitEnd::Asked(asked)) => {
            asked.question.id.to_string().replace("exec_00000000-0000-0000-0000-00000000000", "")
        }
        Some(WaitEnd::Over(_)) => "over".into(),
        Some(WaitEnd::Parked) => "parked".into(),
    }
}

#[test]
fn parallel_questions_come_one_by_one_and_a_repeated_answer_is_told_the_same() {
    let plot = [
        vec![started()],
        asks(1, QuestionKind::Approval),
        asks(2, QuestionKind::Approval),
        answered(1),
        asks(3, QuestionKind::Approval),
        answered(3),
        answered(2),
        vec![finished(ExecutionOutcome::Completed { value: None })],
    ]
    .concat();
    for n_heard in 1..=plot.len() {
        let account = account(plot[..n_heard].iter().cloned());
        let seen = [1, 2, 3].map(|n| after(&account, n));
        let expected = match n_heard {
            ..=5 => ["wait", "wait", "wait"],
            6..=10 => ["2", "wait", "wait"],
            11..=13 => ["2", "wait", "2"],
            14..=16 => ["2", "wait", "2"],
            _ => ["2", "over", "2"],
        };
        assert_eq!(seen, expected, "after {n_heard} entries");
    }
}

#[test]
fn a_question_that_was_never_answered_is_told_the_end() {
    let end = finished(ExecutionOutcome::Failed(Failure::new(FailureCode::Timeout, "too long")));
    let plot = [vec![started()], asks(1, QuestionKind::Approval), vec![end]].concat();
    let account = account(plot);
    assert_eq!(after(&account, 1), "over");
    assert_eq!(account.open().count(), 0);
}

#[test]
fn parked_is_told_until_somebody_answers() {
    let doubt = asks(1, QuestionKind::InDoubt);
    let plot = [vec![started()], doubt, answered(1), vec![Event::Parked]].concat();
    let account = account(plot);
    assert_eq!(after(&account, 1), "parked");
    assert_eq!(account.now(), Some(WaitEnd::Parked));
}

#[test]
fn every_entry_has_a_line() {
    let failure = Failure::new(FailureCode::Tool, "no");
    let cases = [
        (started(), r#""type":"started","caller":"ann","code":"return 1""#),
        (logged(LogLevel::Info, "i"), r#""type":"log","level":"info","line":"i""#),
        (emitted(), r#""type":"emitted","item":1"#),
        (
            asks(1, QuestionKind::Approval).remove(0),
            r#""type":"call","call":1,"tool":"mail.send","args":{"to":1},"readOnly":false"#,
        ),
        (
            answered(1).remove(0),
            r#""type":"answer","executionId":"exec_00000000-0000-0000-0000-000000000001","call":1,"action":"accept","by":"bob""#,
        ),
        (
            Event::CallSettled { call: CallId(1), outcome: CallOutcome::Failed(failure) },
            r#""type":"settled","call":1,"status":"failed","error":{"code":"tool","message":"no"}"#,
        ),
        (Event::Parked, r#""type":"parked""#),
        (
            finished(value("[1]")),
            r#""type":"finished","status":"completed","result":[1],"activeMs":3"#,
        ),
    ];
    for (event, expected) in cases {
        assert!(expected.starts_with(&format!(r#""type":"{}""#, kind(&event))), "{expected}");
        let line = outbound::entry(&Entry { seq: Seq(4), at: Timestamp(9), event });
        assert_eq!(line, format!(r#"{{"seq":4,"at":9,{expected}}}"#));
    }
}
