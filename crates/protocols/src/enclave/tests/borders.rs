//! Limits at their exact boundaries, and the exact form of names.

use super::*;
use crate::enclave::inbound::{cancel_reason, create, frame, message, tool_result};
use crate::enclave::outbound::SessionStatus;

#[test]
fn ids_of_sessions_are_uuids_of_version_8_and_names_are_read_exactly() {
    let id = execution_of(&me(), &session()).uuid();
    assert_eq!((id.get_version_num(), id.get_variant()), (8, uuid::Variant::RFC4122));
    // Must not change: callers find stored sessions by it.
    assert_eq!(id.to_string(), "6f59be98-70da-8b2f-a0f8-56d9795cc4a1");
    assert!(!is_session(lifecycle::ExecutionId::from_uuid(uuid::Uuid::nil())));
    let name = |call: &str| format!("c_{id}-{call}");
    let read = |text: &str| parse_call_name(text).map(|(_, call)| call.0);
    assert_eq!([read(&name("7")), read(&name("4294967295"))], [Some(7), Some(u32::MAX)]);
    for call in ["", "+7", "-7", "4294967296", "7x"] {
        assert_eq!(read(&name(call)), None, "{call}");
    }
    assert_eq!(read(&format!("c_{}-7", id.simple())), None);
    let longest = format!("s_{}", "x".repeat(126));
    assert_eq!(EnclaveSessionId::parse(&longest).unwrap().to_string(), longest);
    assert_eq!(
        EnclaveSessionId::from_uuid(uuid::Uuid::nil()).as_str(),
        format!("s_{}", uuid::Uuid::nil())
    );
}

#[test]
fn limits_are_taken_within_their_borders() {
    let limits =
        |text: &str| create(format!(r#"{{"code":"1","limits":{text}}}"#).as_bytes()).unwrap();
    let of = |text: &str| limits(text).limits;
    let usual = of("{}");
    assert_eq!((usual.active_ms_max, usual.cpu_ms_max, usual.calls_max), (30_000, 31_000, 100));
    assert_eq!((usual.log_bytes_max, usual.result_bytes_max), (262_144, 5_242_880));
    assert_eq!(
        (usual.total_ms_max, usual.idle_ms_max, usual.grace_ms_max),
        (86_400_000, u64::MAX, 60_000)
    );
    assert_eq!(of(r#"{"maxDurationMs":0}"#).active_ms_max, 1);
    assert_eq!(of(r#"{"timeoutMs":9e15}"#).active_ms_max, 86_400_000);
    assert_eq!(
        of(r#"{"maxToolCalls":10001,"maxStdoutBytes":1e9,"maxToolResultBytes":1e9}"#).calls_max,
        10_000
    );
    assert_eq!(of(r#"{"maxStdoutBytes":1e9}"#).log_bytes_max, 16_777_216);
    assert_eq!(of(r#"{"maxToolResultBytes":1e9}"#).result_bytes_max, 16_777_216);
    assert_eq!(
        [of(r#"{"deadlineMs":0}"#).total_ms_max, of(r#"{"deadlineMs":7}"#).total_ms_max],
        [86_400_000, 7]
    );
    assert_eq!(
        [of(r#"{"idleMs":0}"#).idle_ms_max, of(r#"{"idleMs":1}"#).idle_ms_max],
        [u64::MAX, 1]
    );
    let heartbeat = |n: &str| limits(&format!(r#"{{"heartbeatIntervalMs":{n}}}"#)).heartbeat_ms;
    assert_eq!(
        [heartbeat("0"), heartbeat("1"), heartbeat("11"), heartbeat("1e12")],
        [0, 10, 11, 86_400_000]
    );
    for wrong in ["-1", "9.1e15"] {
        let body = format!(r#"{{"code":"1","limits":{{"idleMs":{wrong}}}}}"#);
        let refusal = create(body.as_bytes()).unwrap_err();
        assert!(
            refusal.message.starts_with("The member \"idleMs\" must be a number from 0 up"),
            "{refusal:?}"
        );
    }
}

#[test]
fn a_caller_names_as_many_tools_as_it_may() {
    let named = |n: usize| {
        let tools: Vec<_> = (0..n).map(|n| format!("t{n}")).collect();
        let body = json!({"code": "1", "tools": tools}).to_string();
        create(body.as_bytes()).map(|create| create.caller_runs)
    };
    let Ok(Some(CallerRuns::These(tools))) = named(1_000) else { panic!() };
    assert_eq!(tools.len(), 1_000);
    assert_eq!(named(1_001).unwrap_err().message, "A caller names at most 1000 tools.");
    let create = create(br#"{"code":"1"}"#).unwrap();
    assert_eq!(create.caller_runs, None);
}

#[test]
fn a_reason_is_read_wherever_it_is_and_cut() {
    let reason = |text: &str| cancel_reason(text.as_bytes());
    assert_eq!(reason(r#"{"reason":"late"}"#).as_deref(), Some("late"));
    assert_eq!(reason(r#"{"payload":{"reason":"late"},"reason":"x"}"#).as_deref(), Some("late"));
    for none in [r#"{"reason":""}"#, r#"{"reason":7}"#, "{}", "", "[]"] {
        assert_eq!(reason(none), None, "{none}");
    }
    let long = reason(&json!({"reason": "ä".repeat(1_001)}).to_string()).unwrap();
    assert_eq!(long.chars().count(), 1_000);
    let sealed = message(br#"{"type":"cancel","reason":"late"}"#).unwrap();
    assert_eq!(sealed, inbound::SealedMessage::Cancel { reason: Some("late".into()) });
}

#[test]
fn a_tools_result_is_a_value_or_a_failure_by_what_it_says() {
    let name = call_name(execution_of(&me(), &session()), CallId(3));
    let outcome = |mut said: Value| {
        said["callId"] = json!(name);
        tool_result(said.to_string().as_bytes()).unwrap().outcome
    };
    let value = |text: &str| CallOutcome::Returned { value: Some(raw(text)) };
    assert_eq!(outcome(json!({"ok": true, "result": 1, "error": "x"})), value("1"));
    assert_eq!(outcome(json!({"success": true, "value": 2})), value("2"));
    assert_eq!(outcome(json!({"result": 3, "error": null})), value("3"));
    assert_eq!(outcome(json!({"ok": true})), CallOutcome::Returned { value: None });
    let failure = |said: Value| {
        let CallOutcome::Failed(failure) = outcome(said) else { panic!() };
        let details = failure.details.map(|details| details.as_text().to_owned());
        (failure.code, failure.message, details)
    };
    let tool = FailureCode::Tool;
    assert_eq!(failure(json!({"ok": false})), (tool, "The tool failed.".into(), None));
    assert_eq!(failure(json!({"error": "no"})), (tool, "no".into(), None));
    let code = |n: usize| json!({"error": {"message": "no", "code": "C".repeat(n)}});
    let details = format!(r#"{{"code":"{}"}}"#, "C".repeat(100));
    assert_eq!(failure(code(100)), (tool, "no".into(), Some(details)));
    assert_eq!(failure(code(101)), (tool, "no".into(), None));
    let long = failure(json!({"error": "ä".repeat(8_001)})).1;
    assert_eq!(long.chars().count(), 8_000);
}

#[test]
fn frames_of_a_socket_are_what_their_type_says() {
    let read = |text: &str| format!("{:?}", frame(text.as_bytes()));
    for (text, expected) in [
        (r#"{"type":"ping"}"#, "Ok(Ping)"),
        (
            r#"{"type":"attach","sessionId":"s_1","fromSeq":7}"#,
            "Ok(Attach { session: EnclaveSessionId(\"s_1\"), from: 7, filter: None })",
        ),
        (
            r#"{"type":"subscribe","sessionId":"s_1","from":8}"#,
            "Ok(Attach { session: EnclaveSessionId(\"s_1\"), from: 8, filter: None })",
        ),
        (
            r#"{"type":"attach","sessionId":"s_1","filter":null}"#,
            "Ok(Attach { session: EnclaveSessionId(\"s_1\"), from: 1, filter: None })",
        ),
        (
            r#"{"type":"cancel","sessionId":"s_1","reason":"x"}"#,
            "Ok(Cancel { session: EnclaveSessionId(\"s_1\"), reason: Some(\"x\") })",
        ),
    ] {
        assert_eq!(read(text), expected);
    }
    for (text, code, message) in [
        (r#"{"type":"cancel"}"#, "INVALID_REQUEST", "The member \"sessionId\" is missing."),
        (r#"{"type":"enc"}"#, "ENCRYPTION_DECRYPTION_FAILED", "The envelope cannot be read."),
        (r#"{"type":"dance"}"#, "INVALID_REQUEST", "There is no message of type \"dance\"."),
        ("{}", "INVALID_REQUEST", "The member \"type\" is missing."),
    ] {
        assert_eq!(
            frame(text.as_bytes()).unwrap_err(),
            inbound::EnclaveRefusal::new(code, message)
        );
    }
}

#[test]
fn a_telling_counts_what_it_hears() {
    let mut telling = EventRenderer::new(execution_of(&me(), &session()));
    assert_eq!(
        (telling.last(), telling.n_calls(), telling.standing()),
        (0, 0, SessionStatus::Starting)
    );
    let prepared = lifecycle::PreparedProgram { text: None, prelude: 1, fingerprint: "f".into() };
    let events = [
        (started(), SessionStatus::Starting, 1, 0),
        (Event::Prepared(prepared), SessionStatus::Running, 1, 0),
        (made(1, ToolHost::AtCaller), SessionStatus::Running, 1, 1),
        (
            Event::CallDispatched { call: CallId(1), attempt: 1 },
            SessionStatus::WaitingForTool,
            4,
            1,
        ),
        (made(2, ToolHost::Here), SessionStatus::WaitingForTool, 5, 2),
        (returned(1), SessionStatus::Running, 6, 2),
        (
            Event::Emitted { mark: OutputMark::default(), item: raw("1") },
            SessionStatus::Running,
            7,
            2,
        ),
        (
            Event::Emitted { mark: OutputMark::default(), item: raw("2") },
            SessionStatus::Running,
            8,
            2,
        ),
        (finished(ExecutionOutcome::Completed { value: None }), SessionStatus::Completed, 9, 2),
    ];
    let mut paths = vec![];
    for (event, standing, last, n_calls) in events {
        let told = telling.handle_entry(&entries(vec![event])[0]);
        assert_eq!(
            (telling.standing(), telling.last(), telling.n_calls()),
            (standing, last, n_calls)
        );
        assert_eq!(telling.standing().is_over(), standing == SessionStatus::Completed);
        paths.extend(told.iter().map(line).filter(|line| line["type"] == "partial_result"));
    }
    let paths: Vec<_> = paths.iter().map(|line| line["payload"]["path"].clone()).collect();
    assert_eq!(paths, [json!(["0"]), json!(["1"])]);
    let start = 1_704_067_200_000;
    assert_eq!(telling.span(), (Timestamp(start), Timestamp(start + 30_000)));
}

#[test]
fn a_session_says_only_the_limits_that_it_has() {
    let limits = |deadline: u64, idle: u64| {
        let Event::Started { program, caller, limits, seed, terms } = started() else { panic!() };
        let limits = ExecutionLimits { total_ms_max: deadline, idle_ms_max: idle, ..limits };
        let begun = Event::Started { program, caller, limits, seed, terms };
        let told = &lines(vec![begun])[0]["payload"]["limits"];
        (told["deadlineMs"].clone(), told["idleMs"].clone())
    };
    let none = Value::Null;
    assert_eq!(limits(86_400_000, u64::MAX), (none.clone(), none));
    assert_eq!(limits(86_399_999, u64::MAX - 1), (json!(86_399_999), json!(u64::MAX - 1)));
}

#[test]
fn a_call_that_was_never_told_fails_in_a_note() {
    let failure = CallOutcome::Failed(Failure::new(FailureCode::Declined, "no"));
    let settled = |outcome| Event::CallSettled { call: CallId(1), outcome };
    let seen = lines(vec![started(), made(1, ToolHost::AtCaller), settled(failure.clone())]);
    assert_eq!((&seen[1]["type"], &seen[1]["payload"]["level"]), (&json!("log"), &json!("warn")));
    let seen = lines(vec![started(), made(1, ToolHost::Here), settled(failure)]);
    assert_eq!(
        (&seen[2]["type"], &seen[2]["payload"]["ok"]),
        (&json!("tool_result_applied"), &json!(false))
    );
    let seen = lines(vec![started(), made(1, ToolHost::Here), settled(CallOutcome::Unknown)]);
    assert_eq!(seen.len(), 2);
}

#[test]
fn progress_adds_up_and_a_deadline_says_how_long_it_took() {
    let said = |text: &str| Event::CallProgressed { call: CallId(1), text: text.into() };
    let seen = lines(vec![started(), made(1, ToolHost::Here), said("12345"), said("678")]);
    let bytes: Vec<_> =
        seen.iter().filter_map(|line| line["payload"]["bytesReceived"].as_u64()).collect();
    assert_eq!(bytes, [5, 8]);
    let seen = lines(vec![started(), Event::LimitReached { limit: LimitKind::Total }]);
    assert_eq!(seen[1]["payload"], json!({"elapsedMs": 1, "budgetMs": 86_400_000}));
    assert_eq!(lines(vec![started(), Event::LimitReached { limit: LimitKind::Cpu }]).len(), 1);
}
