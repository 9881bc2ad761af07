//! Requests that were recorded with the upstream server, sent to ours: the answers are the same, except where ours are
//! better. The real client runs too, where npm can install it.

use crate::server_fixture::Served;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Cases whose answer deliberately differs: the status, and the code of a refusal or the types of the events.
const BETTER: &[(&str, u16, &[&str])] = &[
    // Errors are JSON with a code, also for requests that never reach upstream's handler.
    ("bad-json", 400, &["INVALID_REQUEST"]),
    ("cancel-route", 404, &["NOT_FOUND"]),
    ("tool-result-route", 404, &["NOT_FOUND"]),
    // A mistake of the caller is not reported as a fault of the server.
    ("config-garbage", 400, &["INVALID_REQUEST"]),
    // An id is valid once, and must be one that the client does not drop.
    ("dup-id", 409, &["SESSION_EXISTS"]),
    ("id-number", 400, &["INVALID_REQUEST"]),
    ("id-without-prefix", 400, &["INVALID_REQUEST"]),
    // Data that must be sealed is never sent in clear.
    ("encryption-required-ignored-", 400, &["ENCRYPTION_HANDSHAKE_FAILED"]),
    // Both names of the route and any content type are accepted.
    ("execute", 200, &["session_init", "final"]),
    ("text-plain", 200, &["session_init", "final"]),
    // Filters: the last event is always delivered, the seed's dialect is understood, invalid filters are refused.
    ("filter-alwaysAllow-", 200, &["session_init", "final"]),
    ("filter-invalid-regex", 400, &["INVALID_FILTER"]),
    ("filter-unknown-mode", 400, &["INVALID_FILTER"]),
    (
        "filter-seed-blockedTypes",
        200,
        &[
            "session_init",
            "tool_call",
            "tool_progress",
            "tool_progress",
            "tool_result_applied",
            "final",
        ],
    ),
    ("filter-seed-types", 200, &["session_init", "final"]),
    ("replay-seed-filter", 200, &["session_init", "final"]),
    // `from` and `Last-Event-ID` are honoured, and a position past the end still receives the last event.
    ("replay-from-2", 200, &["final"]),
    ("replay-Last-Event-ID-1", 200, &["final"]),
    ("replay-fromSeq-99", 200, &["final"]),
    // Limits are enforced.
    (
        "maxExecutionMs-200-vs-1-2s-work",
        200,
        &["session_init", "tool_call", "tool_progress", "tool_progress", "error", "final"],
    ),
    (
        "maxToolCalls-2",
        200,
        &[
            "session_init",
            "tool_call",
            "tool_progress",
            "tool_progress",
            "tool_result_applied",
            "tool_call",
            "tool_progress",
            "tool_progress",
            "tool_result_applied",
            "error",
            "final",
        ],
    ),
    ("put-sessions", 405, &["METHOD_NOT_ALLOWED"]),
    // Pages of other origins may not call; those of the server's own names may.
    ("options-cancel", 403, &["FORBIDDEN"]),
    ("options-sessions", 403, &["FORBIDDEN"]),
];

/// Parts of longer conversations, which `enclave.rs` covers.
const ELSEWHERE: &[&str] = &[
    "delete-running",
    "stream-of-deleted",
    "primary-with-two-readers",
    "second-reader-full",
    "second-reader-that-leaves",
    "resume-after-disconnect-fromSeq-5",
    "state-after-POST-client-disconnect",
    "get-finished",
];

#[test]
fn recorded_requests_are_answered_as_recorded_or_better() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(
        folder.path(),
        &["--enclave-tool", "add=demo.add", "--enclave-tool", "wait=demo.sleep"],
    );
    let client = served.client("run");
    let recorded = include_str!("../../../tests/conformance/enclave/http.jsonl");
    let (mut n_same, mut n_better, mut wrong) = (0, 0, vec![]);
    for line in recorded.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| record[name].as_str().unwrap_or_default();
        let name = text("name");
        if ELSEWHERE.contains(&name) {
            continue;
        }
        let headers: Vec<(&str, &str)> = record["headers"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        let answer = client.send(text("method"), text("path"), &headers, text("body"));
        let told = told(&answer.body);
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        let better = BETTER.iter().find(|(better, ..)| *better == name);
        let (status, expected) = match better {
            Some((_, status, expected)) => (*status, expected.to_vec()),
            None => {
                (u16::try_from(record["status"].as_u64().unwrap()).unwrap(), as_recorded(&record))
            }
        };
        *if better.is_some() { &mut n_better } else { &mut n_same } += 1;
        // If upstream's answer has nothing to compare, the status is compared.
        if answer.status != status
            || (told != expected && !(better.is_none() && expected.is_empty()))
        {
            wrong.push(format!("{name}: {status} {expected:?}, not {} {told:?}", answer.status));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(n_better, BETTER.len(), "each of these was recorded");
    assert!(n_same >= 25, "{n_same}");
}

/// The types of the events, or the code of a refusal.
fn told(body: &str) -> Vec<String> {
    let lines: Vec<Value> = body.lines().flat_map(serde_json::from_str).collect();
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let types: Vec<String> = lines
        .iter()
        .filter_map(|line| word(&line["type"]))
        .filter(|it| it != "heartbeat")
        .collect();
    if types.is_empty() {
        lines.iter().filter_map(|line| word(&line["code"])).collect()
    } else {
        types
    }
}

fn as_recorded(record: &Value) -> Vec<&str> {
    let events = record["events"].as_array().into_iter().flatten();
    let types: Vec<_> = events
        .filter_map(|event| event["type"].as_str())
        .filter(|kind| *kind != "heartbeat")
        .collect();
    if types.is_empty() { record["answer"]["code"].as_str().into_iter().collect() } else { types }
}

/// The name under which upstream publishes its client.
const CLIENT: &str = "@enclave-vm/client";

#[test]
fn the_real_client_runs_a_program() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("enclave-node");
    if let Err(why) = install(&folder) {
        // Bypasses the capture of passing tests' output: a skipped check must not look like a passed one.
        let said = format!("SKIPPED, NOT PASSED: npm does not install {CLIENT}: {why}\n");
        std::io::stderr().write_all(said.as_bytes()).unwrap();
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &["--enclave-tool", "add=demo.add"]);
    let script = format!(
        "import {{ EnclaveClient }} from '{CLIENT}';
         const client = new EnclaveClient({{ baseUrl: process.argv[2], headers: {{ Authorization: `Bearer ${{process.argv[3]}}` }} }});
         const ended = await client.execute('console.log(1); return await callTool(\"add\", {{ a: 40, b: 2 }})');
         console.log(JSON.stringify(ended));"
    );
    std::fs::write(folder.join("run.mjs"), script).unwrap();
    let secret = served.client("run").secret;
    let output = command("node")
        .arg(folder.join("run.mjs"))
        .args([&served.url, &secret])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let ended: Value = serde_json::from_slice(&output.stdout).unwrap();
    let result = [&ended["value"], &ended["result"], &ended["payload"]["result"], &ended];
    assert!(result.contains(&&json!(42)), "{ended}");
}

fn install(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    if folder.join("node_modules").join(CLIENT).is_dir() {
        return Ok(());
    }
    let installing = command("npm")
        .args(["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(folder)
        .arg(CLIENT)
        .current_dir(folder)
        .output()
        .map_err(|error| format!("npm does not start: {error}"))?;
    let said = String::from_utf8_lossy(&installing.stderr);
    let why = said.lines().find(|line| line.contains("error"));
    let first = why.unwrap_or("it does not say why").to_owned();
    if installing.status.success() { Ok(()) } else { Err(first) }
}

#[expect(clippy::disallowed_methods, reason = "the test owns and awaits this child")]
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}
