//! The doors: each runs a program, reads the whole answer, and reports in one vocabulary how the program ended.

use super::repl_door::ReplDoor;
use super::server::Target;
use super::{Attack, Outcome};
use crate::execbox_fixture::Host;
use crate::server_fixture::{Answer, Client};
use serde_json::{Value, json};

/// An interface that runs programs.
pub(crate) trait Door {
    /// Runs a program. Returns how it ended and every byte that its caller received.
    fn run(&mut self, code: &str, limit: TimeLimit) -> (Outcome, String);
}

/// The time limit of a program, where the caller can set one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimeLimit {
    /// For programs that must exceed it.
    Short,
    /// For all other programs. They exceed it only on a machine under load.
    Long,
}

impl TimeLimit {
    pub(crate) fn of(attack: &Attack) -> Self {
        if attack.expect.is_timeout() { Self::Short } else { Self::Long }
    }

    pub(super) const fn ms(self) -> u64 {
        match self {
            Self::Short => 150,
            Self::Long => 20_000,
        }
    }
}

/// Opens a door of the server, or starts an execbox runner.
pub(crate) fn open_door(name: &str, lane: usize, target: &Target) -> Box<dyn Door> {
    if name == "execbox" {
        return Box::new(ExecboxDoor::start());
    }
    // Each lane has its own caller, so that the caller's newest execution is that of the last program.
    let client = target.caller(&format!("{name}-{lane}"));
    match name {
        "executor" => Box::new(ExecutorDoor(client)),
        "mcp" => Box::new(McpDoor(client)),
        "enclave" => Box::new(EnclaveDoor(client)),
        "hotrepl" => Box::new(ReplDoor::new(&target.served, client.secret)),
        _ => panic!("no door is called {name}"),
    }
}

/// A separate runner, started as an execbox host starts it.
struct ExecboxDoor {
    host: Host,
    n_runs: u64,
}

impl ExecboxDoor {
    fn start() -> Self {
        Self { host: Host::start(), n_runs: 0 }
    }
}

impl Door for ExecboxDoor {
    fn run(&mut self, code: &str, limit: TimeLimit) -> (Outcome, String) {
        self.n_runs += 1;
        let id = format!("attack-{}", self.n_runs);
        self.host.execute(&id, code, &json!({ "timeoutMs": limit.ms() }));
        let done = self.host.attend(&id);
        let outcome = match done["ok"].as_bool() {
            Some(true) => Outcome::Value(done["result"].clone()),
            _ => failed(&done["error"]["code"], &done["error"]["message"]),
        };
        (outcome, done.to_string())
    }
}

/// Runs programs by `POST /api/executions`.
struct ExecutorDoor(Client);

impl Door for ExecutorDoor {
    fn run(&mut self, code: &str, _: TimeLimit) -> (Outcome, String) {
        let answer = self.0.execute(code);
        let seen = answer.json();
        if answer.status != 200 {
            return (failed(&seen["_tag"], &seen["message"]), answer.body);
        }
        (ended(&self.0, &answer.execution()), answer.body)
    }
}

/// Runs programs by `tools/call execute` of `POST /mcp`.
struct McpDoor(Client);

impl Door for McpDoor {
    fn run(&mut self, code: &str, _: TimeLimit) -> (Outcome, String) {
        let params = json!({ "name": "execute", "arguments": { "code": code } });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let answer = self.0.send("POST", "/mcp", &headers, &call.to_string());
        let told = mcp_message(&answer);
        if told["error"].is_object() {
            return (failed(&json!("refused"), &told["error"]["message"]), answer.body);
        }
        // An MCP result does not name its execution, which is the caller's newest one.
        let newest = self.0.get("/api/executions?limit=1").json();
        let execution =
            newest["executions"][0]["executionId"].as_str().unwrap_or_default().to_owned();
        (ended(&self.0, &execution), answer.body)
    }
}

/// The JSON-RPC message of an answer, which may be an event of a stream.
fn mcp_message(answer: &Answer) -> Value {
    let is_answer = |message: &Value| message["id"] == 1;
    let lines = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
    let streamed = lines.filter_map(|line| serde_json::from_str(line).ok()).find(is_answer);
    streamed.unwrap_or_else(|| answer.json())
}

/// How an execution ended, by its recorded outcome. An execution that asks is cancelled.
fn ended(client: &Client, execution: &str) -> Outcome {
    let result = client.get(&format!("/api/executions/{execution}/result?wait=20000")).json();
    match result["status"].as_str() {
        Some("completed") => Outcome::Value(result["result"].clone()),
        Some("paused") => {
            client.post(&format!("/api/executions/{execution}/cancel"), "{}");
            failed(&json!("asks"), &Value::Null)
        }
        _ => failed(&result["error"]["code"], &result["error"]["message"]),
    }
}

/// Runs programs by `POST /sessions`.
struct EnclaveDoor(Client);

impl Door for EnclaveDoor {
    fn run(&mut self, code: &str, limit: TimeLimit) -> (Outcome, String) {
        // A tool that is not in the catalogue has no provider here.
        let body = json!({ "code": code, "tools": [], "limits": { "maxDurationMs": limit.ms() } });
        let answer = self.0.post("/sessions", &body.to_string());
        let last = answer.body.lines().last().unwrap_or_default();
        let event: Value = serde_json::from_str(last).unwrap_or_default();
        let end = &event["payload"];
        let outcome = match (event["type"].as_str(), end["ok"].as_bool()) {
            (Some("final"), Some(true)) => Outcome::Value(end["result"].clone()),
            _ => failed(&end["error"]["code"], &end["error"]["message"]),
        };
        (outcome, answer.body)
    }
}

/// Converts a failure of any door into the codes of `lifecycle::FailureCode`.
pub(super) fn failed(code: &Value, message: &Value) -> Outcome {
    let message = message.as_str().unwrap_or_default();
    let code = match code.as_str().unwrap_or("none") {
        // The REPL has no separate code for it.
        "runtimeException" if message.contains("bytes of memory") => "memory_limit",
        "runtime_error" | "runtimeException" | "compileError" | "EXECUTION_ERROR"
        | "SYNTAX_ERROR" => "runtime",
        "TIMEOUT" | "evalTimeout" => "timeout",
        "internal_error" | "INTERNAL_ERROR" => "internal",
        "MEMORY_LIMIT_EXCEEDED" => "memory_limit",
        "MAX_STDOUT_BYTES" => "limit_exceeded",
        "STUCK" => "stuck",
        "serialization_error" | "SERIALIZATION_ERROR" => "serialization",
        "validation_error" | "VALIDATION_ERROR" => "validation",
        "tool_error" | "TOOL_ERROR" => "tool",
        "TOOL_NOT_FOUND" => "tool_not_found",
        code => code,
    };
    Outcome::Failed { code: code.to_owned(), message: message.to_owned() }
}
