//! The short way into the MCP door, beside rmcp's: whoever takes it must not be able to tell, but by the order of members.
#![expect(clippy::unwrap_used, reason = "tests")]

mod served;

use serde_json::{Value, json};
use served::{Answer, Client, Served, wait_for};
use std::io::Write as _;

const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");
const KIND: (&str, &str) = ("Content-Type", "application/json");

fn message(params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params }).to_string()
}

fn called(client: &Client, path: &str, version: Option<&str>, params: &Value) -> Answer {
    let version = version.map(|version| ("MCP-Protocol-Version", version));
    let headers: Vec<_> = [ACCEPT, KIND].into_iter().chain(version).collect();
    client.send("POST", path, &headers, &message(params))
}

/// The same call, which goes rmcp's way because it wishes for something, if only for nothing.
fn wishing(params: &Value) -> Value {
    let mut wishing = params.clone();
    wishing["_meta"] = json!({});
    wishing
}

/// What is new each time.
fn without_ids(text: &str) -> String {
    let mut said = text.to_owned();
    for begin in ["exec_", "run_"] {
        while let Some(at) = said.find(begin) {
            let end = said[at + begin.len()..].find(|c: char| !(c.is_ascii_hexdigit() || c == '-'));
            let end = at + begin.len() + end.unwrap();
            said.replace_range(at..end, "<id>");
        }
    }
    said
}

#[test]
fn both_ways_say_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let client = served.client("run");
    let execute = |code: &str| json!({ "name": "execute", "arguments": { "code": code } });
    let calls = [
        execute("return { a: [1, 'ä'] }"),
        execute("console.log('hello'); emit({ type: 'text', text: 'hi' }); return 1"),
        execute("throw new TypeError('no')"),
        execute("return 'x'.repeat(100_000)"),
        execute("return '\\ud800'"),
        execute("let deep = []; for (let i = 0; i < 200; i++) deep = [deep]; return deep"),
        execute("return undefined"),
        execute("return ("),
        execute("return await tools.demo.append({ line: 'x' })"),
        execute(" "),
        json!({ "name": "execute" }),
        json!({ "name": "execute", "arguments": { "code": 7 } }),
        json!({ "name": "resume", "arguments": { "executionId": "nobody", "action": "accept" } }),
        json!({ "name": "skills" }),
        json!({ "name": "skills", "arguments": { "name": "nonsense" } }),
        json!({ "name": "nonsense", "arguments": {} }),
        json!({ "name": "demo_add", "arguments": { "a": 1, "b": 2 } }),
    ];
    let paths = ["/mcp", "/mcp?elicitation_mode=browser", "/mcp?tools=direct", "/mcp?wait=5000"];
    for (path, version) in paths.iter().zip([Some("2025-11-25"), Some("2025-06-18"), None, None]) {
        for call in &calls {
            let short = called(&client, path, version, call);
            let long = called(&client, path, version, &wishing(call));
            let told = |answer: &Answer| {
                let kind = answer.header("content-type").unwrap_or_default().to_owned();
                (answer.status, kind, without_ids(&answer.body))
            };
            assert_eq!(told(&short), told(&long), "{path} {call}");
        }
    }
    served.stop();
}

#[test]
fn members_of_a_value_keep_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let client = served.client("run");
    let call = json!({ "name": "execute", "arguments": { "code": "return { z: 1.5, a: 'b' }" } });
    let short = called(&client, "/mcp", None, &call);
    assert!(short.body.contains(r#""result":{"z":1.5,"a":"b"}"#), "{}", short.body);
    let long = called(&client, "/mcp", None, &wishing(&call));
    let value =
        |answer: &Answer| serde_json::from_str::<Value>(&without_ids(&answer.body)).unwrap();
    assert_eq!(value(&short), value(&long));
    served.stop();
}

#[test]
fn a_program_goes_on_and_is_counted_when_its_client_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let (client, admin) = (served.client("run"), served.client("admin"));
    let code = "await tools.demo.sleep({ ms: 300 }); return 'it went on'";
    let body = message(&json!({ "name": "execute", "arguments": { "code": code } }));
    let mut leaving = client.connect();
    leaving.write_all(client.head("POST", "/mcp", &[ACCEPT, KIND], body.len()).as_bytes()).unwrap();
    leaving.write_all(body.as_bytes()).unwrap();
    let running = || client.get("/api/executions").json()["executions"][0].clone();
    let execution = wait_for(|| running()["executionId"].as_str().map(str::to_owned));
    drop(leaving);
    let path = format!("/api/executions/{execution}");
    let over = wait_for(|| Some(client.get(&path).json()).filter(|it| it["status"] == "completed"));
    assert_eq!(over["structured"]["result"], "it went on");
    let ended = "airlock_executions_finished_total{outcome=\"completed\"} 1";
    wait_for(|| admin.get("/metrics").body.contains(ended).then_some(()));
    served.stop();
}
