//! `airlock runner` and `/execbox` with execbox hosts.

#[path = "../../client/examples/execbox_host.rs"]
#[expect(dead_code, reason = "its main is for a shell")]
mod execbox_host;

use crate::execbox_fixture::{self, Host};
use crate::server_fixture;
use client::execbox::{
    ConnectRunner, ExecboxProgram, OneShot, PoolSize, PooledRunners, RunnerCommand, TcpRunner,
    WebSocket,
};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn conformance(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance").join(file)
}

#[expect(clippy::disallowed_methods, reason = "the tests await this child")]
fn node(words: &[&str]) -> std::io::Result<std::process::Output> {
    Command::new("node").args(words).stdin(Stdio::null()).output()
}

/// The flag that makes this node support WebSocket, which old versions need; `None` if node is not installed.
fn websocket_flag() -> Option<&'static [&'static str]> {
    let version = String::from_utf8(node(&["--version"]).ok()?.stdout).ok()?;
    let major: u32 = version.strip_prefix('v')?.split('.').next()?.parse().ok()?;
    Some(if major < 22 { &["--experimental-websocket"] } else { &[] })
}

#[tokio::test]
async fn the_example_of_a_host_does_what_it_says() {
    let runner = RunnerCommand::new(env!("CARGO_BIN_EXE_airlock")).arg("runner");
    let result = execbox_host::run(runner).await.unwrap();
    let mut result: Value = serde_json::from_str(result.as_text()).unwrap();
    result.as_object_mut().unwrap().remove("durationMs");
    let refused =
        "validation_error Invalid input for tool add: data must have required property 'b'";
    let expected = json!({ "ok": true, "logs": ["sums [11,12,13]", refused],
                           "result": { "sums": [11, 12, 13], "greeting": "Hello, Ann!" } });
    assert_eq!(result, expected);
}

/// Runs the wire check: no rule of "must" or "should" may be violated.
fn wire_check(target: &[&str]) {
    let Some(flag) = websocket_flag() else {
        #[expect(clippy::print_stderr, reason = "a skipped check must not look like a passed one")]
        {
            eprintln!("SKIPPED, NOT PASSED: the wire check needs node, and there is none");
        }
        return;
    };
    let script = conformance("execbox/wire-check.mjs");
    let output = node(&[flag, &[script.to_str().unwrap()], target].concat()).unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    let counts = report.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
    let counts = counts.unwrap_or_else(|| panic!("no verdict: {report}\n{output:?}"));
    assert_eq!(
        (&counts["must"], &counts["should"]),
        (&json!({"ok": 25, "no": 0}), &json!({"ok": 8, "no": 0})),
        "{report}"
    );
}

/// An `airlock runner` that listens. Dropping it kills it.
struct Listening {
    child: Child,
    url: String,
}

impl Listening {
    fn start(words: &[&str]) -> Self {
        Self::start_with(execbox_fixture::airlock(&["runner", "--listen"]), words)
    }

    fn start_with(mut command: Command, words: &[&str]) -> Self {
        let mut child =
            command.args(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let url = ready.trim().strip_prefix("Airlock's runner is ready at ");
        let url = url.expect("a runner that listens says where").to_owned();
        Self { child, url }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn the_wire_check_passes_over_stdio() {
    wire_check(&["--", env!("CARGO_BIN_EXE_airlock"), "runner"]);
}

#[test]
fn the_wire_check_passes_over_a_websocket_with_a_token() {
    let listening = Listening::start(&["ws://127.0.0.1:0"]);
    assert!(listening.url.contains("/?token=alk_"));
    wire_check(&["--target", &listening.url]);
}

#[test]
fn the_wire_check_passes_over_a_private_socket() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runner.sock");
    let listening = Listening::start(&[&format!("unix:{}", path.display())]);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    wire_check(&["--target", &listening.url]);
}

#[test]
fn the_wire_check_passes_over_tcp_on_loopback() {
    let listening = Listening::start(&["tcp://127.0.0.1:0"]);
    assert!(listening.url.starts_with("tcp://127.0.0.1:") && !listening.url.ends_with(":0"));
    wire_check(&["--target", &listening.url]);
}

/// The result for a host that orders this sum: the sum, or the message of the refusal.
async fn sum(at: impl ConnectRunner) -> Result<String, String> {
    let result = OneShot::new(at).execute(ExecboxProgram::new("20 + 22")).await;
    let value = result.outcome.map_err(|failure| failure.message)?;
    Ok(value.unwrap().as_text().to_owned())
}

#[tokio::test]
async fn a_tcp_runner_serves_one_host_after_another_and_several_at_once() {
    let listening = Listening::start(&["tcp://127.0.0.1:0"]);
    let at = TcpRunner::new(listening.url.strip_prefix("tcp://").unwrap());
    assert_eq!(sum(at.clone()).await.as_deref(), Ok("42"));
    let both = tokio::join!(sum(at.clone()), sum(at));
    assert_eq!(both, (Ok("42".to_owned()), Ok("42".to_owned())));
}

#[tokio::test]
async fn a_runner_that_asks_for_no_token_prints_none_and_lets_everyone_in() {
    let listening = Listening::start(&["ws://127.0.0.1:0", "--no-auth"]);
    assert!(!listening.url.contains("token"), "{}", listening.url);
    assert_eq!(sum(WebSocket::new(&listening.url)).await.as_deref(), Ok("42"));
}

#[tokio::test]
async fn a_pool_of_web_sockets_is_warmed_up_and_used_again() {
    let listening = Listening::start(&["ws://127.0.0.1:0", "--no-auth"]);
    let pool = PooledRunners::new(WebSocket::new(&listening.url), PoolSize::default());
    pool.prewarm(1).await.unwrap();
    for code in ["globalThis.left = 1", "typeof left === 'undefined' ? 1 : 2"] {
        let result = pool.execute(ExecboxProgram::new(code)).await;
        assert_eq!(result.outcome.unwrap().unwrap().as_text(), "1", "{code}");
    }
    pool.dispose().await;
}

#[tokio::test]
async fn a_token_from_the_environment_opens_the_door_and_is_not_printed() {
    const SECRET: &str = "a-secret-of-the-operators-own-0123456789";
    let mut command = execbox_fixture::airlock(&["runner", "--listen"]);
    command.env("AIRLOCK_TOKEN", SECRET);
    let listening = Listening::start_with(command, &["ws://127.0.0.1:0"]);
    let url = &listening.url;
    assert!(!url.contains("token") && !url.contains(SECRET), "{url}");
    assert_eq!(sum(WebSocket::new(url).bearer(SECRET)).await.as_deref(), Ok("42"));
    let in_address = format!("{url}/?token={SECRET}");
    assert_eq!(sum(WebSocket::new(in_address)).await.as_deref(), Ok("42"));
    for stranger in [WebSocket::new(url), WebSocket::new(url).bearer("wrong")] {
        let words = sum(stranger).await.unwrap_err();
        assert!(words.contains("401"), "{words}");
    }
}

/// How the command ends when it is asked to listen there, and its error message.
fn refused(words: &[&str]) -> (Option<i32>, String) {
    let output = execbox_fixture::airlock(&["runner", "--listen"]).args(words).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn lines_over_tcp_and_doors_without_a_token_stay_on_loopback() {
    let (code, words) = refused(&["ws://0.0.0.0:0", "--no-auth"]);
    assert!(code == Some(2) && words.contains("loopback only"), "{code:?} {words}");
    let (code, words) = refused(&["tcp://0.0.0.0:0"]);
    assert!(code == Some(2) && words.contains("loopback"), "{code:?} {words}");
}

#[test]
fn the_wire_check_passes_at_a_servers_door() {
    let folder = tempfile::tempdir().unwrap();
    let server = server_fixture::Served::start(folder.path(), &[]);
    let run = server.client("run");
    wire_check(&["--target", &format!("ws://{}/execbox?token={}", run.address, run.secret)]);
}

#[test]
fn the_door_opens_only_to_those_who_may_run_and_come_from_here() {
    let folder = tempfile::tempdir().unwrap();
    let server = server_fixture::Served::start(folder.path(), &[]);
    let run = server.client("run");
    let upgrade = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let status = |client: &server_fixture::Client, more: &[(&str, &str)]| {
        let headers: Vec<_> = upgrade.iter().chain(more).copied().collect();
        let mut stream = client.connect();
        let head = client.head("GET", "/execbox", &headers, 0);
        std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(&run, &[]), "101");
    assert_eq!(status(&run, &[("Origin", "https://evil.example")]), "403");
    assert_eq!(status(&run, &[("Host", "evil.example")]), "403");
    assert_eq!(status(&server.client_with("alk_wrong"), &[]), "401");
}

/// Whether `done` is a truthful outcome of an attack. `ends` is how it would end with unlimited time; if that takes
/// longer than its limit, it times out first.
fn is_truthful(ends: &str, done: &Value) -> bool {
    match (done["error"]["code"].as_str(), ends) {
        (None, "ok") => done["ok"] == true,
        (None, _) => false,
        (Some("timeout"), _) => true,
        // Some would succeed with enough memory.
        (Some("memory_limit"), "ok") => true,
        (Some(code), ends) => code == ends,
    }
}

/// An attack ends soon after its time limit, not after seconds of native code.
const ATTACK_MS: u64 = 300;
const LATE_MS: u64 = 3_000;

#[test]
fn every_attack_ends_on_time_with_a_truthful_code_while_a_neighbour_goes_on() {
    let attacks = std::fs::read_to_string(conformance("hostile/attacks.json")).unwrap();
    let attacks: Vec<Value> = serde_json::from_str(&attacks).unwrap();
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let neighbour = std::thread::spawn(move || {
        let host = Host::start();
        let mut n = 0;
        while is_over.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            let id = format!("n{n}");
            host.execute(&id, "(await tools.echo(1)).got + 1", &json!({"timeoutMs": 20_000}));
            assert_eq!(host.attend(&id)["result"], 2);
            n += 1;
        }
        n
    });
    let host = Host::start();
    let mut wrong = vec![];
    for attack in &attacks {
        let name = attack["name"].as_str().unwrap();
        host.execute(name, attack["code"].as_str().unwrap(), &json!({"timeoutMs": ATTACK_MS}));
        let done = host.attend(name);
        if !is_truthful(attack["ends"].as_str().unwrap(), &done)
            || done["durationMs"].as_u64().unwrap() > LATE_MS
        {
            wrong.push(format!("{name}: {done}"));
        }
    }
    drop(over);
    assert!(neighbour.join().unwrap() > attacks.len(), "the neighbour hardly got a turn");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    host.execute("after", "1 + 1", &json!({}));
    assert_eq!(host.attend("after")["result"], 2);
}

/// Native code that never checks for interruption.
const NEVER_YIELDS: &str = "[].sort.call({ length: 2 ** 53 - 1 })";

/// Far longer than any test waits.
const LONG: &str = r#"{"timeoutMs": 3600000}"#;

fn long() -> Value {
    serde_json::from_str(LONG).unwrap()
}

#[test]
fn cancel_ends_native_code_that_never_yields_and_the_channel_goes_on() {
    let host = Host::start();
    for (id, code) in [("a", NEVER_YIELDS), ("b", "for (;;) {}")] {
        host.execute(id, code, &long());
        assert_eq!(host.next(), json!({"type": "started", "id": id}));
        host.send(&json!({"type": "cancel", "id": id}));
        let done = host.next();
        let expected = json!({"code": "timeout", "message": "Execution timed out"});
        assert_eq!(
            (&done["id"], &done["ok"], &done["error"]),
            (&json!(id), &json!(false), &expected)
        );
    }
    host.execute("c", "1 + 1", &json!({}));
    assert_eq!(host.attend("c")["result"], 2);
}

#[test]
fn nothing_that_follows_a_cancel_overrides_it() {
    let host = Host::start();
    host.execute("a", "try { await tools.hang({}) } catch (e) {} 'survived'", &long());
    let call = host.until("tool_call");
    host.send(&json!({"type": "cancel", "id": "a"}));
    let error = json!({"code": "tool_error", "message": "aborted"});
    let call_id = &call["callId"];
    host.send(&json!({"type": "tool_result", "callId": call_id, "ok": false, "error": error}));
    assert_eq!(host.until("done")["error"]["code"], "timeout");
}

#[test]
fn the_time_a_tool_takes_counts() {
    let host = Host::start();
    host.execute("a", "await tools.hang({})", &json!({"timeoutMs": 50}));
    assert_eq!(host.attend("a")["error"]["code"], "timeout");
}

#[test]
fn a_host_that_asks_for_it_runs_several_programs_on_one_channel() {
    let host = Host::start();
    let options = json!({"timeoutMs": 20_000, "multiplex": true});
    host.execute("a", "await tools.hang('a')", &options);
    let a = host.until("tool_call");
    host.execute("b", "await tools.hang('b')", &options);
    let b = host.until("tool_call");
    // An id that is in use, and a host that omits a required member, are refused.
    host.execute("a", "1", &options);
    host.execute("c", "1", &json!({}));
    for id in ["a", "c"] {
        let refused = host.next();
        let code = &refused["error"]["code"];
        assert_eq!(
            (&refused["id"], &refused["durationMs"], code),
            (&json!(id), &json!(0), &json!("internal_error"))
        );
    }
    // A program that never yields does not block the others.
    host.execute("d", NEVER_YIELDS, &options);
    for (call, id) in [(b, "b"), (a, "a")] {
        host.send(
            &json!({"type": "tool_result", "callId": call["callId"], "ok": true, "result": id}),
        );
        let done = host.until("done");
        assert_eq!((&done["id"], &done["result"]), (&json!(id), &json!(id)));
    }
    host.send(&json!({"type": "cancel", "id": "d"}));
    assert_eq!(host.until("done")["error"]["code"], "timeout");
}

#[test]
fn a_channel_refuses_more_programs_at_a_time_than_the_page_says() {
    let page = include_str!("../../../docs/execbox.md");
    let (_, limit) = page.split_once("may run beside others, ").unwrap();
    let limit: usize = limit.split(' ').next().unwrap().parse().unwrap();
    let host = Host::start();
    let options = json!({"timeoutMs": 3_600_000, "multiplex": true});
    for n in 0..=limit {
        host.execute(&n.to_string(), "await tools.hang()", &options);
    }
    // The earlier ones have started or wait for memory; none has ended.
    let refused = host.until("done");
    assert_eq!(refused["id"], limit.to_string(), "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("at most {limit} executions")), "{refused}");
}

/// Enough memory for guests that hold several copies of a large message.
fn roomy() -> Value {
    json!({"timeoutMs": 60_000, "memoryLimitBytes": 1_u64 << 30})
}

#[test]
fn messages_of_twenty_megabytes_pass_in_all_four_directions() {
    let host = Host::start();
    // A call, its result and the end of the program; `raw` returns its argument.
    host.execute("a", "(await tools.raw('x'.repeat(20 << 20))) + 'y'", &roomy());
    let done = host.attend("a");
    assert_eq!(done["result"].as_str().map(str::len), Some((20 << 20) + 1), "{}", done["error"]);
    // And an order for a program.
    let types = " ".repeat(20 << 20);
    let providers = json!([{"name": "tools", "tools": {}, "types": types}]);
    let options = json!({"timeoutMs": 5_000, "memoryLimitBytes": 64 << 20, "maxLogChars": 1, "maxLogLines": 1});
    host.send(&json!({"type": "execute", "id": "b", "code": "1 + 1", "options": options, "providers": providers}));
    assert_eq!(host.attend("b")["result"], 2);
}

#[test]
fn a_message_over_64_mebibytes_is_refused_with_an_error_that_names_the_size() {
    let host = Host::start();
    let names_size = |message: &Value, size: &str| {
        assert!(message.as_str().unwrap_or_default().contains(size), "{message}");
    };
    let much = " ".repeat((64 << 20) + 1);
    host.send_line(&format!(r#"{{"type":"execute","id":"big","code":"{much}"}}"#));
    let refused = host.until("done");
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!("big"), &json!("internal_error"))
    );
    names_size(&refused["error"]["message"], "67108864 bytes");

    let caught =
        "let said; try { await tools.hang() } catch (e) { said = [e.code, e.message] } said";
    host.execute("a", caught, &roomy());
    let call = host.until("tool_call")["callId"].as_str().unwrap().to_owned();
    host.send_line(&format!(
        r#"{{"type":"tool_result","callId":"{call}","ok":true,"result":"{much}"}}"#
    ));
    let done = host.until("done");
    assert_eq!(done["result"][0], "serialization_error", "{done}");
    names_size(&done["result"][1], "67108864 bytes");

    let large = "const large = 'x'.repeat(64 << 20);";
    host.execute("c", &format!("{large} await tools.raw(large)"), &roomy());
    let error = host.attend("c")["error"].clone();
    assert_eq!(error["code"], "serialization_error");
    names_size(&error["message"], "67104768 bytes");
    host.execute("d", &format!("{large} large"), &roomy());
    let error = host.attend("d")["error"].clone();
    assert_eq!(error["code"], "serialization_error");
    names_size(&error["message"], "67104768");
    host.execute("e", "1 + 1", &json!({}));
    assert_eq!(host.attend("e")["result"], 2, "the channel goes on");
}

#[test]
fn a_fence_may_be_closed_on_the_last_line_of_its_program() {
    let host = Host::start();
    for (n, code) in ["```js\n1 + 41```", "```\nconst a = 42\na```\n"].into_iter().enumerate() {
        host.execute(&n.to_string(), code, &json!({}));
        assert_eq!(host.attend(&n.to_string())["result"], 42, "{code}");
    }
}

#[test]
fn logs_are_written_as_execboxs_runner_writes_them() {
    let host = Host::start();
    let code = "console.log(new Date(0), { d: new Date(0) }); console.log(Promise.resolve({ a: 1 }));
        console.log(new Promise(() => {})); const r = Promise.reject(new TypeError('no')); r.catch(() => {});
        console.log(Promise.resolve(Promise.reject)); console.log('a\\ud800b', 'c')";
    host.execute("a", code, &json!({}));
    let line = host.next_line();
    let line = if line.contains("\"started\"") { host.next_line() } else { line };
    assert!(line.contains(r#""a\ud800b c""#), "half a pair stays half a pair: {line}");
    let done: Value = serde_json::from_str(&line.replace("\\ud800", "?")).unwrap();
    let expected = json!([
        "1970-01-01T00:00:00.000Z {\"d\":\"1970-01-01T00:00:00.000Z\"}",
        "{\"type\":\"fulfilled\",\"value\":{\"a\":1}}",
        "{\"type\":\"pending\"}",
        "{\"type\":\"fulfilled\",\"value\":\"function reject() {\\n    [native code]\\n}\"}",
        "a?b c"
    ]);
    assert_eq!(done["logs"], expected);
    let code = "const r = Promise.reject('no'); r.catch(() => {}); console.log(r)";
    host.execute("b", code, &json!({}));
    assert_eq!(host.attend("b")["logs"], json!(["{\"type\":\"rejected\",\"error\":\"no\"}"]));
    let code = "console.log(Promise.resolve(() => 1), Promise.resolve(1n))";
    host.execute("c", code, &json!({}));
    let source = "{\"type\":\"fulfilled\",\"value\":\"() => 1\"} [object Object]";
    assert_eq!(host.attend("c")["logs"], json!([source]));
}

/// The ids of all processes below a runner.
fn processes_below(root: u32) -> std::collections::BTreeSet<u32> {
    let (mut found, mut below) = (std::collections::BTreeSet::new(), vec![root]);
    while let Some(pid) = below.pop() {
        let path = format!("/proc/{pid}/task/{pid}/children");
        let children = std::fs::read_to_string(path).unwrap_or_default();
        let children: Vec<u32> = children.split_whitespace().flat_map(str::parse).collect();
        found.extend(&children);
        below.extend(children);
    }
    found
}

#[test]
fn programs_beside_each_other_use_the_runners_of_those_before_them() {
    let host = Host::start();
    let options = json!({"timeoutMs": 20_000, "multiplex": true});
    let pass = |n: usize| {
        let name = |k: usize| format!("{n}.{k}");
        for k in 0..8 {
            host.execute(&name(k), "await tools.hang(); 1 + 1", &options);
        }
        // All eight have a runner now: each waits for its tool.
        let calls: Vec<Value> = (0..8).map(|_| host.until("tool_call")).collect();
        let processes = processes_below(host.pid());
        for call in &calls {
            host.send(&json!({"type": "tool_result", "callId": call["callId"], "ok": true}));
        }
        for _ in 0..8 {
            assert_eq!(host.until("done")["result"], 2);
        }
        processes
    };
    // A process that grew in its first program is replaced once; the remaining ones serve one pass after another.
    let mut before = pass(0);
    let is_served_again = (1..20).any(|n| {
        let now = pass(n);
        let n_both = before.intersection(&now).count();
        before = now;
        // Beside the eight runners there are at most five processes: those that fork, and those that wait for a first
        // program.
        n_both >= 11
    });
    assert!(is_served_again, "no pass found the processes of the one before it");
}

#[test]
fn more_memory_than_there_is_is_refused_in_words() {
    let host = Host::start();
    host.execute("a", "1", &json!({"memoryLimitBytes": 1_u64 << 50}));
    let done = host.next();
    assert_eq!(done["error"]["code"], "internal_error", "{done}");
    host.execute("b", "new Uint8Array(100 << 20).length", &json!({"memoryLimitBytes": 256 << 20}));
    assert_eq!(host.attend("b")["result"], 100 << 20);
}

#[test]
fn a_host_that_leaves_takes_its_program_along() {
    let host = Host::start();
    host.execute("a", NEVER_YIELDS, &long());
    assert_eq!(host.leave(), Some(0));
}

#[test]
fn every_program_of_a_channel_finds_a_world_as_if_nobody_had_been_there() {
    let host = Host::start();
    let code = "const found = [typeof leak, typeof [].x, typeof tools.raw];
        globalThis.leak = 1; Array.prototype.x = 1; delete tools.raw; tools.hang({}); found";
    let mut call_ids = std::collections::BTreeSet::new();
    for n in 1..=5 {
        host.execute("again", code, &json!({}));
        let call = host.until("tool_call");
        call_ids.insert(call["callId"].as_str().unwrap().to_owned());
        assert_eq!(host.until("done")["result"], json!(["undefined", "undefined", "function"]));
        assert_eq!(call_ids.len(), n, "names of calls are never used again");
    }
}

#[test]
fn a_large_program_leaves_the_next_one_a_process_of_its_own() {
    let host = Host::start();
    for _ in 0..3 {
        host.execute("large", "'x'.repeat(20e6).length", &json!({}));
        assert_eq!(host.attend("large")["result"], 20_000_000);
        host.execute("null", "throw null", &json!({}));
        let error = json!({"code": "runtime_error", "message": "null"});
        assert_eq!(host.attend("null")["error"], error);
    }
}

#[test]
fn what_a_killed_program_printed_and_emitted_is_told() {
    let host = Host::start();
    let code =
        format!("console.log('before'); emit({{ n: 1 }}); console.log('last'); {NEVER_YIELDS}");
    host.execute("a", &code, &json!({"timeoutMs": 100}));
    let done = host.attend("a");
    let said = (&done["error"]["code"], &done["logs"], &done["emitted"]);
    assert_eq!(said, (&json!("timeout"), &json!(["before", "last"]), &json!([{"n": 1}])));
    host.execute("b", "1", &json!({}));
    let done = host.attend("b");
    assert_eq!((&done["logs"], done.get("emitted")), (&json!([]), None));
}

#[test]
fn timers_fire_in_order_and_a_settled_program_does_not_wait_for_them() {
    let host = Host::start();
    let code = "const order = []; const after = (ms) => new Promise((done) => setTimeout(() => { order.push(ms); done() }, ms));
        const cleared = setTimeout(() => order.push('cleared'), 5); clearTimeout(cleared);
        const began = Date.now(); setTimeout(() => order.push('never'), 1e9);
        await Promise.all([after(40), after(20), after(1)]); [order, Date.now() - began >= 40]";
    host.execute("a", code, &json!({}));
    assert_eq!(host.attend("a")["result"], json!([[1, 20, 40], true]));
    host.execute(
        "b",
        "for (let n = 0; n < 10001; n++) setTimeout(() => {}, 1e6); await tools.hang()",
        &json!({}),
    );
    assert_eq!(host.attend("b")["error"]["code"], "runtime_error");
    host.execute(
        "c",
        "setTimeout(() => { throw new RangeError('late') }, 1); await tools.hang()",
        &json!({}),
    );
    assert_eq!(host.attend("c")["error"], json!({"code": "runtime_error", "message": "late"}));
}
