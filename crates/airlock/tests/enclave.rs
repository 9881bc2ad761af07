//! The enclave door of the real server: every event, every limit, every refusal.

use crate::enclave_reader::{Lines, events, kinds, last, run, start, start_with_tools};
use crate::server_fixture::{Answer, Client, Served};
use serde_json::{Value, json};
use std::io::BufRead as _;

#[test]
fn a_program_is_told_from_its_first_event_to_its_last() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--enclave-tool", "add=demo.add"]);
    let client = served.client("run");
    let code = "console.log('hello'); console.error('oh'); emit({ n: 1 });
        const three = await callTool('add', { a: 1, b: 2 }); const five = await tools.demo.add({ a: 2, b: 3 }); three + five";
    let seen = run(&client, json!({"sessionId":"s_story","code":code}));
    let expected = [
        "session_init",
        "stdout",
        "log",
        "partial_result",
        "tool_call",
        "tool_progress",
        "tool_progress",
        "tool_result_applied",
        "tool_call",
        "tool_progress",
        "tool_progress",
        "tool_result_applied",
        "final",
    ];
    assert_eq!(kinds(&seen), expected);
    let end = last(&seen);
    assert_eq!(
        (&end["ok"], &end["result"], &end["stats"]["toolCallCount"]),
        (&json!(true), &json!(8), &json!(2))
    );
    assert_eq!(end["stats"]["stdoutBytes"], 7);
    assert_eq!(seen[1]["payload"]["chunk"], "hello\n");
    assert_eq!(seen[4]["payload"]["toolName"], "add");
    assert_eq!(seen[8]["payload"]["toolName"], "demo.add");

    let again = client.get("/sessions/s_story/stream");
    assert_eq!(events(&again), seen, "every reader hears the same");
    for (path, from) in [("?from=5", 5), ("?fromSeq=5", 5), ("?from=abc", 1), ("?from=", 1)] {
        let suffix = events(&client.get(&format!("/sessions/s_story/stream{path}")));
        assert_eq!(suffix, seen[from - 1..], "{path}");
    }
    let header = [("Last-Event-ID", "4")];
    assert_eq!(events(&client.send("GET", "/sessions/s_story/stream", &header, "")), seen[4..]);
    let beyond = events(&client.get("/sessions/s_story/stream?from=99"));
    assert_eq!(kinds(&beyond), ["final"], "whoever asks for more hears the end");

    let shown: Value = serde_json::from_str(&client.get("/sessions/s_story").body).unwrap();
    assert_eq!(
        (&shown["state"], &shown["stats"]["toolCallCount"]),
        (&json!("completed"), &json!(2))
    );
    let listed: Value = serde_json::from_str(&client.get("/sessions").body).unwrap();
    assert_eq!(
        (&listed["total"], &listed["sessions"][0]["sessionId"]),
        (&json!(1), &json!("s_story"))
    );
    let alias = events(&client.post("/execute", r#"{"code":"return 1"}"#));
    assert_eq!(last(&alias)["result"], 1);
}

#[test]
fn the_caller_runs_tools_and_the_first_result_counts() {
    let (_folder, served) = start();
    let client = served.client("run");
    let code = "try { await callTool('bad') } catch (e) { console.log(e.code, e.message) }
        return [await callTool('users:list', { limit: 10 }), await callTool('c')]";
    let mut lines = Lines::post(&client, &json!({"sessionId":"s_calls","code":code}));
    let shapes: [fn(&str) -> Value; 3] = [
        |call| json!({"type":"tool_result","sessionId":"s_calls","callId":call,"success":false,"error":{"code":"E_NOPE","message":"nope"}}),
        |call| json!({"callId":call,"result":{"users":[1]}}),
        |call| json!({"protocolVersion":2,"sessionId":"s_calls","type":"tool_result_submit","payload":{"callId":call,"ok":true,"result":2}}),
    ];
    for shape in shapes {
        let call = lines.until("tool_call")["payload"]["callId"].as_str().unwrap().to_owned();
        let body = shape(&call).to_string();
        let shown: Value = serde_json::from_str(&client.get("/sessions/s_calls").body).unwrap();
        assert_eq!(shown["state"], "waiting_for_tool");
        let first = client.post("/sessions/s_calls/tool-result", &body);
        assert_eq!(first.status, 200, "{first:?}");
        let second = client.post("/sessions/s_calls/tool-result", &body);
        assert_eq!(second.status, 409, "{second:?}");
    }
    let rest = lines.rest();
    assert_eq!(rest.last().unwrap()["payload"]["result"], json!([{"users":[1]}, 2]));
    let all = events(&client.get("/sessions/s_calls/stream"));
    let printed = all.iter().find(|event| event["type"] == "stdout").unwrap();
    assert_eq!(printed["payload"]["chunk"], "E_NOPE nope\n");
    last(&all);
}

#[test]
fn the_caller_returns_results_up_to_the_sessions_limit() {
    let (_folder, served) = start();
    let client = served.client("run");
    for (n_bytes, expected) in [(5_000_000, json!(5_000_000)), (6_000_000, Value::Null)] {
        let id = format!("s_large{n_bytes}");
        let code = "return (await callTool('x')).length";
        let mut lines = Lines::post(&client, &json!({"sessionId":id,"code":code}));
        let call = lines.until("tool_call")["payload"]["callId"].clone();
        let body = json!({"callId":call,"result":"x".repeat(n_bytes)}).to_string();
        let taken = client.post(&format!("/sessions/{id}/tool-result"), &body);
        assert_eq!(taken.status, 200, "{n_bytes}: {taken:?}");
        let end = lines.until("final")["payload"].clone();
        assert_eq!(end["result"], expected, "{end}");
        let code = if expected.is_null() { json!("TOOL_RESULT_TOO_LARGE") } else { Value::Null };
        assert_eq!(end["error"]["code"], code, "{end}");
    }
}

#[test]
fn every_limit_ends_the_session_with_its_own_code() {
    let (_folder, served) = start();
    let client = served.client("run");
    let cases = [
        ("for (;;) {}", json!({"maxDurationMs":300}), "TIMEOUT"),
        ("await callTool('slow')", json!({"maxExecutionMs":300}), "TIMEOUT"),
        ("await callTool('slow')", json!({"deadlineMs":300}), "DEADLINE_EXCEEDED"),
        ("await callTool('slow')", json!({"perToolDeadlineMs":300}), "TOOL_TIMEOUT"),
        ("await callTool('slow')", json!({"idleMs":300}), "IDLE_TIMEOUT"),
        ("await tools.demo.sleep({ ms: 60000 })", json!({"toolTimeoutMs":300}), "TOOL_TIMEOUT"),
        (
            "for (const n of [1, 2, 3]) await tools.demo.add({ a: n, b: n })",
            json!({"maxToolCalls":2}),
            "MAX_TOOL_CALLS",
        ),
        ("for (;;) console.log('0123456789')", json!({"maxStdoutBytes":100}), "MAX_STDOUT_BYTES"),
        (
            "await tools.demo.add({ a: 123456, b: 1 })",
            json!({"maxToolResultBytes":3}),
            "TOOL_RESULT_TOO_LARGE",
        ),
        (
            "const all = []; for (;;) all.push(new Array(100000).fill(1))",
            json!({}),
            "MEMORY_LIMIT_EXCEEDED",
        ),
        ("throw new Error('x')", json!({}), "EXECUTION_ERROR"),
        ("const x = ;", json!({}), "SYNTAX_ERROR"),
        ("await tools.demo.add({ a: 'x' })", json!({}), "VALIDATION_ERROR"),
    ];
    for (code, limits, expected) in cases {
        let seen = run(&client, json!({"code":code,"limits":limits}));
        let end = last(&seen);
        assert_eq!((code, &end["error"]["code"]), (code, &json!(expected)));
        let notice = &seen[seen.len() - 2];
        assert_eq!(
            (&notice["type"], &notice["payload"]["code"]),
            (&json!("error"), &json!(expected))
        );
        if expected == "DEADLINE_EXCEEDED" {
            assert!(kinds(&seen).contains(&"deadline_exceeded"));
        }
    }
    let none = run(&client, json!({"code":"await callTool('x')","tools":[]}));
    assert_eq!(last(&none)["error"]["code"], "UNKNOWN_TOOL");
    let busy =
        run(&client, json!({"code":"let n = 0; for (let i = 0; i < 2000000; i++) n += i; n"}));
    assert_eq!(last(&busy)["stats"]["iterationCount"], 2_000_000);
    let few = "for (const n of [1, 2, 3]) await tools.demo.add({ a: n, b: n }); let i = 0; while (i < 4) i++";
    assert_eq!(last(&run(&client, json!({"code":few})))["stats"]["iterationCount"], 7);
    let none = run(&client, json!({"code":"[1, 2, 3].map((n) => n + 1)"}));
    assert_eq!(last(&none)["stats"]["iterationCount"], 0);
}

#[test]
fn a_session_is_cancelled_in_every_way_and_its_stream_ends_with_final() {
    let (_folder, served) = start();
    let client = served.client("run");
    let (text, json_type) = (Some("text/plain"), Some("application/json"));
    let ways = [
        ("POST", "/cancel", text, r#"{"reason":"tired"}"#, ": tired"),
        ("POST", "/cancel", json_type, r#"{"payload":{"reason":"x"}}"#, ": x"),
        ("POST", "/cancel", json_type, "{nonsense", "."),
        ("POST", "/cancel", None, "", "."),
        ("DELETE", "", None, "", "."),
    ];
    for (n, (method, path, content, body, reason)) in ways.into_iter().enumerate() {
        let headers: Vec<_> = content.iter().map(|it| ("Content-Type", *it)).collect();
        let id = format!("s_cancel{n}");
        let mut lines = Lines::post(&client, &json!({"sessionId":id,"code":"await callTool('x')"}));
        lines.until("tool_call");
        let answer = client.send(method, &format!("/sessions/{id}{path}"), &headers, body);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            serde_json::from_str::<Value>(&answer.body).unwrap(),
            json!({"success":true,"sessionId":id})
        );
        let end = lines.until("final");
        let message = format!("The session was cancelled by run{reason}");
        assert_eq!(
            end["payload"]["error"],
            json!({"code":"SESSION_CANCELLED","message":message}),
            "{method} {body}"
        );
        assert_eq!(lines.next(), None);
    }
    let told = events(&client.get("/sessions/s_cancel0/stream"));
    let message = &told.last().unwrap()["payload"]["error"]["message"];
    assert_eq!(message, "The session was cancelled by run: tired", "it is in the journal");
}

#[test]
fn a_removed_session_is_forgotten_and_whoever_comes_back_is_told() {
    let (folder, served) = start();
    let client = served.client("run");
    run(&client, json!({"sessionId":"s_over","code":"console.log(1); 2"}));
    let mut lines =
        Lines::post(&client, &json!({"sessionId":"s_busy","code":"await callTool('x')"}));
    lines.until("tool_call");
    for id in ["s_over", "s_busy"] {
        let removed = client.send("DELETE", &format!("/sessions/{id}"), &[], "");
        let body: Value = serde_json::from_str(&removed.body).unwrap();
        assert_eq!((removed.status, body), (200, json!({"success":true,"sessionId":id})));
    }
    assert_eq!(lines.until("final")["payload"]["error"]["code"], "SESSION_CANCELLED");
    let check = |client: &Client| {
        for id in ["s_over", "s_busy"] {
            let said = |answer: Answer| {
                let body: Value = serde_json::from_str(&answer.body).unwrap();
                (answer.status, body["code"].as_str().unwrap_or_default().to_owned())
            };
            let (gone, missing) = ((410, "EVENTS_GONE".to_owned()), (404, "NOT_FOUND".to_owned()));
            for query in ["", "?from=1", "?from=3"] {
                assert_eq!(said(client.get(&format!("/sessions/{id}/stream{query}"))), gone);
            }
            assert_eq!(said(client.get(&format!("/sessions/{id}"))), missing);
            assert_eq!(said(client.send("DELETE", &format!("/sessions/{id}"), &[], "")), missing);
            assert_eq!(said(client.post(&format!("/sessions/{id}/cancel"), "")), missing);
        }
        let listed: Value = serde_json::from_str(&client.get("/sessions").body).unwrap();
        assert_eq!(listed, json!({"sessions":[],"total":0}));
    };
    check(&client);
    assert_eq!(served.client("admin").get("/sessions/s_over/stream").status, 404, "not theirs");
    served.stop();
    let served = Served::start(folder.path(), &[]);
    let client = served.client("run");
    check(&client);
    let again = run(&client, json!({"sessionId":"s_over","code":"3"}));
    assert_eq!(last(&again)["result"], 3, "the name is free again");
}

#[test]
fn heartbeats_come_while_a_guest_is_busy_and_thinned_where_they_are_filtered() {
    let (_folder, served) = start();
    let client = served.client("run");
    let code = "const until = 5e8; for (let i = 0; i < until; i++) {} 1";
    let body = json!({"code":code,"limits":{"heartbeatIntervalMs":100,"maxDurationMs":1000}});
    let seen = run(&client, body);
    let n_beats = kinds(&seen).iter().filter(|kind| **kind == "heartbeat").count();
    assert!(n_beats >= 2, "{n_beats}");
    let beats = seen.iter().filter(|event| event["type"] == "heartbeat");
    assert!(beats.into_iter().all(|beat| beat["seq"] == 1), "a heartbeat takes no number");
    let body = json!({"code":code,"limits":{"heartbeatIntervalMs":50,"maxDurationMs":500},"filter":{"blockedTypes":["heartbeat"]}});
    assert_eq!(kinds(&run(&client, body)), ["session_init", "error", "final"]);
}

#[test]
fn filters_belong_to_the_reader() {
    let (_folder, served) = start();
    let client = served.client("run");
    let code = "console.log('a'); console.warn('b'); 1";
    let body = json!({"sessionId":"s_f","code":code,"filter":{"types":["log"]}});
    assert_eq!(kinds(&run(&client, body)), ["session_init", "log", "final"]);
    let seen = events(
        &client.get("/sessions/s_f/stream?filter=%7B%22blockedTypes%22%3A%5B%22log%22%5D%7D"),
    );
    assert_eq!(kinds(&seen), ["session_init", "stdout", "final"]);
    assert_eq!(seen[2]["seq"], 4, "numbers stay as they are");
    let bad = client.get("/sessions/s_f/stream?filter=x");
    assert_eq!((bad.status, bad.body.contains("INVALID_FILTER")), (400, true));
}

#[test]
fn every_no_is_json_and_says_which() {
    let (_folder, served) = start();
    let client = served.client("run");
    let said = |answer: Answer| {
        let body: Value =
            serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"));
        (answer.status, body["code"].as_str().unwrap_or_default().to_owned())
    };
    let invalid = || (400, "INVALID_REQUEST".to_owned());
    for body in ["{nope", "", "[]", "{}", r#"{"code":5}"#, r#"{"code":"1","sessionId":"sess_1"}"#] {
        assert_eq!(said(client.post("/sessions", body)), invalid(), "{body}");
    }
    let required = r#"{"code":"1","encryption":{"mode":"required"}}"#;
    assert_eq!(said(client.post("/sessions", required)).1, "ENCRYPTION_HANDSHAKE_FAILED");
    let missing = || (404, "NOT_FOUND".to_owned());
    assert_eq!(said(client.get("/sessions/s_none")), missing());
    assert_eq!(said(client.get("/sessions/s_none/stream")), missing());
    assert_eq!(said(client.send("DELETE", "/sessions/s_none", &[], "")), missing());
    assert_eq!(said(client.get("/sessions/s_none/stream?from=4")), missing());
    assert_eq!(said(client.post("/sessions/s_none/tool-result", "{}")), missing());

    run(&client, json!({"sessionId":"s_mine","code":"1"}));
    let again = client.post("/sessions", r#"{"sessionId":"s_mine","code":"2"}"#);
    assert_eq!(said(again), (409, "SESSION_EXISTS".to_owned()));
    let admin = served.client("admin");
    assert_eq!(said(admin.get("/sessions/s_mine")), missing(), "names are each caller's own");
    assert_eq!(last(&run(&admin, json!({"sessionId":"s_mine","code":"3"})))["result"], 3);
    let listed: Value = serde_json::from_str(&admin.get("/sessions").body).unwrap();
    assert_eq!(listed["total"], 2, "who sees all sees all");
    let theirs =
        listed["sessions"].as_array().unwrap().iter().map(|it| it["executionId"].as_str().unwrap());
    for execution in theirs {
        assert_eq!(admin.get(&format!("/sessions/{execution}")).status, 200);
    }
    let own: Value = serde_json::from_str(&client.get("/sessions").body).unwrap();
    assert_eq!(own["total"], 1);
}

#[test]
fn refusals_have_a_code_and_a_message_also_before_the_session() {
    let (_folder, served) = start();
    let said = |answer: Answer| {
        let body: Value =
            serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"));
        let members: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert_eq!(members, ["code", "message"], "{answer:?}");
        assert!(!body["message"].as_str().unwrap().is_empty(), "{answer:?}");
        (answer.status, body["code"].as_str().unwrap().to_owned())
    };
    let nobody = served.client_with("wrong");
    for (method, path) in [
        ("GET", "/sessions"),
        ("POST", "/sessions"),
        ("POST", "/execute"),
        ("GET", "/sessions/s_a/stream"),
        ("POST", "/sessions/s_a/cancel"),
        ("GET", "/enclave/identity"),
    ] {
        let answer = nobody.send(method, path, &[], "{}");
        let asks =
            answer.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"));
        assert!(asks, "{answer:?}");
        assert_eq!(said(answer), (401, "UNAUTHORIZED".to_owned()), "{method} {path}");
    }
    let client = served.client("run");
    let evil = [("Origin", "https://evil.example")];
    assert_eq!(said(client.send("POST", "/sessions", &evil, "{}")), (403, "FORBIDDEN".to_owned()));
    let added =
        served.client("admin").post("/api/tokens", r#"{"name":"answers","scopes":["answer"]}"#);
    let added: Value = serde_json::from_str(&added.body).unwrap();
    let answers = served.client_with(added["secret"].as_str().unwrap_or_else(|| panic!("{added}")));
    assert_eq!(said(answers.post("/sessions", r#"{"code":"1"}"#)), (403, "FORBIDDEN".to_owned()));
    assert_eq!(said(client.send("PUT", "/sessions", &[], "{}")).0, 405);
    assert_eq!(said(client.get("/sessions/s_a/b/c")), (404, "NOT_FOUND".to_owned()));
}

#[test]
fn an_alias_makes_a_tool_of_the_catalogue_an_enclave_tool() {
    let (_folder, served) = start_with_tools();
    let client = served.client("run");
    let seen = run(
        &client,
        json!({"code":"return [await callTool('add', { a: 20, b: 22 }), await callTool('plus', {})]"}),
    );
    assert_eq!(last(&seen)["result"], json!([{"sum":42}, {"sum":42}]));
    let names: Vec<_> = seen
        .iter()
        .filter(|event| event["type"] == "tool_call")
        .map(|event| &event["payload"]["toolName"])
        .collect();
    assert_eq!(names, ["add", "plus"]);
    let by_address = run(&client, json!({"code":"return await tools.t.org.main.add({})"}));
    assert_eq!(
        last(&by_address)["result"],
        json!({"ok":true,"data":{"sum":42}}),
        "an address keeps its envelope"
    );

    let caught = "try { await callTool('fail', {}) } catch (e) { return [e instanceof Error, e.code, e.message] }";
    let seen = run(&client, json!({"code":caught}));
    assert_eq!(last(&seen)["result"], json!([true, "E_CUSTOM", "kaput"]));
    let applied = |seen: &[Value]| {
        let found = seen.iter().find(|event| event["type"] == "tool_result_applied");
        found.unwrap()["payload"]["ok"].clone()
    };
    assert_eq!(applied(&seen), false);
    let seen = run(&client, json!({"code":"await callTool('fail', {})"}));
    let end = last(&seen);
    assert_eq!(
        (&end["ok"], &end["error"]["code"], &end["error"]["message"]),
        (&json!(false), &json!("E_CUSTOM"), &json!("kaput"))
    );
    assert_eq!(applied(&seen), false);
}

#[test]
fn a_tool_whose_secret_is_missing_fails_with_the_catalogues_code() {
    let (_folder, served) = start_with_tools();
    let client = served.client("run");
    let seen = run(&client, json!({"code":"await callTool('locked', {})"}));
    let end = last(&seen);
    assert_eq!(
        (&end["ok"], &end["error"]["code"]),
        (&json!(false), &json!("connection_value_missing")),
        "{end}"
    );
}

#[test]
fn a_tool_that_no_one_has_fails_at_once_and_is_named() {
    let (_folder, served) = start_with_tools();
    let client = served.client("run");
    for tool in ["nope", "nope.of.all", "gone"] {
        let body = json!({"code":format!("await callTool('{tool}', {{}})")});
        let seen = run(&client, body);
        let error = &last(&seen)["error"];
        assert_eq!(error["code"], "UNKNOWN_TOOL", "{tool}: {error}");
        let message = error["message"].as_str().unwrap();
        let address = if tool == "gone" { "t.org.main.gone" } else { tool };
        assert!(message.starts_with(&format!("Unknown tool: {address}.")), "{message}");
    }
    let caught =
        run(&client, json!({"code":"try { await callTool('nope') } catch (e) { return e.code }"}));
    assert_eq!(last(&caught)["result"], "UNKNOWN_TOOL");
    assert_eq!(kinds(&caught), ["session_init", "tool_call", "tool_result_applied", "final"]);
    for tools in [json!(["nope"]), json!(["*"])] {
        let body = json!({"sessionId":format!("s_{}", tools[0].as_str().unwrap().len()),"code":"return await callTool('nope', {})","tools":tools});
        let mut lines = Lines::post(&client, &body);
        let call = lines.until("tool_call");
        let path = format!("/sessions/{}/tool-result", body["sessionId"].as_str().unwrap());
        let result = json!({"callId":call["payload"]["callId"],"result":7}).to_string();
        assert_eq!(client.post(&path, &result).status, 200, "the caller runs what it names");
        assert_eq!(lines.until("final")["payload"]["result"], 7);
    }
}

#[test]
fn the_deadline_of_a_tool_has_one_code_whether_the_program_catches_it_or_not() {
    let (_folder, served) = start_with_tools();
    let client = served.client("run");
    let limits = json!({"perToolDeadlineMs":100});
    for call in ["callTool('sleep', { ms: 60000 })", "tools.mine()"] {
        let body = |code: String| json!({"code":code,"limits":limits,"tools":["mine"]});
        let seen =
            run(&client, body(format!("try {{ await {call} }} catch (e) {{ return e.code }}")));
        let caught = last(&seen)["result"].clone();
        let seen = run(&client, body(format!("await {call}")));
        let error = &last(&seen)["error"];
        assert_eq!((&caught, &error["code"]), (&json!("TOOL_TIMEOUT"), &json!("TOOL_TIMEOUT")));
        let tool = if call.contains("sleep") { "sleep" } else { "mine" };
        assert!(error["message"].as_str().unwrap().contains(tool), "{error}");
    }
}

#[test]
fn a_stream_asks_not_to_be_cached_in_upstreams_word() {
    let (_folder, served) = start();
    let client = served.client("run");
    let header = |answer: &Answer| {
        let found =
            answer.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case("cache-control"));
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let answer = client.post("/sessions", r#"{"sessionId":"s_c","code":"1"}"#);
    assert_eq!(header(&answer), "no-cache");
    assert_eq!(header(&client.get("/sessions/s_c/stream")), "no-cache");
    assert_eq!(header(&client.get("/sessions/s_c")), "no-store", "what is no stream is not stored");
}

#[test]
fn calls_are_told_in_upstreams_phases_and_filters_match_them() {
    let (_folder, served) = start();
    let client = served.client("run");
    let filter = json!({"mode":"include","rules":[{"types":["tool_progress"],"content":{"patterns":[{"type":"exact","pattern":"processing","field":"payload.phase"}]}}]});
    let code = "await tools.demo.add({ a: 1, b: 2 })";
    let seen = run(&client, json!({"code":code,"filter":filter}));
    assert_eq!(kinds(&seen), ["session_init", "tool_progress", "final"]);
    let mut lines = Lines::post(&client, &json!({"sessionId":"s_p","code":"await callTool('x')"}));
    let phases = [lines.until("tool_progress"), lines.until("tool_progress")];
    let phases = phases.each_ref().map(|event| event["payload"]["phase"].as_str().unwrap());
    assert_eq!(phases, ["connecting", "processing"], "also of what the caller runs");
    client.post("/sessions/s_p/cancel", "");
}

#[test]
fn a_loop_goes_round_as_often_as_the_session_asks_for_and_no_oftener() {
    let (_folder, served) = start();
    let client = served.client("run");
    let limited = |code: &str| run(&client, json!({"code":code,"limits":{"maxIterations":10_000}}));
    let over =
        limited("let s = 0; try { for (let i = 0; i < 10001; i++) { s++ } } catch {} return s");
    let error = &last(&over)["error"];
    let (code, reason) = (&error["code"], &error["reason"]);
    assert_eq!((code, reason), (&json!("DOUBLE_VM_EXECUTION_ERROR"), &json!("MAX_ITERATIONS")));
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with(
            "Maximum iteration limit exceeded (10000). This limit prevents infinite loops."
        ),
        "{message}"
    );
    assert_eq!(over[0]["payload"]["limits"]["maxIterations"], 10_000);
    let within = "let n = 0; for (let i = 0; i < 200; i++) for (let j = 0; j < 200; j++) n++; n";
    assert_eq!(last(&limited(within))["result"], 40_000, "the limit is each loop's");
    let free = run(&client, json!({"code":"let s = 0; for (let i = 0; i < 10001; i++) { s++ } s"}));
    assert_eq!(last(&free)["result"], 10_001, "a session that does not ask has no such limit");
}

#[test]
fn messages_that_clients_match_on_begin_with_upstreams_words() {
    let (_folder, served) = start();
    let client = served.client("run");
    let ended = |body: Value| {
        let seen = run(&client, body);
        let error = last(&seen)["error"].clone();
        (error["code"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
    };
    let (code, message) = ended(json!({"code":"return ("}));
    assert_eq!(code, "SYNTAX_ERROR");
    assert!(message.starts_with("Failed to parse AgentScript code: "), "{message}");
    let calls = "for (const n of [1, 2, 3]) await tools.demo.add({ a: n, b: n })";
    let (code, message) = ended(json!({"code":calls,"limits":{"maxToolCalls":2}}));
    assert_eq!(code, "MAX_TOOL_CALLS");
    let words =
        "Maximum tool call limit exceeded (2). This limit prevents runaway script execution.";
    assert!(message.starts_with(words), "{message}");
}

/// The number of sessions that wait for their caller concurrently; the soak requests more.
fn n_waiting() -> usize {
    if std::env::var_os("AIRLOCK_SOAK").is_some() { 2_000 } else { 40 }
}

#[test]
fn sessions_that_wait_for_their_caller_go_on_however_many_they_are() {
    let (_folder, served) = start();
    let client = served.client("run");
    let mut waiting: Vec<(String, Lines, Value)> = (0..n_waiting())
        .map(|n| {
            let id = format!("s_wait{n}");
            let code = "const a = await callTool('x', { n: 1 }); const b = await callTool('y', a); return [a, b]";
            let mut lines = Lines::post(&client, &json!({"sessionId":id,"code":code}));
            let call = lines.until("tool_call");
            (id, lines, call)
        })
        .collect();
    let answer = |id: &str, call: &Value, result: Value| {
        let body = json!({"callId":call["payload"]["callId"],"result":result}).to_string();
        let told = client.post(&format!("/sessions/{id}/tool-result"), &body);
        let journal = || client.get(&format!("/sessions/{id}/stream")).body;
        assert_eq!(told.status, 200, "{told:?}\n{}", journal());
    };
    for (id, lines, call) in &mut waiting {
        answer(id, call, json!(1));
        *call = lines.until("tool_call");
    }
    for (id, lines, call) in &mut waiting {
        answer(id, call, json!(2));
        let end = lines.until("final");
        // Only the journal of a failed session shows the reason.
        let journal = || client.get(&format!("/sessions/{id}/stream")).body;
        assert_eq!(end["payload"]["result"], json!([1, 2]), "{}", journal());
    }
}

#[test]
fn a_browser_may_ask_first_and_authenticate() {
    let (_folder, served) = start();
    let client = served.client("run");
    let origin = served.url.clone();
    let headers = [("Origin", origin.as_str()), ("Access-Control-Request-Method", "POST")];
    let answer = client.send("OPTIONS", "/sessions", &headers, "");
    let header = |name: &str| {
        let found = answer.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert_eq!(answer.status, 204);
    assert!(header("access-control-allow-headers").contains("Authorization"));
    assert!(header("access-control-allow-methods").contains("DELETE"));
    assert_eq!(header("access-control-allow-origin"), origin);
}

#[test]
fn a_session_goes_on_through_a_disconnect_and_ends_when_nobody_comes_back() {
    let (_folder, served) = start();
    let client = served.client("run");
    let mut lines =
        Lines::post(&client, &json!({"sessionId":"s_back","code":"[await callTool('x'), 1]"}));
    let call = lines.until("tool_call");
    drop(lines);
    let mut lines = Lines::open(&client, "GET", "/sessions/s_back/stream?from=2", "");
    assert_eq!(lines.next().unwrap(), call, "what was heard is not heard again, what was not is");
    let body = json!({"callId":call["payload"]["callId"],"result":7});
    assert_eq!(client.post("/sessions/s_back/tool-result", &body.to_string()).status, 200);
    assert_eq!(lines.until("final")["payload"]["result"], json!([7, 1]));

    let body = json!({"sessionId":"s_left","code":"await callTool('x')","limits":{"graceMs":200}});
    let mut lines = Lines::post(&client, &body);
    lines.until("tool_call");
    drop(lines);
    loop {
        let shown: Value = serde_json::from_str(&client.get("/sessions/s_left").body).unwrap();
        if shown["state"] == "failed" {
            break;
        }
        std::thread::yield_now();
    }
    let seen = events(&client.get("/sessions/s_left/stream"));
    assert_eq!(last(&seen)["error"]["code"], "CLIENT_DISCONNECTED");
}

#[test]
fn a_session_survives_a_restart_and_the_broken_stream_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    for kill in [false, true] {
        let id = format!("s_restart_{kill}");
        let served = Served::start(folder.path(), &[]);
        let client = served.client("run");
        let mut lines = Lines::post(
            &client,
            &json!({"sessionId":id,"code":"console.log('x'); [await callTool('x'), 2]"}),
        );
        let call = lines.until("tool_call");
        if kill {
            served.kill();
        } else {
            served.signal("-TERM");
        }
        // The stream is broken, not closed: a body that ends properly ends with a chunk of size 0.
        let mut rest = String::new();
        loop {
            let mut line = String::new();
            match lines.0.read_line(&mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => rest.push_str(&line),
            }
        }
        assert!(!rest.contains("\r\n0\r\n") && !rest.starts_with("0\r\n"), "{rest:?}");
        drop(lines);

        let served = loop {
            // The previous server may need a moment to exit.
            if let Ok(served) = std::panic::catch_unwind(|| Served::start(folder.path(), &[])) {
                break served;
            }
        };
        let client = served.client("run");
        let mut lines = Lines::open(&client, "GET", &format!("/sessions/{id}/stream?from=3"), "");
        assert_eq!(lines.next().unwrap(), call, "the same event under the same number");
        let body = json!({"callId":call["payload"]["callId"],"result":1});
        assert_eq!(
            client.post(&format!("/sessions/{id}/tool-result"), &body.to_string()).status,
            200
        );
        assert_eq!(lines.until("final")["payload"]["result"], json!([1, 2]));
        last(&events(&client.get(&format!("/sessions/{id}/stream"))));
        served.stop();
    }
}

#[test]
fn names_for_tools_stand_in_the_configuration_and_changed_tools_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("airlock.toml");
    let configure = |text: &str| {
        let new = folder.path().join("new.toml");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, &file).unwrap();
    };
    configure("[enclave.tools]\nsum = 'demo.add'\n\"math:plus\" = 'demo.add'\n");
    let config = ["--config", file.to_str().unwrap(), "--enclave-tool", "plus=demo.add"];
    let served = Served::start(&folder.path().join("data"), &config);
    let client = served.client("run");
    let all = "[await callTool('sum', { a: 1, b: 1 }), await callTool('math:plus', { a: 1, b: 2 }),
        await tools.plus({ a: 2, b: 2 })]";
    assert_eq!(last(&run(&client, json!({"code":all})))["result"], json!([2, 3, 4]));

    let body = json!({"sessionId":"s_told","code":"await callTool('x')","tools":["x"],"limits":{"heartbeatIntervalMs":20}});
    let mut lines = Lines::post(&client, &body);
    lines.until("tool_call");
    let shy = json!({"sessionId":"s_shy","code":"await callTool('x')","tools":["x"],"limits":{"heartbeatIntervalMs":0}});
    let mut shy = Lines::post(&client, &shy);
    shy.until("tool_call");
    let policy = r#"{"owner":"org","pattern":"words.*.*.secret","action":"block"}"#;
    assert_eq!(served.client("admin").post("/api/policies", policy).status, 200);
    configure(
        "[enclave.tools]\nother = 'demo.add'\n[sources.words.tools.say]\nargv = ['echo', 'hi']\n\
         [sources.words.tools.secret]\nargv = ['echo', 'hush']\n",
    );
    for lines in [&mut lines, &mut shy] {
        let changed = lines.until("catalog_changed");
        assert_eq!(changed["seq"], 4, "it takes no number");
        let payload = &changed["payload"];
        let named = (&payload["addedActions"], &payload["removedActions"]);
        assert_eq!(named, (&json!(["words.org.main.say"]), &json!([])));
        assert!(!payload["version"].as_str().unwrap().is_empty());
    }
    let seen = run(
        &client,
        json!({"code":"[await callTool('other', { a: 4, b: 1 }), await callTool('sum')]","tools":[]}),
    );
    assert_eq!(last(&seen)["error"]["code"], "UNKNOWN_TOOL", "the old name is gone: {seen:#?}");
    configure("[enclave.tools]\nother = 'demo..add'\n");
    configure("[enclave.tools]\nother = 'demo..add'\n# still wrong\n");
    let kept = run(&client, json!({"code":"await callTool('other', { a: 4, b: 1 })"}));
    assert_eq!(last(&kept)["result"], 5, "a file with a mistake changes nothing");
    for id in ["s_told", "s_shy"] {
        client.post(&format!("/sessions/{id}/cancel"), "");
    }
    assert_eq!(lines.until("final")["payload"]["error"]["code"], "SESSION_CANCELLED");
}
