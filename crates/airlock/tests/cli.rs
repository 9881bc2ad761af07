//! The verbs in a pipe, as scripts use them: in text and as JSON, with a server and without.
#![expect(clippy::unwrap_used, reason = "a test helper that cannot go on should say so loudly")]

mod served;

use serde_json::{Value, json};
use served::{Served, airlock};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;

/// What a verb did.
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Done {
    /// What it printed, which must be one value, of a verb that went well.
    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

fn fresh() -> (tempfile::TempDir, Served) {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), &[]);
    (dir, served)
}

/// A verb of somebody whose home and data are in this directory.
fn verb(data_dir: &Path, words: &[&str]) -> Command {
    let mut command = airlock(words);
    command.env_remove("AIRLOCK_URL").env("AIRLOCK_DATA_DIR", data_dir).env("HOME", data_dir);
    command.env_remove("XDG_CONFIG_HOME").current_dir(data_dir);
    command
}

fn done(mut command: Command) -> Done {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn told(served: &Served, words: &[&str]) -> Done {
    done(verb(&served.data_dir, words))
}

#[track_caller]
fn check(served: &Served, words: &[&str], code: i32, stdout: &str) {
    let done = told(served, words);
    assert_eq!((done.code, done.stdout.as_str()), (Some(code), stdout), "{words:?} {done:?}");
}

#[test]
fn a_tool_is_called_from_a_script() {
    let (dir, served) = fresh();
    check(&served, &["call", "demo", "add", r#"{"a":1,"b":2}"#], 0, "3\n");
    check(&served, &["call", "demo.add", r#"{"a":1,"b":2}"#], 0, "3\n");
    let file = dir.path().join("in.json");
    fs::write(&file, r#"{"message":"a\nb"}"#).unwrap();
    let named = format!("@{}", file.display());
    check(&served, &["call", "tools.demo.echo", &named], 0, "{\n  \"message\": \"a\\nb\"\n}\n");
    let failed = told(&served, &["call", "demo", "fail", r#"{"message":"no luck"}"#]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
    assert!(
        failed.stderr.starts_with("error: ") && failed.stderr.contains("no luck"),
        "{failed:?}"
    );
    let unknown = told(&served, &["call", "demo", "nothing"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    let wrong = told(&served, &["call", "demo", "add", "[1]"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let json = told(&served, &["call", "demo", "add", r#"{"a":1,"b":2}"#, "--json"]).json();
    assert_eq!(json["structured"], json!({ "status": "completed", "result": 3, "logs": [] }));
    let failed = told(&served, &["call", "demo", "fail", "{}", "--json"]);
    let json: Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!((failed.code, &json["isError"]), (Some(1), &json!(true)));
}

#[test]
fn a_call_that_asks_says_where_and_how_to_answer() {
    let (_dir, served) = fresh();
    let asked = told(&served, &["call", "demo", "append", r#"{"line":"x"}"#]);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert!(asked.stdout.starts_with("Paused: "), "{asked:?}");
    assert!(
        asked.stdout.contains(&format!("\nPage:      {}/resume/exec_", served.url)),
        "{asked:?}"
    );
    let commands: Vec<_> =
        asked.stdout.lines().filter_map(|line| line.strip_prefix("  airlock ")).collect();
    assert_eq!(commands.len(), 3, "{asked:?}");
    let words: Vec<_> = commands[0].split(' ').collect();
    check(&served, &words, 0, "{\"appended\":true}\n");
    let asked = told(&served, &["call", "demo", "append", r#"{"line":"y"}"#, "--json"]).json();
    let id = asked["structured"]["executionId"].as_str().unwrap();
    assert_eq!(asked["structured"]["status"], "waiting_for_interaction");
    let resumed = told(&served, &["resume", id, "--json"]).json();
    assert_eq!(resumed["structured"]["result"], json!({ "appended": true }));
    let lines = fs::read_to_string(served.data_dir.join("demo-append.txt")).unwrap();
    assert_eq!(lines, "x\ny\n");
}

#[test]
fn tools_are_found_segment_by_segment_and_by_what_they_do() {
    let (_dir, served) = fresh();
    let top = told(&served, &["call", "--help"]);
    assert!(
        top.stdout.contains("Usage: airlock call") && top.stdout.contains("\ndemo\t"),
        "{top:?}"
    );
    let below = told(&served, &["call", "demo", "--help"]);
    assert!(below.stdout.lines().any(|line| line.starts_with("add\ttool\t")), "{below:?}");
    let some = told(&served, &["call", "demo", "--help", "--match", "add", "--limit", "1"]);
    assert_eq!((some.code, some.stdout.lines().count()), (Some(0), 1), "{some:?}");
    let leaf = told(&served, &["call", "demo", "add", "--help"]);
    assert!(leaf.stdout.starts_with("demo.add\n"), "{leaf:?}");
    assert!(
        leaf.stdout.contains("\nInput:\n  ") && leaf.stdout.contains("\nOutput:\n  "),
        "{leaf:?}"
    );
    let nowhere = told(&served, &["call", "nowhere", "--help"]);
    assert_eq!(
        (nowhere.code, nowhere.stderr.as_str()),
        (Some(1), "airlock: there is no tool below nowhere\n")
    );
    let json = told(&served, &["call", "demo", "--help", "--match", "demo.add", "--json"]).json();
    assert_eq!((&json["path"], &json["isTool"]), (&json!("demo.add"), &json!(true)));

    let found = told(&served, &["tools", "search", "adds", "numbers"]);
    assert!(found.stdout.starts_with("demo.add\t"), "{found:?}");
    let found =
        told(&served, &["tools", "search", "adds numbers", "--limit", "1", "--json"]).json();
    assert_eq!((&found["items"][0]["path"], &found["hasMore"]), (&json!("demo.add"), &json!(true)));
    let described = told(&served, &["tools", "describe", "demo.add"]);
    assert_eq!(described.stdout, leaf.stdout);
    let described = told(&served, &["tools", "describe", "demo", "add", "--json"]).json();
    assert_eq!(described["address"], "tools.demo.add");
    let unknown = told(&served, &["tools", "describe", "nowhere"]);
    assert_eq!(
        (unknown.code, unknown.stderr.as_str()),
        (Some(1), "airlock: there is no tool nowhere\n")
    );
    let sources = told(&served, &["tools", "sources"]);
    assert!(sources.stdout.lines().any(|line| line.starts_with("demo\t")), "{sources:?}");
    let sources = told(&served, &["tools", "integrations", "--query", "demo", "--json"]).json();
    assert_eq!(sources["items"][0]["id"], "demo");
}

/// The server of a data directory that nobody started by hand. Ended when it goes out of scope.
struct Started<'a>(&'a Path);

impl Drop for Started<'_> {
    #[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
    fn drop(&mut self) {
        let note = fs::read_to_string(self.0.join("owner.lock")).unwrap_or_default();
        if let Some(pid) = note.lines().next() {
            let _ = Command::new("kill").arg(pid).status();
            // Nobody's child: gone when its lock is.
            while store::sqlite::owner_of(self.0).is_some() {
                thread::yield_now();
            }
        }
    }
}

#[test]
fn without_a_server_one_is_started_once_and_on_a_free_port() {
    let dir = tempfile::tempdir().unwrap();
    let config = "[sources.text.tools.count]\nargv = [\"wc\", \"-c\"]\nread_only = true\n";
    fs::write(dir.path().join("airlock.toml"), config).unwrap();
    let _started = Started(dir.path());
    // Taken by us, or by somebody else: either way it is busy.
    let _busy = TcpListener::bind("127.0.0.1:4788");
    let calling: Vec<_> = (0..6)
        .map(|n| {
            let words: &[&str] = match n % 2 {
                0 => &["call", "text.org.main.count"],
                _ => &["tools", "search", "count"],
            };
            let command = verb(dir.path(), words);
            thread::spawn(move || done(command))
        })
        .collect();
    for done in calling.into_iter().map(|calling| calling.join().unwrap()) {
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    let url = store::sqlite::owner_of(dir.path()).unwrap();
    assert!(url.starts_with("http://127.0.0.1:") && !url.ends_with(":4788"), "{url}");
    let log = fs::read_to_string(dir.path().join("serve.log")).unwrap();
    assert_eq!(log.matches("the first tokens are").count(), 1, "{log}");
    let resumed = done(verb(dir.path(), &["resume", "exec_00000000-0000-0000-0000-000000000000"]));
    assert!(resumed.stderr.starts_with("airlock: There is no execution"), "{resumed:?}");
}
