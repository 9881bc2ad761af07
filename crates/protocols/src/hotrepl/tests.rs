use super::inbound::{ReplOperation, decode};
use super::outbound::{FrameValue, carried, cut};
use super::wire::{FromClient, FromServer, Shown};
use super::{MESSAGE_BYTES_MAX, RESULT_BYTES_MAX, ValueProfile};
use proptest::prelude::*;
use serde_json::{Value, json};

macro_rules! example {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!(
                "../../../../tests/conformance/hotrepl/schemas/examples/",
                $name,
                ".json"
            )),
        )
    };
}

/// The examples of the published protocol.
const EXAMPLES: [(&str, &str); 29] = [
    example!("handshake"),
    example!("session_evicted"),
    example!("assembly_reload"),
    example!("error"),
    example!("eval"),
    example!("eval_result"),
    example!("eval_error"),
    example!("complete"),
    example!("complete_result"),
    example!("reset"),
    example!("reset_result"),
    example!("subscribe"),
    example!("subscribe_result"),
    example!("subscribe_error"),
    example!("cancel"),
    example!("commands_list"),
    example!("commands_list_result"),
    example!("command_describe"),
    example!("command_describe_result"),
    example!("command_call"),
    example!("command_result"),
    example!("job_accepted"),
    example!("job_status"),
    example!("job_status_result"),
    example!("job_result"),
    example!("job_cancel"),
    example!("job_cancel_result"),
    example!("journal_query"),
    example!("journal_query_result"),
];

#[test]
fn every_example_of_the_protocol_is_decoded_and_encoded_as_it_was() {
    let (mut n_theirs, mut n_ours) = (0, 0);
    for (name, example) in EXAMPLES {
        let example: Value = serde_json::from_str(example).unwrap();
        let again = if let Ok(frame) = serde_json::from_value::<FromServer>(example.clone()) {
            n_theirs += 1;
            serde_json::from_str::<Value>(&frame.encode()).unwrap()
        } else {
            n_ours += 1;
            decode(&example.to_string()).unwrap();
            let frame: FromClient = serde_json::from_value(example.clone()).unwrap();
            serde_json::to_value(frame).unwrap()
        };
        assert_eq!(again, example, "{name}");
    }
    assert_eq!((n_theirs, n_ours), (18, 11));
}

#[test]
fn what_is_no_request_is_refused_with_its_id_where_it_has_one() {
    for (frame, id, code) in [
        ("not json", None, "malformedJson"),
        ("{\"type\":\"eval\",\"id\":", None, "malformedJson"),
        ("[]", None, "invalidRequest"),
        ("42", None, "invalidRequest"),
        ("null", None, "invalidRequest"),
        (r#"{"id":"a","code":"1"}"#, Some("a"), "invalidRequest"),
        (r#"{"type":"eval","code":"1"}"#, None, "invalidRequest"),
        (r#"{"type":"eval","id":"a"}"#, Some("a"), "invalidRequest"),
        (r#"{"type":"eval","id":"a","code":5}"#, Some("a"), "invalidRequest"),
        (r#"{"type":"eval","id":"a","code":"1","timeoutMs":"soon"}"#, Some("a"), "invalidRequest"),
        (r#"{"type":"command_call","id":"a","name":"x","args":[]}"#, Some("a"), "invalidRequest"),
        (r#"{"type":"no_such","id":"a"}"#, Some("a"), "unknownMessageType"),
        (r#"{"type":"ping","id":"a"}"#, Some("a"), "legacyMessageType"),
    ] {
        let refused = decode(frame).unwrap_err();
        assert_eq!((refused.id.as_deref(), refused.error.code.as_str()), (id, code), "{frame}");
    }
    let deep = "[".repeat(20_000) + &"]".repeat(20_000);
    assert_eq!(decode(&deep).unwrap_err().error.code, "invalidRequest");
    let long = format!(
        "{{\"type\":\"eval\",\"id\":\"b\",\"code\":\"{}\"}}",
        " ".repeat(MESSAGE_BYTES_MAX)
    );
    let refused = decode(&long).unwrap_err();
    assert_eq!(
        (refused.id.as_deref(), refused.error.code.as_str()),
        (Some("b"), "messageTooLarge")
    );
}

#[test]
fn each_frame_becomes_the_request_that_it_says() {
    use super::inbound::{ReplRequest, SubscribeRequest};
    use super::wire::JournalKind;
    let text = str::to_owned;
    let query = |kind, limit| ReplOperation::JournalQuery { kind, limit };
    let watch = |on_change| {
        let (code, timeout_ms) = (text("1"), Some(9));
        ReplOperation::Subscribe(SubscribeRequest {
            code,
            interval_frames: 3,
            limit: 4,
            on_change,
            timeout_ms,
        })
    };
    let cases = [
        (
            json!({"type": "eval", "code": "1", "timeoutMs": 5}),
            ReplOperation::Eval { code: text("1"), timeout_ms: Some(5) },
        ),
        (
            json!({"type": "complete", "code": "a.", "cursor": 2}),
            ReplOperation::Complete { code: text("a."), cursor: Some(2.0) },
        ),
        (
            json!({"type": "complete", "code": "a."}),
            ReplOperation::Complete { code: text("a."), cursor: None },
        ),
        (json!({"type": "reset"}), ReplOperation::Reset),
        (
            json!({"type": "subscribe", "code": "1", "intervalFrames": 3, "limit": 4, "onChange": true, "timeoutMs": 9}),
            watch(true),
        ),
        (
            json!({"type": "subscribe", "code": "1", "intervalFrames": 3, "limit": 4, "onChange": "true", "timeoutMs": 9}),
            watch(false),
        ),
        (json!({"type": "cancel", "targetId": "t"}), ReplOperation::Cancel { target: text("t") }),
        (json!({"type": "commands_list", "since": "x"}), ReplOperation::CommandsList),
        (
            json!({"type": "command_describe", "name": "n"}),
            ReplOperation::CommandDescribe { name: text("n") },
        ),
        (
            json!({"type": "command_call", "name": "n", "args": {"a": 1}, "timeoutMs": 1}),
            ReplOperation::CommandCall {
                name: text("n"),
                args: text(r#"{"a":1}"#),
                timeout_ms: Some(1),
            },
        ),
        (json!({"type": "job_status", "jobId": "j"}), ReplOperation::JobStatus { job: text("j") }),
        (json!({"type": "job_cancel", "jobId": "j"}), ReplOperation::JobCancel { job: text("j") }),
        (json!({"type": "journal_query"}), query(None, None)),
        (
            json!({"type": "journal_query", "kind": "eval", "limit": 2}),
            query(Some(JournalKind::Eval), Some(2.0)),
        ),
        (
            json!({"type": "journal_query", "kind": "command"}),
            query(Some(JournalKind::Command), None),
        ),
    ];
    for (mut frame, wish) in cases {
        frame["id"] = json!("a");
        assert_eq!(decode(&frame.to_string()), Ok(ReplRequest { id: text("a"), wish }), "{frame}");
    }
}

#[test]
fn a_refusal_names_the_member_that_is_wrong() {
    for (frame, message) in [
        (json!({"type": "complete", "code": "1", "cursor": "x"}), "cursor must be a number."),
        (json!({"type": "commands_list", "since": 1}), "since must be a text."),
        (json!({"type": "command_call", "name": "n"}), "args must be an object."),
        (json!({"type": "command_call", "name": "n", "args": 1}), "args must be an object."),
        (json!({"type": "cancel"}), "targetId must be a text."),
        (json!({"code": "1"}), "type must be a text."),
        (
            json!({"type": "lease_acquire"}),
            "lease_acquire is of protocol version 1, which is not spoken here.",
        ),
    ] {
        assert_eq!(decode(&frame.to_string()).unwrap_err().error.message, message, "{frame}");
    }
}

#[test]
fn an_id_is_as_long_as_it_may_be_and_a_frame_too() {
    let reset = |n: usize| format!(r#"{{"type":"reset","id":"{}"}}"#, "i".repeat(n));
    assert_eq!(decode(&reset(1_024)).unwrap().id.len(), 1_024);
    let refused = decode(&reset(1_025)).unwrap_err();
    assert_eq!(
        (refused.id, refused.error.message.as_str()),
        (None, "id must be a text of at most 1024 bytes.")
    );
    let frame = r#"{"type":"reset","id":"a"}"#;
    let padded = |n: usize| format!("{frame}{}", " ".repeat(n - frame.len()));
    assert!(decode(&padded(MESSAGE_BYTES_MAX)).is_ok());
    assert_eq!(decode(&padded(MESSAGE_BYTES_MAX + 1)).unwrap_err().error.code, "messageTooLarge");
    // The decoder searches for the id of such a frame near its beginning.
    let long =
        |head: &str| decode(&format!("{head}{}", " ".repeat(MESSAGE_BYTES_MAX))).unwrap_err().id;
    assert_eq!(long(r#"{"id" : "a\u0062c", "x"#).as_deref(), Some("abc"));
    let late = " ".repeat(1_024);
    for head in [r#"{"id" "a""#, r#"{"id":7"#, r#"{"id":"a"#, &format!("{late}\"id\":\"a\"")] {
        assert_eq!(long(head), None, "{head}");
    }
}

#[test]
fn odd_numbers_mean_the_usual_ones() {
    let wish = |frame: Value| decode(&frame.to_string()).unwrap().wish;
    for ms in [json!(0), json!(-5), json!(null)] {
        let eval = wish(json!({"type": "eval", "id": "a", "code": "1", "timeoutMs": ms}));
        assert_eq!(eval, ReplOperation::Eval { code: "1".into(), timeout_ms: None });
    }
    let odd =
        json!({"type": "subscribe", "id": "a", "code": "1", "intervalFrames": 0.5, "limit": -3});
    let ReplOperation::Subscribe(watch) = wish(odd) else { panic!("a watch") };
    assert_eq!((watch.interval_frames, watch.limit), (1, 0));
}

#[test]
fn a_long_value_is_cut_with_its_mark_and_within_the_limit() {
    let text = "\u{1F600}".repeat(RESULT_BYTES_MAX);
    let FrameValue { value: Some(Shown::Text(shown)), .. } =
        carried(text.clone(), text.len(), ValueProfile::Text)
    else {
        panic!("a text")
    };
    assert!(shown.len() <= RESULT_BYTES_MAX && shown.ends_with(" [truncated at 102400 bytes]"));
    let exact = "x".repeat(RESULT_BYTES_MAX);
    let whole = carried(exact.clone(), exact.len(), ValueProfile::Text);
    assert_eq!(whole.value, Some(Shown::Text(exact)));
    assert_eq!(cut("abcdef", 6, 3), "abc");
    let native = carried("[1]".into(), 9_000_000, ValueProfile::Native);
    assert_eq!(
        (native.value, native.truncated, native.truncated_bytes),
        (None, Some(true), Some(9_000_000))
    );
}

proptest! {
    #[test]
    fn no_frame_breaks_the_reader(frame in ".{0,200}") {
        let _ = decode(&frame);
    }
}

#[test]
fn moments_are_written_as_the_world_writes_them() {
    use super::outbound::timestamp;
    for (ms, text) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_779_537_600_123, "2026-05-23T12:00:00.123Z"),
        (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
    ] {
        assert_eq!(timestamp(ms), text);
    }
}
