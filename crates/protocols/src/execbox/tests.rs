//! The guarantees of the two codecs for each other and for other implementations.

use super::wire::*;
use super::*;
use lifecycle::{
    InputIndex, LogLevel, OutputMark, RandomSeed, TimerId, Timestamp, UnawaitedCalls,
    ValueConvention,
};
use proptest::prelude::*;

#[track_caller]
fn to_runner(line: &str) -> ToRunner<'_> {
    ToRunner::decode(line.as_bytes()).unwrap()
}

#[track_caller]
fn from_runner(line: &str) -> FromRunner<'_> {
    FromRunner::decode(line.as_bytes()).unwrap()
}

fn raw(text: &str) -> RawJson<'_> {
    RawJson::parse(text).unwrap()
}

#[test]
fn an_execute_of_a_plain_host_is_understood() {
    let line = r#"{"id":"e","providers":[{"name":"codemode","types":"","tools":{}}],"surprise":{"a":[1]},
        "options":{"maxLogChars":64000,"maxLogLines":-1,"memoryLimitBytes":6.4e7,"timeoutMs":10.5},"code":"1 + 1","type":"execute"}"#;
    let expected = ToRunner::Execute(Execute {
        id: "e".into(),
        code: "1 + 1".into(),
        options: Options {
            timeout_ms: 10,
            memory_limit_bytes: 64_000_000,
            max_log_lines: 0,
            max_log_chars: 64_000,
        },
        providers: raw(r#"[{"name":"codemode","types":"","tools":{}}]"#),
        airlock: None,
    });
    assert_eq!(to_runner(line), expected);
}

#[test]
fn an_execute_with_partial_options_is_refused() {
    let line = r#"{"type":"execute","id":"e","code":"1","options":{"timeoutMs":1},"providers":[]}"#;
    assert!(matches!(ToRunner::decode(line.as_bytes()), Err(BadMessage::Malformed(_))));
}

#[test]
fn an_execute_of_the_engine_reads_as_documented() {
    let mut execute = Execute {
        id: "run".into(),
        code: "return \"\n\"".into(),
        options: Options {
            timeout_ms: 1,
            memory_limit_bytes: 2,
            max_log_lines: 3,
            max_log_chars: 4,
        },
        providers: raw("[]"),
        airlock: Some(Airlock {
            seed: RandomSeed([0xAB; 32]),
            start_ms: Timestamp(1_700_000_000_000),
            convention: ValueConvention::ExplicitReturn,
            prepared: false,
            prelude: 1,
            cpu_ms: 5,
            unawaited: UnawaitedCalls::Wait,
            replay_inputs: InputIndex(6),
            replay_cpu_ms: 7,
            loop_rounds_max: None,
        }),
    };
    let seed = "ab".repeat(32);
    let expected = format!(
        r#"{{"type":"execute","id":"run","code":"return \"\n\"","options":{{"timeoutMs":1,"memoryLimitBytes":2,"maxLogLines":3,"maxLogChars":4}},"providers":[],"airlock":{{"seed":"{seed}","startMs":1700000000000,"convention":"explicit_return","prepared":false,"prelude":1,"cpuMs":5,"unawaited":"wait","replayInputs":6,"replayCpuMs":7}}}}"#
    );
    let reads_as = |execute: &Execute<'_>, expected: &str| {
        let (execute, mut line) = (ToRunner::Execute(execute.clone()), Vec::new());
        execute.encode(&mut line);
        assert_eq!(String::from_utf8(line).unwrap(), format!("{expected}\n"));
        assert_eq!(to_runner(expected), execute);
    };
    reads_as(&execute, &expected);
    execute.airlock.as_mut().unwrap().loop_rounds_max = Some(8);
    let limited = r#""replayCpuMs":7,"loopRoundsMax":8"#;
    reads_as(&execute, &expected.replace(r#""replayCpuMs":7"#, limited));
}

#[test]
fn a_missing_result_is_undefined_and_a_null_result_is_null() {
    let settled = |line| {
        let ToRunner::ToolResult(result) = to_runner(line) else { panic!("{line}") };
        result.outcome.unwrap().map(RawJson::as_text)
    };
    assert_eq!(settled(r#"{"type":"tool_result","callId":"1","ok":true}"#), None);
    assert_eq!(
        settled(r#"{"type":"tool_result","callId":"1","ok":true,"result":null}"#),
        Some("null")
    );
}

#[test]
fn payloads_of_any_depth_and_with_half_a_surrogate_pair_pass_untouched() {
    let deep = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
    for payload in [deep.as_str(), r#"{"a":"\ud800"}"#, "1e999", "\"\u{2028}\""] {
        let line =
            format!(r#"{{"type":"tool_result","callId":"1","ok":true,"result":{payload},"at":5}}"#);
        let expected = ToRunner::ToolResult(ToolResult {
            call_id: "1".into(),
            outcome: Ok(Some(raw(payload))),
            at: Some(Timestamp(5)),
        });
        assert_eq!(to_runner(&line), expected);
    }
}

#[test]
fn half_a_surrogate_pair_in_a_text_becomes_a_replacement_character() {
    let line = r#"{"type":"tool_result","callId":"1","ok":false,"error":{"code":"tool_error","message":"a\ud800b\udc00\ud83d\ude00","extra":1}}"#;
    let expected = ToRunner::ToolResult(ToolResult {
        call_id: "1".into(),
        outcome: Err(CallFailure {
            code: "tool_error".into(),
            message: "a\u{FFFD}b\u{FFFD}😀".into(),
            name: None,
            details: None,
        }),
        at: None,
    });
    assert_eq!(to_runner(line), expected);
}

#[test]
fn a_failure_without_an_error_is_refused() {
    let line = br#"{"type":"tool_result","callId":"1","ok":false}"#;
    assert!(matches!(ToRunner::decode(line), Err(BadMessage::ErrorMissing("tool_result"))));
    let line = br#"{"type":"done","id":"1","ok":false,"durationMs":0,"logs":[]}"#;
    assert!(matches!(FromRunner::decode(line), Err(BadMessage::ErrorMissing("done"))));
}

#[test]
fn each_direction_knows_only_its_own_messages() {
    assert!(matches!(
        ToRunner::decode(br#"{"type":"idle","inputs":1}"#),
        Err(BadMessage::UnknownType)
    ));
    assert!(matches!(
        FromRunner::decode(br#"{"type":"cancel","id":"1"}"#),
        Err(BadMessage::UnknownType)
    ));
}

#[test]
fn a_line_beyond_the_maximum_is_refused_unread() {
    let line = vec![b' '; HOST_MESSAGE_BYTES_MAX + 1];
    assert!(matches!(ToRunner::decode(&line), Err(BadMessage::TooLong)));
}

#[test]
fn line_breaks_inside_a_payload_do_not_end_the_line() {
    let mut line = Vec::new();
    let mark = OutputMark { input: InputIndex(1), ordinal: 2 };
    FromRunner::Emit(Emit { item: raw("{\n  \"a\": 1\n}"), mark }).encode(&mut line);
    assert_eq!(
        String::from_utf8(line).unwrap(),
        "{\"type\":\"emit\",\"item\":{   \"a\": 1 },\"input\":1,\"ordinal\":2}\n"
    );
}

#[test]
fn what_the_runner_says_reads_as_documented() {
    let lines = [
        r#"{"type":"started","id":"r","airlock":{"prepared":"return 1","prelude":1,"fingerprint":"f"}}"#,
        r#"{"type":"started","id":"r"}"#,
        r#"{"type":"tool_call","callId":"1","providerName":"tools","safeToolName":"demo.add","input":{"a":1}}"#,
        r#"{"type":"log","level":"warn","line":"hm\n","input":0,"ordinal":1}"#,
        r#"{"type":"timer_set","timer":1,"delayMs":20}"#,
        r#"{"type":"timer_cleared","timer":1}"#,
        r#"{"type":"idle","inputs":3}"#,
        r#"{"type":"synced","n":9}"#,
        r#"{"type":"diverged","what":"call 3 is not outstanding"}"#,
        r#"{"type":"done","id":"r","ok":true,"durationMs":4,"logs":["a"],"result":null}"#,
        r#"{"type":"done","id":"r","ok":false,"durationMs":4,"logs":[],"error":{"code":"timeout","message":"m","name":"E","stack":"s","limit":"cpu"}}"#,
    ];
    for line in lines {
        let mut again = Vec::new();
        from_runner(line).encode(&mut again);
        assert_eq!(String::from_utf8(again).unwrap(), format!("{line}\n"));
    }
}

fn payload() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<String>().prop_map(|s| serde_json::to_string(&s).unwrap()),
        Just(r#"{"a":[{"b":"\ud800"}]}"#.to_owned()),
    ]
}

#[track_caller]
fn round_trip_to(message: &ToRunner<'_>) {
    let mut line = Vec::new();
    message.encode(&mut line);
    let (end, body) = line.split_last().unwrap();
    assert_eq!((*end, body.contains(&b'\n')), (b'\n', false));
    assert_eq!(&ToRunner::decode(body).unwrap(), message);
}

#[track_caller]
fn round_trip_from(message: &FromRunner<'_>) {
    let mut line = Vec::new();
    message.encode(&mut line);
    let (end, body) = line.split_last().unwrap();
    assert_eq!((*end, body.contains(&b'\n')), (b'\n', false));
    assert_eq!(&FromRunner::decode(body).unwrap(), message);
}

proptest! {
    #[test]
    fn what_is_written_to_the_runner_is_read_back(
        texts in prop::array::uniform3(any::<String>()),
        name in any::<Option<String>>(),
        payload in prop::option::of(payload()),
        numbers in any::<(u32, i64, u64)>(),
    ) {
        let [a, b, c] = texts.each_ref().map(|text| WireText::Borrowed(text.as_str()));
        let json = payload.as_deref().map(raw);
        let at = Some(Timestamp(numbers.1));
        round_trip_to(&ToRunner::ToolResult(ToolResult { call_id: a.clone(), outcome: Ok(json), at }));
        let failure = CallFailure { code: b, message: c, name: name.map(Into::into), details: json };
        round_trip_to(&ToRunner::ToolResult(ToolResult { call_id: a.clone(), outcome: Err(failure), at: None }));
        round_trip_to(&ToRunner::TimerFired(TimerFired { timer: TimerId(numbers.0), at: Timestamp(numbers.1) }));
        round_trip_to(&ToRunner::Sync(Sync { n: numbers.2 }));
        round_trip_to(&ToRunner::Cancel(Cancel { id: a }));
    }

    #[test]
    fn what_the_runner_writes_is_read_back(
        texts in prop::array::uniform5(any::<String>()),
        payload in payload(),
        numbers in any::<(u32, u32, u32)>(),
    ) {
        let [a, b, c, d, e] = texts.each_ref().map(|text| WireText::Borrowed(text.as_str()));
        let mark = OutputMark { input: InputIndex(numbers.0), ordinal: numbers.1 };
        round_trip_from(&FromRunner::Log(Log { level: LogLevel::Debug, line: a.clone(), mark, exact: None }));
        round_trip_from(&FromRunner::Log(Log { level: LogLevel::Log, line: a.clone(), mark, exact: Some(raw("\"\\ud800\"")) }));
        round_trip_from(&FromRunner::Emit(Emit { item: raw(&payload), mark }));
        round_trip_from(&FromRunner::ToolCall(ToolCall {
            call_id: a.clone(), provider_name: b.clone(), safe_tool_name: c.clone(), input: raw(&payload),
            line: Some(3),
        }));
        let failed = Failed { code: a.clone(), message: b.clone(), name: Some(c), stack: Some(d), limit: None };
        let done = |outcome| FromRunner::Done(Done { id: e.clone(), outcome, duration_ms: u64::from(numbers.2), logs: vec![a.clone(), b.clone()], emitted: vec![raw(&payload)] });
        round_trip_from(&done(Err(failed)));
        round_trip_from(&done(Ok(Some(raw(&payload)))));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (ToRunner::decode(&bytes).is_ok(), FromRunner::decode(&bytes).is_ok());
    }

    #[test]
    fn no_damaged_message_makes_a_reader_panic(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        line in prop::sample::select(vec![
            r#"{"type":"tool_result","callId":"1","ok":false,"error":{"code":"a","message":"\ud83d\ude00"},"at":5}"#,
            r#"{"type":"done","id":"r","ok":true,"durationMs":4e0,"logs":["a"],"result":[[]]}"#,
            r#"{"type":"tool_call","callId":"1","providerName":"tools","safeToolName":"a","input":{"a":1}}"#,
        ]),
    ) {
        let mut bytes = line.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = (ToRunner::decode(&bytes).is_ok(), FromRunner::decode(&bytes).is_ok());
        bytes.truncate(at);
        let _ = (ToRunner::decode(&bytes).is_ok(), FromRunner::decode(&bytes).is_ok());
    }
}
