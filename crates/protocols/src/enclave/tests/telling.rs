use super::schema::accepted;
use super::*;

#[test]
fn a_session_is_told_in_both_dialects_at_once() {
    let events = vec![
        started(),
        logged(LogLevel::Log, "Processing user: Alice"),
        logged(LogLevel::Warn, "careful"),
        made(1, ToolHost::AtCaller),
        Event::CallDispatched { call: CallId(1), attempt: 1 },
        returned(1),
        Event::Emitted { mark: OutputMark::default(), item: raw("{\"n\":1}") },
        finished(ExecutionOutcome::Completed { value: Some(raw("{\"count\":5}")) }),
    ];
    let seen = lines(events);
    let call = call_name(execution_of(&me(), &session()), CallId(1));
    let envelope = |seq: u64, kind: &str, ms: u64, payload: Value| json!({"protocolVersion":2,"sessionId":"s_1","seq":seq,"type":kind,"timestamp":1_704_067_200_000_u64 + ms,"payload":payload});
    let progress = |phase: &str| json!({"callId":call,"phase":phase,"elapsedMs":1});
    let limits = json!({"maxDurationMs":30_000,"maxToolCalls":100,"maxStdoutBytes":262_144,
        "maxToolResultBytes":5_242_880,"perToolDeadlineMs":30_000,"graceMs":60_000,"heartbeatIntervalMs":5_000});
    let expected = [
        envelope(
            1,
            "session_init",
            0,
            json!({"cancelUrl":"/sessions/s_1/cancel",
            "replayUrl":"/sessions/s_1/stream","expiresAt":"2024-01-01T00:00:30.000Z",
            "encryption":{"enabled":false},"limits":limits}),
        ),
        envelope(
            2,
            "stdout",
            1,
            json!({"chunk":"Processing user: Alice\n","data":"Processing user: Alice\n"}),
        ),
        envelope(3, "log", 2, json!({"level":"warn","message":"careful"})),
        envelope(
            4,
            "tool_call",
            4,
            json!({"callId":call,"toolName":"users:list","tool":"users:list","args":{"limit":10}}),
        ),
        envelope(5, "tool_progress", 4, progress("connecting")),
        envelope(6, "tool_progress", 4, progress("processing")),
        envelope(7, "tool_result_applied", 5, json!({"callId":call,"ok":true})),
        envelope(8, "partial_result", 6, json!({"path":["0"],"hasNext":true,"data":{"n":1}})),
        envelope(
            9,
            "final",
            7,
            json!({"ok":true,"result":{"count":5},"stats":{"durationMs":7,
            "toolCallCount":1,"stdoutBytes":29,"duration":7,"iterationCount":15}}),
        ),
    ];
    assert_eq!(seen, expected);
    seen.iter().for_each(|event| accepted(event).unwrap());
}

#[test]
fn a_tool_of_the_server_is_told_from_call_to_result() {
    let seen = lines(vec![
        started(),
        made(1, ToolHost::Here),
        Event::CallDispatched { call: CallId(1), attempt: 1 },
        Event::CallProgressed { call: CallId(1), text: "half of it\n".into() },
        returned(1),
    ]);
    let kinds: Vec<_> = seen
        .iter()
        .map(|event| (event["type"].clone(), event["payload"]["phase"].clone()))
        .collect();
    let null = Value::Null;
    assert_eq!(
        kinds,
        [
            (json!("session_init"), null.clone()),
            (json!("tool_call"), null.clone()),
            (json!("tool_progress"), json!("connecting")),
            (json!("tool_progress"), json!("processing")),
            (json!("tool_progress"), json!("processing")),
            (json!("log"), null.clone()),
            (json!("tool_result_applied"), null)
        ]
    );
    seen.iter().for_each(|event| accepted(event).unwrap());
}

#[test]
fn every_limit_and_every_failure_ends_with_its_own_code() {
    let limits = [
        (LimitKind::Active, "TIMEOUT"),
        (LimitKind::Total, "DEADLINE_EXCEEDED"),
        (LimitKind::Memory, "MEMORY_LIMIT_EXCEEDED"),
        (LimitKind::Logs, "MAX_STDOUT_BYTES"),
        (LimitKind::Idle, "IDLE_TIMEOUT"),
        (LimitKind::Grace, "CLIENT_DISCONNECTED"),
    ];
    for (limit, code) in limits {
        let end = finished(failed(FailureCode::Timeout, "no"));
        let seen = lines(vec![started(), Event::LimitReached { limit }, end]);
        let last = seen.last().unwrap();
        assert_eq!(
            (&last["type"], &last["payload"]["error"]["code"]),
            (&json!("final"), &json!(code))
        );
        assert_eq!(
            seen[seen.len() - 2]["payload"],
            json!({"message":"no","code":code,"recoverable":false})
        );
        seen.iter().for_each(|event| accepted(event).unwrap());
    }
    let worded = [
        (
            LimitKind::Calls,
            "MAX_TOOL_CALLS",
            "Maximum tool call limit exceeded (100). This limit prevents runaway script execution. no",
        ),
        (
            LimitKind::Rounds,
            "DOUBLE_VM_EXECUTION_ERROR",
            "Maximum iteration limit exceeded (18446744073709551615). This limit prevents infinite loops. no",
        ),
    ];
    for (limit, code, message) in worded {
        let end = finished(failed(FailureCode::LimitExceeded, "no"));
        let seen = lines(vec![started(), Event::LimitReached { limit }, end]);
        let error = &seen.last().unwrap()["payload"]["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!(code), &json!(message)));
        seen.iter().for_each(|event| accepted(event).unwrap());
    }
    let cancelled = lines(vec![
        started(),
        finished(ExecutionOutcome::Cancelled { by: me(), reason: Some("bye".into()) }),
    ]);
    assert_eq!(cancelled[2]["payload"]["error"]["code"], "SESSION_CANCELLED");
    let mut failure = Failure::new(FailureCode::Tool, "nope");
    failure.details = Some(raw(r#"{"code":"E_NOPE"}"#));
    let own = lines(vec![started(), finished(ExecutionOutcome::Failed(failure))]);
    assert_eq!(own[2]["payload"]["error"], json!({"code":"E_NOPE","message":"nope"}));
}

#[test]
fn what_has_no_place_in_the_journal_takes_no_number() {
    let mut telling = EventRenderer::new(execution_of(&me(), &session()));
    let first = telling.handle_entry(&entries(vec![started()])[0]);
    let beat = telling.heartbeat(Timestamp(1_704_067_205_000));
    assert_eq!((first[0].seq, beat.seq, telling.last()), (1, 1, 1));
    let changed =
        wire::CatalogChanged { version: "2", added_actions: &["a.b".into()], removed_actions: &[] };
    let changed = telling.catalog_changed(Timestamp(0), &changed);
    for told in [&beat, &changed] {
        accepted(&line(told)).unwrap();
    }
    assert_eq!(line(&beat)["payload"]["ts"], "2024-01-01T00:00:05.000Z");
}

#[test]
fn dates_are_the_calendars() {
    let cases = [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400_123, "2000-02-29T00:00:00.123Z"),
        (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ];
    for (ms, text) in cases {
        assert_eq!(iso(Timestamp(ms)), text);
    }
    assert_eq!(iso(Timestamp(i64::MAX)), "9999-12-31T23:59:59.999Z");
}

#[test]
fn names_of_different_callers_never_meet() {
    let id = |caller: &str, session: &str| {
        execution_of(&CallerName(caller.into()), &EnclaveSessionId::parse(session).unwrap())
    };
    assert_eq!(id("ann", "s_1"), id("ann", "s_1"));
    assert_ne!(id("ann", "s_1"), id("bob", "s_1"));
    assert_ne!(id("anns_", "s_1"), id("ann", "s_s_1"));
    assert!(is_session(id("ann", "s_1")));
    let name = call_name(id("ann", "s_1"), CallId(7));
    assert_eq!(parse_call_name(&name), Some((id("ann", "s_1"), CallId(7))));
    for bad in ["", "c_", "c_1", "call_xyz789", &name[..name.len() - 2], &format!("{name}x")] {
        assert_eq!(parse_call_name(bad), None, "{bad}");
    }
    for bad in ["", "s_", "sess_1", "s_ä", "s_a b", &format!("s_{}", "x".repeat(127))] {
        assert!(EnclaveSessionId::parse(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn numbers_have_no_gap_and_do_not_depend_on_who_listens(which in prop::collection::vec(0..6_u8, 0..40)) {
        let mut events = vec![started()];
        for (n, which) in (1_u32..).zip(which) {
            match which {
                0 => events.push(logged(LogLevel::Log, "x")),
                1 => events.extend([made(n, ToolHost::Here), Event::CallDispatched { call: CallId(n), attempt: 1 }, returned(n)]),
                2 => events.extend([made(n, ToolHost::AtCaller), Event::CallDispatched { call: CallId(n), attempt: 1 }]),
                3 => events.push(Event::Paused { inputs: InputIndex(0), active_ms: 0 }),
                4 => events.push(Event::Emitted { mark: OutputMark::default(), item: Json::null() }),
                _ => events.push(made(n, ToolHost::AtCaller)),
            }
        }
        events.push(finished(ExecutionOutcome::Completed { value: None }));
        let once = told(events.clone());
        prop_assert_eq!(&told(events), &once);
        let seqs: Vec<_> = once.iter().map(|told| told.seq).collect();
        prop_assert_eq!(seqs, (1..=once.len() as u64).collect::<Vec<_>>());
        for told in &once {
            prop_assert_eq!(accepted(&line(told)), Ok(()));
        }
    }
}
