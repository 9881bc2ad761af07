//! The error that the clients of each protocol receive for a call whose source is not available.

use crate::repl_client::{self, Spoken};
use crate::server_fixture::{Client, wait_for};
use crate::source_fixture::House;
use serde_json::{Value, json};

/// The result of the call, as each protocol passes it to programs.
const CALL: &str = "await tools.shell.org.main.read({})";

/// An MCP server of a few lines of shell. Its only tool reads.
const SCRIPT: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}\n' "$id" ;;
  esac
done
"#;

/// A server whose source is described and does not start. Calls wait for it only a moment.
fn dead_source() -> House {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.sh");
    std::fs::write(&script, SCRIPT).unwrap();
    let config = format!("[sources.shell]\ncommand = {}\n", json!(["/bin/sh", script]));
    let house = House::with_args(&config, &["--source-wait", "50ms"]);
    house.ready("shell");
    let house = house.again_after(|_| std::fs::write(&script, "exit 1\n").unwrap());
    wait_for(|| house.source("shell").filter(|source| !source["trouble"].is_null()));
    house
}

#[track_caller]
fn is_unavailable(error: &Value) {
    assert_eq!(error["code"], "source_unavailable", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("shell"), "{message}");
}

fn mcp_call(client: &Client, code: &str) -> Value {
    let params = json!({ "name": "execute", "arguments": { "code": code } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let kind = ("Content-Type", "application/json");
    let accept = ("Accept", "application/json, text/event-stream");
    let answer = client.send("POST", "/mcp", &[kind, accept], &call.to_string());
    answer.json()["result"].clone()
}

#[tokio::test]
async fn each_protocol_reports_a_call_of_an_unavailable_source_with_the_same_code() {
    let house = dead_source();
    let client = house.served.client("run");
    let code = format!("return {CALL}");
    let over_http = client.execute(&code).result();
    is_unavailable(&over_http["error"]);

    let over_mcp = mcp_call(&client, &code);
    assert_eq!(over_mcp["structuredContent"]["result"], over_http, "{over_mcp}");

    let body = json!({ "code": CALL }).to_string();
    let told = client.post("/sessions", &body).body;
    let last: Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
    assert_eq!(last["payload"]["result"], over_http, "{told}");

    let file = house.served.data_dir.join("tokens/run");
    let token = std::fs::read_to_string(file).unwrap();
    let mut repl = Spoken::connect(&repl_client::repl_url(&house.served), token.trim()).await;
    assert_eq!(repl.value(CALL).await, over_http);
}

#[test]
fn a_source_that_was_never_described_is_not_taken_for_a_tool_of_the_caller() {
    let config = format!("[sources.shell]\ncommand = {}\n", json!(["/bin/sh", "-c", "exit 1"]));
    let house = House::with_args(&config, &["--source-wait", "50ms"]);
    wait_for(|| house.source("shell").filter(|source| !source["trouble"].is_null()));
    let body = json!({ "code": CALL }).to_string();
    let told = house.served.client("run").post("/sessions", &body).body;
    let last: Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
    is_unavailable(&last["payload"]["result"]["error"]);
}
