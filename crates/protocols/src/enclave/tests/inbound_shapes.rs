use super::*;

#[test]
fn limits_are_taken_under_all_their_names() {
    let create = |body: &str| inbound::create(body.as_bytes()).unwrap();
    let usual = create(r#"{"code":""}"#);
    assert_eq!((usual.limits.active_ms_max, usual.heartbeat_ms), (30_000, 5_000));
    let some = create(
        r#"{"code":"","config":{"maxExecutionMs":200,"maxToolCalls":2,"heartbeatIntervalMs":0},
        "limits":{"maxDurationMs":9,"perToolDeadlineMs":70,"maxStdoutBytes":3,"deadlineMs":5,"idleMs":4}}"#,
    );
    let ExecutionLimits {
        active_ms_max,
        calls_max,
        call_ms_max,
        log_bytes_max,
        total_ms_max,
        idle_ms_max,
        ..
    } = some.limits;
    assert_eq!(
        (
            active_ms_max,
            calls_max,
            call_ms_max,
            log_bytes_max,
            total_ms_max,
            idle_ms_max,
            some.heartbeat_ms
        ),
        (9, 2, 70, 3, 5, 4, 0)
    );
    for bad in [
        r#"{"code":"","config":{"maxExecutionMs":"x"}}"#,
        r#"{"code":"","limits":[]}"#,
        r#"{"code":"","limits":{"idleMs":-1}}"#,
        r#"{"code":5}"#,
        "{",
        r#"{"code":"","sessionId":"x"}"#,
    ] {
        assert_eq!(inbound::create(bad.as_bytes()).unwrap_err().code, "INVALID_REQUEST", "{bad}");
    }
}

#[test]
fn results_are_taken_in_all_three_shapes() {
    let call = call_name(execution_of(&me(), &session()), CallId(3));
    let value = CallOutcome::Returned { value: Some(raw("[1]")) };
    let mut failure = Failure::new(FailureCode::Tool, "nope");
    failure.details = Some(raw(r#"{"code":"E"}"#));
    let error = json!({"code":"E","message":"nope"});
    let cases = [
        (json!({"callId":call,"result":[1]}), value.clone()),
        (
            json!({"type":"tool_result","sessionId":"s_1","callId":call,"success":true,"value":[1]}),
            value.clone(),
        ),
        (
            json!({"protocolVersion":2,"sessionId":"s_1","type":"tool_result_submit","payload":{"callId":call,"ok":true,"result":[1]}}),
            value,
        ),
        (json!({"callId":call}), CallOutcome::Returned { value: None }),
        (
            json!({"callId":call,"success":false,"error":error}),
            CallOutcome::Failed(failure.clone()),
        ),
        (json!({"payload":{"callId":call,"ok":false,"error":error}}), CallOutcome::Failed(failure)),
        (
            json!({"callId":call,"error":"nope"}),
            CallOutcome::Failed(Failure::new(FailureCode::Tool, "nope")),
        ),
    ];
    for (body, outcome) in cases {
        let read = inbound::tool_result(body.to_string().as_bytes()).unwrap();
        assert_eq!((read.call, read.outcome), (CallId(3), outcome), "{body}");
    }
}

proptest! {
    #[test]
    fn no_body_makes_us_panic(body in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}:,\"a-z0-9]{0,80}") {
        for body in [body.as_slice(), text.as_bytes()] {
            let _ = inbound::create(body);
            let _ = inbound::tool_result(body);
            let _ = inbound::frame(body);
            let _ = inbound::envelope(body);
        }
        let _ = EventFilter::parse(&text);
    }
}
