use super::*;
use lifecycle::{
    CallId, CallOutcome, CallerName, CallerRuns, Convention, Entry, Event, Failure, FailureCode,
    InputIndex, Json, LimitKind, Limits, LogLevel, Nature, Outcome, OutputMark, Program, Runs,
    Seed, Seq, Terms, Timestamp, ToolPath,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn session() -> SessionId {
    SessionId::parse("s_1").unwrap()
}

fn me() -> CallerName {
    CallerName("ann".into())
}

fn raw(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn started() -> Event {
    let limits = inbound::create(br#"{"code":"1"}"#).unwrap().limits;
    Event::Started {
        program: Program { source: "1".into(), convention: Convention::LastExpression },
        caller: me(),
        limits,
        seed: Seed([7; 32]),
        terms: Box::new(Terms {
            caller_runs: CallerRuns::Anything,
            note: Some(Note::new(&session(), 5_000).json()),
            ..Terms::default()
        }),
    }
}

fn made(n: u32, runs: Runs) -> Event {
    Event::CallMade {
        call: CallId(n),
        tool: ToolPath::parse("users:list").unwrap(),
        args: raw("{\n\"limit\":10}"),
        nature: Nature { read_only: false, runs },
        line: None,
    }
}

fn returned(n: u32) -> Event {
    let outcome = CallOutcome::Returned { value: Some(raw("[1]")) };
    Event::CallSettled { call: CallId(n), outcome }
}

fn logged(level: LogLevel, line: &str) -> Event {
    Event::Logged {
        mark: OutputMark { input: InputIndex(0), ordinal: 1 },
        level,
        line: line.into(),
    }
}

fn failed(code: FailureCode, message: &str) -> Outcome {
    Outcome::Failed(Failure::new(code, message))
}

fn finished(outcome: Outcome) -> Event {
    Event::Finished { outcome, active_ms: 3, iterations: 15 }
}

fn entries(events: Vec<Event>) -> Vec<Entry> {
    let entry = |(n, event)| Entry {
        seq: Seq(n as u64 + 1),
        at: Timestamp(1_704_067_200_000 + n as i64),
        event,
    };
    events.into_iter().enumerate().map(entry).collect()
}

fn told(events: Vec<Event>) -> Vec<Told> {
    let mut telling = Telling::new(execution_of(&me(), &session()));
    entries(events).iter().flat_map(|entry| telling.hear(entry)).collect()
}

fn lines(events: Vec<Event>) -> Vec<Value> {
    told(events).iter().map(line).collect()
}

fn line(told: &Told) -> Value {
    let mut line = Vec::new();
    told.write(&session(), &mut line);
    assert!(!line.contains(&b'\n'), "one line each");
    serde_json::from_slice(&line).unwrap()
}

/// What the real client's schema accepts, rule by rule, as `client-parser-acceptance.txt` found it out.
fn accepted(event: &Value) -> Result<(), String> {
    let need = |ok: bool, what: &str| if ok { Ok(()) } else { Err(format!("{what}: {event}")) };
    let date = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| text.len() >= 20 && text.ends_with('Z') && text.contains('T'))
    };
    let count = |value: &Value| value.as_f64().is_some_and(|n| n >= 0.0);
    let text = |value: &Value| value.as_str().is_some();
    let filled = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    need(event["protocolVersion"] == 2 || event["protocolVersion"] == 1, "version")?;
    let id = event["sessionId"].as_str().unwrap_or_default();
    need(id.starts_with("s_") && id.len() >= 3, "session id")?;
    need(event["seq"].as_u64().is_some(), "seq")?;
    let payload = &event["payload"];
    need(payload.is_object(), "payload")?;
    let call =
        || need(payload["callId"].as_str().is_some_and(|id| id.starts_with("c_")), "call id");
    match event["type"].as_str().unwrap_or_default() {
        "session_init" => {
            need(text(&payload["cancelUrl"]) && date(&payload["expiresAt"]), "init")?;
            need(payload["encryption"]["enabled"].is_boolean(), "encryption")
        }
        "stdout" => need(text(&payload["chunk"]), "chunk"),
        "log" => {
            let level = payload["level"].as_str().unwrap_or_default();
            need(["debug", "info", "warn", "error"].contains(&level), "level")?;
            let data = payload.get("data").is_none_or(Value::is_object);
            need(text(&payload["message"]) && data, "log")
        }
        "tool_call" => call().and(need(filled(&payload["toolName"]), "tool name")),
        "tool_progress" => {
            let phase = payload["phase"].as_str().unwrap_or_default();
            let known = ["connecting", "sending", "receiving", "processing"].contains(&phase);
            let bytes = payload.get("bytesReceived").is_none_or(|n| n.as_u64().is_some());
            call().and(need(known && count(&payload["elapsedMs"]) && bytes, "progress"))
        }
        "tool_result_applied" => call(),
        "partial_result" => {
            let path = payload["path"].as_array();
            let path = path.is_some_and(|path| path.iter().all(text));
            need(path && payload["hasNext"].is_boolean(), "partial result")
        }
        "deadline_exceeded" => {
            let budget = payload["budgetMs"].as_f64().is_some_and(|n| n > 0.0);
            need(count(&payload["elapsedMs"]) && budget, "deadline")
        }
        "catalog_changed" => {
            let lists = payload["addedActions"].is_array() && payload["removedActions"].is_array();
            need(filled(&payload["version"]) && lists, "catalog")
        }
        "heartbeat" => need(date(&payload["ts"]), "ts"),
        "error" => need(text(&payload["message"]), "error"),
        "final" => {
            need(payload["ok"].is_boolean(), "ok")?;
            let error = payload.get("error").is_none_or(|error| text(&error["message"]));
            let stats = ["durationMs", "toolCallCount", "stdoutBytes"];
            let stats = stats.iter().all(|name| count(&payload["stats"][name]));
            need(error && stats, "final")
        }
        "enc" => {
            let names = ["kid", "nonceB64", "ciphertextB64"];
            need(names.iter().all(|name| filled(&payload[name])), "enc")
        }
        _ => Err(format!("unknown type: {event}")),
    }
}

#[test]
fn a_session_is_told_in_both_dialects_at_once() {
    let events = vec![
        started(),
        logged(LogLevel::Log, "Processing user: Alice"),
        logged(LogLevel::Warn, "careful"),
        made(1, Runs::AtCaller),
        Event::CallDispatched { call: CallId(1), attempt: 1 },
        returned(1),
        Event::Emitted { mark: OutputMark::default(), item: raw("{\"n\":1}") },
        finished(Outcome::Completed { value: Some(raw("{\"count\":5}")) }),
    ];
    let seen = lines(events);
    let call = call_name(execution_of(&me(), &session()), CallId(1));
    let envelope = |seq: u64, kind: &str, ms: u64, payload: Value| json!({"protocolVersion":2,"sessionId":"s_1","seq":seq,"type":kind,"timestamp":1_704_067_200_000_u64 + ms,"payload":payload});
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
        envelope(5, "tool_result_applied", 5, json!({"callId":call,"ok":true})),
        envelope(6, "partial_result", 6, json!({"path":["0"],"hasNext":true,"data":{"n":1}})),
        envelope(
            7,
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
        made(1, Runs::Here),
        Event::CallDispatched { call: CallId(1), attempt: 1 },
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
            (json!("tool_progress"), json!("receiving")),
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
        (LimitKind::Calls, "MAX_TOOL_CALLS"),
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
    let cancelled = lines(vec![started(), finished(Outcome::Cancelled { by: me() })]);
    assert_eq!(cancelled[2]["payload"]["error"]["code"], "SESSION_CANCELLED");
    let mut failure = Failure::new(FailureCode::Tool, "nope");
    failure.details = Some(raw(r#"{"code":"E_NOPE"}"#));
    let own = lines(vec![started(), finished(Outcome::Failed(failure))]);
    assert_eq!(own[2]["payload"]["error"], json!({"code":"E_NOPE","message":"nope"}));
}

#[test]
fn what_has_no_place_in_the_journal_takes_no_number() {
    let mut telling = Telling::new(execution_of(&me(), &session()));
    let first = telling.hear(&entries(vec![started()])[0]);
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
        execution_of(&CallerName(caller.into()), &SessionId::parse(session).unwrap())
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
        assert!(SessionId::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn limits_are_taken_under_all_their_names() {
    let create = |body: &str| inbound::create(body.as_bytes()).unwrap();
    let usual = create(r#"{"code":""}"#);
    assert_eq!((usual.limits.active_ms_max, usual.heartbeat_ms), (30_000, 5_000));
    let some = create(
        r#"{"code":"","config":{"maxExecutionMs":200,"maxToolCalls":2,"heartbeatIntervalMs":0},
        "limits":{"maxDurationMs":9,"perToolDeadlineMs":70,"maxStdoutBytes":3,"deadlineMs":5,"idleMs":4}}"#,
    );
    let Limits {
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

fn filter(text: &Value) -> Filter {
    Filter::parse(&text.to_string()).unwrap()
}

fn a_bit_of_everything() -> Vec<Told> {
    told(vec![
        started(),
        logged(LogLevel::Log, "alpha/beta"),
        logged(LogLevel::Error, "Oh no"),
        made(1, Runs::Here),
        Event::CallDispatched { call: CallId(1), attempt: 1 },
        returned(1),
        finished(failed(FailureCode::Runtime, "x")),
    ])
}

#[track_caller]
fn passed(text: &Value, expected: &[u64]) {
    let filter = filter(text);
    let seen: Vec<_> = a_bit_of_everything()
        .iter()
        .filter(|told| filter.passes(told, &session()))
        .map(|told| told.seq)
        .collect();
    assert_eq!(seen, expected, "{text}");
}

#[test]
fn filters_say_what_they_say_in_both_dialects() {
    let rule = |kind: &str, pattern: &str, field: &str| json!({"mode":"include","rules":[{"content":{"patterns":[{"type":kind,"pattern":pattern,"field":field}]}}]});
    passed(&json!({}), &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    passed(&json!({"types":["stdout","error"]}), &[1, 2, 8, 9]);
    passed(&json!({"blockedTypes":["heartbeat","log"]}), &[1, 2, 4, 5, 6, 7, 8, 9]);
    passed(&json!({"mode":"include","rules":[]}), &[1, 9]);
    passed(&json!({"mode":"exclude","rules":[{}]}), &[1, 9]);
    passed(&json!({"mode":"include","rules":[],"alwaysAllow":[]}), &[1, 9]);
    passed(&json!({"mode":"include","rules":[],"alwaysAllow":["log"]}), &[1, 3, 9]);
    passed(
        &json!({"mode":"include","rules":[{"types":{"types":["log"]}},{"types":["stdout"]}]}),
        &[1, 2, 3, 9],
    );
    passed(&rule("exact", "Oh no", "payload.message"), &[1, 3, 9]);
    passed(&rule("exact", "Oh", "payload.message"), &[1, 9]);
    passed(&rule("prefix", "Oh", "payload.message"), &[1, 3, 9]);
    passed(&rule("glob", "alpha/*", "payload.chunk"), &[1, 2, 9]);
    passed(&rule("glob", "*", "payload.chunk"), &[1, 9]);
    passed(&rule("glob", "{a,b}lpha/[a-c]**", "payload.chunk"), &[1, 2, 9]);
    passed(&rule("regex", "^[a-z]+/be", "payload.data"), &[1, 2, 9]);
    passed(&rule("regex", ".", "payload.nothing"), &[1, 9]);
    let all = json!({"mode":"exclude","rules":[{"types":["log","stdout"],"content":{"match":"all","patterns":[
        {"type":"regex","pattern":"oh","caseInsensitive":true},{"type":"exact","pattern":"error","field":"payload.level"}]}}]});
    passed(&all, &[1, 2, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_filter_that_cannot_be_meant_is_refused() {
    for bad in [
        json!({"mode":"maybe"}),
        json!({"types":5}),
        json!({"mode":"include","types":[]}),
        json!([]),
        json!({"mode":"include","rules":[{"content":{"patterns":[{"type":"regex","pattern":"("}]}}]}),
        json!({"mode":"include","rules":[{"content":{"patterns":[{"type":"like","pattern":"x"}]}}]}),
        json!({"mode":"include","rules":[{"content":{"patterns":[{"type":"regex","pattern":"(a{1000}){1000}"}]}}]}),
        json!({"mode":"exclude","rules":vec![json!({}); 65]}),
    ] {
        assert!(Filter::parse(&bad.to_string()).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn whatever_a_filter_says_the_first_and_the_last_pass_and_opposites_divide_the_rest(
        pattern in "[a-z*?{},\\[\\]!/.\\\\-]{0,12}",
        kind in prop::sample::select(vec!["exact", "prefix", "glob", "regex"]),
        field in prop::option::of("payload(\\.[a-z]{2,7})?"),
        insensitive in any::<bool>(),
    ) {
        let rules = json!([{"content":{"patterns":[
            {"type":kind,"pattern":pattern,"field":field,"caseInsensitive":insensitive}]}}]);
        let read = |mode: &str| Filter::parse(&json!({"mode":mode,"rules":rules}).to_string());
        let (Ok(include), Ok(exclude)) = (read("include"), read("exclude")) else {
            prop_assert!(["regex", "glob"].contains(&kind), "a {} cannot be wrong: {}", kind, pattern);
            return Ok(());
        };
        for told in a_bit_of_everything() {
            let both = (include.passes(&told, &session()), exclude.passes(&told, &session()));
            if matches!(told.kind, Kind::SessionInit | Kind::Final) {
                prop_assert_eq!(both, (true, true));
            } else {
                prop_assert!(both.0 != both.1);
            }
        }
    }

    #[test]
    fn numbers_have_no_gap_and_do_not_depend_on_who_listens(which in prop::collection::vec(0..6_u8, 0..40)) {
        let mut events = vec![started()];
        for (n, which) in (1_u32..).zip(which) {
            match which {
                0 => events.push(logged(LogLevel::Log, "x")),
                1 => events.extend([made(n, Runs::Here), Event::CallDispatched { call: CallId(n), attempt: 1 }, returned(n)]),
                2 => events.extend([made(n, Runs::AtCaller), Event::CallDispatched { call: CallId(n), attempt: 1 }]),
                3 => events.push(Event::Paused { inputs: InputIndex(0), active_ms: 0 }),
                4 => events.push(Event::Emitted { mark: OutputMark::default(), item: Json::null() }),
                _ => events.push(made(n, Runs::AtCaller)),
            }
        }
        events.push(finished(Outcome::Completed { value: None }));
        let once = told(events.clone());
        prop_assert_eq!(&told(events), &once);
        let seqs: Vec<_> = once.iter().map(|told| told.seq).collect();
        prop_assert_eq!(seqs, (1..=once.len() as u64).collect::<Vec<_>>());
        for told in &once {
            prop_assert_eq!(accepted(&line(told)), Ok(()));
        }
    }

    #[test]
    fn no_body_makes_us_panic(body in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}:,\"a-z0-9]{0,80}") {
        for body in [body.as_slice(), text.as_bytes()] {
            let _ = inbound::create(body);
            let _ = inbound::tool_result(body);
            let _ = inbound::frame(body);
            let _ = inbound::envelope(body);
        }
        let _ = Filter::parse(&text);
    }
}
