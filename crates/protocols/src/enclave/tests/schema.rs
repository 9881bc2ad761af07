//! Which events the real client accepts and which it drops.

use super::*;

/// The rules of the real client's schema, as documented by `client-parser-acceptance.txt`.
pub(super) fn accepted(event: &Value) -> Result<(), String> {
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

fn event(kind: &str, payload: Value) -> Value {
    json!({"protocolVersion":2,"sessionId":"s_1","seq":1,"type":kind,"timestamp":1,"payload":payload})
}

fn with(mut event: Value, member: &str, value: Value) -> Value {
    event[member] = value;
    event
}

/// The event that a line of `client-parser-acceptance.txt` describes.
fn meant(name: &str) -> Value {
    let stats =
        json!({"durationMs":1,"toolCallCount":0,"stdoutBytes":0,"duration":1,"iterationCount":0});
    let init = |expires: &str| {
        event(
            "session_init",
            json!({"cancelUrl":"/c","expiresAt":expires,"encryption":{"enabled":false},
            "replayUrl":"/r","limits":{"maxDurationMs":1}}),
        )
    };
    let out = || event("stdout", json!({"chunk":"x","data":"x"}));
    let seed = |kind: &str, payload: Value| json!({"type":kind,"sessionId":"sess_1","timestamp":1,"payload":payload});
    let end = |more: Value| {
        let mut payload = json!({"ok":false,"stats":stats});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event("final", payload)
    };
    let progress = |phase: &str, bytes: Value| {
        event(
            "tool_progress",
            json!({"callId":"c_1","phase":phase,"elapsedMs":0,"bytesReceived":bytes}),
        )
    };
    let log =
        |level: &str, data: Value| event("log", json!({"level":level,"message":"m","data":data}));
    match name {
        "session_init superset" => init("2026-11-15T19:58:09.126Z"),
        "stdout superset (chunk+data)" => out(),
        "tool_call superset (toolName+tool)" => {
            event("tool_call", json!({"callId":"c_1","toolName":"t","tool":"t","args":{}}))
        }
        "final superset" => event("final", json!({"ok":true,"result":1,"stats":stats})),
        "error superset" => event("error", json!({"message":"m","code":"E","recoverable":false})),
        "heartbeat superset" => event("heartbeat", json!({"ts":"2026-11-15T19:58:09.126Z"})),
        "enc superset" => {
            event("enc", json!({"kid":"k_1","nonceB64":"AA==","ciphertextB64":"AA=="}))
        }
        "session_init with serverHello" => event(
            "session_init",
            json!({"cancelUrl":"/c",
            "expiresAt":"2026-11-15T19:58:09.126Z","encryption":{"enabled":true,"keyId":"k_1","serverHello":{}}}),
        ),
        "SEED stdout as written" => seed("stdout", json!({"data":"x"})),
        "SEED tool_call as written" => {
            seed("tool_call", json!({"callId":"call_1","tool":"t","args":{}}))
        }
        "SEED final as written" => seed("final", json!({"result":1,"stats":{"duration":1}})),
        "SEED heartbeat as written" => seed("heartbeat", json!({})),
        "heartbeat with epoch ts" => event("heartbeat", json!({"ts":1_794_772_678_875_u64})),
        "expiresAt without Z" => init("2026-11-15T19:58:09.126"),
        "expiresAt +00:00 offset" => init("2026-11-15T19:58:09.126+00:00"),
        "expiresAt micros Z" => init("2026-11-15T19:58:09.126123Z"),
        "protocolVersion 1" => with(out(), "protocolVersion", json!(1)),
        "protocolVersion \"1.0\"" => with(out(), "protocolVersion", json!("1.0")),
        "seq 0" => with(out(), "seq", json!(0)),
        "seq 1.5" => with(out(), "seq", json!(1.5)),
        "tool_progress odd phase" => progress("dreaming", json!(1)),
        "tool_progress null bytes" => progress("receiving", Value::Null),
        "deadline budget 0" => event("deadline_exceeded", json!({"elapsedMs":1,"budgetMs":0})),
        "log data array" => log("info", json!([1])),
        "log level trace" => log("trace", json!({})),
        "final error without message" => end(json!({"error":{"code":"E"}})),
        "final durationMs negative" => {
            end(json!({"stats":{"durationMs":-1,"toolCallCount":0,"stdoutBytes":0}}))
        }
        "final stats missing field" => end(json!({"stats":{"durationMs":1}})),
        "final error null" => end(json!({"error":null})),
        "unknown event type" => event("surprise", json!({})),
        "sessionId exactly s_" => with(out(), "sessionId", json!("s_")),
        other => panic!("nobody knows what {other:?} is"),
    }
}

#[test]
fn the_schema_takes_and_drops_what_the_real_client_does() {
    let text =
        include_str!("../../../../../tests/conformance/enclave/client-parser-acceptance.txt");
    let mut n = (0, 0);
    for line in text.lines() {
        let (verdict, rest) = line.split_at(7);
        let name = rest[..41.min(rest.len())].trim();
        let taken = accepted(&meant(name));
        match verdict.trim() {
            "ACCEPT" => n.0 += 1,
            "DROP" => n.1 += 1,
            other => panic!("no verdict: {other:?}"),
        }
        assert_eq!(taken.is_ok(), verdict.trim() == "ACCEPT", "{name}: {taken:?}");
    }
    assert_eq!(n, (11, 20), "every line counts");
}

#[test]
fn everything_that_upstream_was_heard_to_say_fits_the_schema() {
    let text = include_str!("../../../../../tests/conformance/enclave/http.jsonl");
    let mut n_events = 0;
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        for event in record["events"].as_array().into_iter().flatten() {
            n_events += 1;
            // It accepts ids without a prefix from its callers, and its own client then drops all events.
            let odd =
                ["id-without-prefix", "id-number"].contains(&record["name"].as_str().unwrap());
            assert_eq!(accepted(event).is_ok(), !odd, "{event}");
        }
    }
    assert!(n_events > 200, "{n_events}");
}
