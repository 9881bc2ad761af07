//! The limits on programs, through the real binary: frames, levels of JSON, memory, and limits that requests set.

use crate::server_fixture::{self, Client, Served};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;

fn run(directory: &Path, words: &[&str]) -> Output {
    server_fixture::airlock(&["run"])
        .args(words)
        .current_dir(directory)
        .env("AIRLOCK_DATA_DIR", directory.join("data"))
        .output()
        .unwrap()
}

/// Starts a program with the given limits.
fn within(client: &Client, code: &str, limits: &Value) -> server_fixture::Answer {
    client.post("/api/executions", &json!({ "code": code, "limits": limits }).to_string())
}

fn error_of(answer: &server_fixture::Answer) -> String {
    answer.json()["structured"]["error"].as_str().unwrap().to_owned()
}

/// The source of a program that builds a value with this many levels of JSON, and the value.
fn nested(levels: usize) -> (String, String) {
    let half = levels / 2;
    let build = format!("let deep = 1; for (let n = 0; n < {half}; n++) deep = {{ a: [deep] }};");
    (build, format!("{}1{}", "{\"a\":[".repeat(half), "]}".repeat(half)))
}

#[test]
fn ten_thousand_frames_and_five_thousand_levels_of_json_fit_a_program_that_runs_here() {
    let folder = tempfile::tempdir().unwrap();
    let (build, json) = nested(5_000);
    let code = format!(
        "{build} const f = (n) => (n === 0 ? 0 : 1 + f(n - 1)); emit(deep); console.log(f(10_000)); \
         (await tools.demo.echo({{ message: deep }})).message"
    );
    let ended = run(folder.path(), &["-e", &code]);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&ended.stdout).trim_end(), json);
    assert!(stderr.contains("10000"), "{stderr}");
    let ended = run(folder.path(), &["--json", "-e", &format!("{build} deep")]);
    assert!(String::from_utf8_lossy(&ended.stdout).contains(&json));
}

#[test]
fn five_thousand_levels_of_json_pass_every_route_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let client = server.client("admin");
    let (build, json) = nested(5_000);
    let code =
        format!("{build} emit(deep); return (await tools.demo.echo({{ message: deep }})).message");
    let answer = client.execute(&code);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body.contains(&json));
    let execution = answer.header("airlock-execution").unwrap().to_owned();
    for route in ["result", "events", "journal"] {
        let answer = client.get(&format!("/api/executions/{execution}/{route}"));
        assert_eq!(answer.status, 200, "{route}: {}", answer.body);
        assert!(answer.body.contains(&json), "{route}");
    }
}

#[test]
fn a_request_sets_limits_below_those_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let client = server.client("admin");
    let fill =
        "const all = []; for (let n = 0; n < 400_000; n++) all.push({ n }); return all.length";
    assert_eq!(within(&client, fill, &json!({})).result(), 400_000);
    let answer = within(&client, fill, &json!({"memoryBytesMax": 8 << 20}));
    let sentence = "out of memory. The program needed more than 8388608 bytes of memory.";
    assert_eq!(error_of(&answer), sentence);
    let answer = within(&client, "for (;;);", &json!({"cpuMsMax": 50}));
    assert_eq!(error_of(&answer), "The program used more than 50 ms of processor time.");
    let calls = "await tools.demo.add({ a: 1, b: 2 }); await tools.demo.add({ a: 1, b: 2 })";
    let answer = within(&client, calls, &json!({"callsMax": 1}));
    assert!(error_of(&answer).contains("The program made more than 1 tool calls."));
    for (limits, message) in [
        (
            json!({"memoryBytesMax": 99_999_999}),
            "limits.memoryBytesMax is a number from 1 to 67108864, which is the limit of this server, not 99999999.",
        ),
        (
            json!({"cpuMsMax": 0}),
            "limits.cpuMsMax is a number from 1 to 60000, which is the limit of this server, not 0.",
        ),
        (
            json!({"cpu": 5}),
            "There is no limit \"cpu\"; there are cpuMsMax, activeMsMax, totalMsMax, memoryBytesMax, callsMax, bytesMax, resultBytesMax, callMsMax.",
        ),
    ] {
        let answer = within(&client, "return 1", &limits);
        assert_eq!(answer.status, 400, "{limits}");
        assert_eq!(answer.json()["message"], message);
    }
}

#[test]
fn limits_are_named_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let fill = "const all = []; for (let n = 0; n < 400_000; n++) all.push({ n }); all.length";
    let ended = run(folder.path(), &["--memory", "8MiB", "-e", fill]);
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(stderr.contains("The program needed more than 8388608 bytes of memory."), "{stderr}");
    let ended = run(folder.path(), &["--cpu", "50ms", "-e", "for (;;);"]);
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(stderr.contains("The program used more than 50 ms of processor time."), "{stderr}");
    let ended = run(folder.path(), &["--memory", "100MiB", "-e", "1"]);
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("limits.memoryBytesMax is a number from 1 to 67108864"), "{stderr}");
    let server = Served::start(&folder.path().join("data"), &[]);
    let on_server = ["--server", &server.url, "--cpu", "50ms", "-e", "for (;;);"];
    let token = std::fs::read_to_string(folder.path().join("data/tokens/admin")).unwrap();
    let ended = run(folder.path(), &[&on_server[..], &["--token", token.trim()]].concat());
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(stderr.contains("The program used more than 50 ms of processor time."), "{stderr}");
}

#[test]
fn a_program_that_waits_for_its_clock_and_one_that_loses_a_rejection_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let client = server.client("admin");
    let answer = client.execute("const end = Date.now() + 50; while (Date.now() < end) {}");
    assert!(error_of(&answer).contains("setTimeout(done, ms)"), "{}", answer.body);
    let answer = client.execute("tools.demo.fail({ message: 'lost' }); return 1");
    assert!(error_of(&answer).contains("lost"), "{}", answer.body);
}
