//! The verbs in a pipe, as scripts use them: text and JSON, with a server and without.

use crate::server_fixture::{Served, airlock};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;

/// The exit code of a verb whose program waits for an answer.
const PAUSED: i32 = 6;

/// How a verb ended and what it printed.
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Done {
    /// The printed output of a verb that succeeded, which must be one JSON value.
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

/// A verb whose home and data are in this directory.
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
    assert_eq!(asked.code, Some(PAUSED), "{asked:?}");
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
    let asked = told(&served, &["call", "demo", "append", r#"{"line":"y"}"#, "--json"]);
    assert_eq!(asked.code, Some(PAUSED), "{asked:?}");
    let asked: Value = serde_json::from_str(&asked.stdout).unwrap();
    let id = asked["structured"]["executionId"].as_str().unwrap();
    assert_eq!(asked["structured"]["status"], "waiting_for_interaction");
    let resumed = told(&served, &["resume", id, "--json"]).json();
    assert_eq!(resumed["structured"]["result"], json!({ "appended": true }));
    let lines = fs::read_to_string(served.data_dir.join("demo-append.txt")).unwrap();
    assert_eq!(lines, "x\ny\n");
}

#[test]
fn whatever_pauses_ends_with_the_exit_code_of_a_pause() {
    let (_dir, served) = fresh();
    let code = "await tools.demo.ask({ text: 'x' }); return await tools.demo.ask({ text: 'y' })";
    let run = told(&served, &["run", "--server", &served.url, "-e", code]);
    assert_eq!(run.code, Some(PAUSED), "{run:?}");
    let word = |done: &Done, from: &str| {
        let at = done.stdout.find(from).unwrap();
        done.stdout[at..].split_whitespace().next().unwrap().to_owned()
    };
    let again = told(&served, &["resume", &word(&run, "exec_")]);
    assert_eq!(
        (again.code, again.stdout.starts_with("Paused: ")),
        (Some(PAUSED), true),
        "{again:?}"
    );
    let ended = told(&served, &["resume", &word(&again, "exec_"), "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn executions_are_listed_by_outcome_tool_caller_and_time() {
    let (_dir, served) = fresh();
    let (admin, run) = (served.client("admin"), served.client("run"));
    let good = admin.execute("return await tools.demo.add({ a: 1, b: 2 })").execution();
    let bad = run.execute("await tools.demo.fail({ message: 'x' })").execution();
    let thrown = admin.execute("throw new Error('y')").execution();
    let listed = |words: &[&str]| {
        let words = [&["executions", "list"], words].concat();
        let done = told(&served, &words);
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{done:?}");
        done.stdout.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    };
    let ids = |words: &[&str]| {
        let rows: Vec<Vec<String>> = listed(words);
        rows.into_iter().map(|row| row[0].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&["--failed"]), [thrown.clone(), bad.clone()]);
    assert_eq!(ids(&["--failed", "--caller", "run"]), std::slice::from_ref(&bad));
    assert_eq!(ids(&["--outcome", "completed", "--limit", "1"]), std::slice::from_ref(&good));
    assert_eq!(ids(&["--tool", "demo.*"]), [bad.clone(), good.clone()]);
    assert_eq!(ids(&["--tool", "demo.add", "--since", "1h"]), std::slice::from_ref(&good));
    assert_eq!(ids(&["--since", "2999-01-01"]), [""; 0]);
    let rows: Vec<Vec<String>> = listed(&["--failed", "--tool", "demo.fail"]);
    let row = &rows[0];
    assert_eq!(
        (row[2].as_str(), row[5].as_str(), row[7].as_str()),
        ("run", "failed (tool)", "demo.fail")
    );
    assert!(row[6].ends_with("ms") || row[6].ends_with('s'), "{row:?}");
    let json = told(&served, &["executions", "list", "--outcome", "completed", "--json"]).json();
    assert_eq!((&json["outcome"], &json["tools"]), (&json!("completed"), &json!(["demo.add"])));
    assert!(json["durationMs"].is_u64() && json["ended"].is_u64(), "{json}");
    for wrong in [["--since", "yesterday"], ["--tool", "demo.a*"]] {
        let refused = told(&served, &[&["executions", "list"], &wrong[..]].concat());
        assert_eq!(refused.code, Some(1), "{refused:?}");
    }
    let newest = told(&served, &["executions", "list", "--limit", "1"]);
    let hint = format!("airlock: there are more: add --after {thrown}");
    assert!(newest.stderr.starts_with(&hint), "{newest:?}");
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
        (Some(1), "error: there is no tool below nowhere\n")
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
        (
            Some(1),
            "error: there is no tool nowhere; airlock tools search finds tools by what they do\n"
        )
    );
    let sources = told(&served, &["tools", "sources"]);
    assert!(sources.stdout.lines().any(|line| line.starts_with("demo\t")), "{sources:?}");
    let sources = told(&served, &["tools", "integrations", "--query", "demo", "--json"]).json();
    assert_eq!(sources["items"][0]["id"], "demo");
}

#[test]
fn executions_are_told_to_people_and_to_programs() {
    let (_dir, served) = fresh();
    let admin = served.client("admin");
    let asked = admin.execute("console.log('hi'); return await tools.demo.ask({ text: 'x' })");
    let (run, question) = (asked.execution(), asked.question());

    let listed = told(&served, &["executions", "list", "--status", "paused"]);
    assert!(listed.stdout.starts_with(&format!("{run}\tpaused\tadmin\t")), "{listed:?}");
    let listed = told(&served, &["executions", "list", "--json"]).json();
    assert_eq!((&listed["executionId"], &listed["status"]), (&json!(run), &json!("paused")));
    let shown = told(&served, &["executions", "show", &question]);
    assert!(
        shown.stdout.starts_with(&format!("Execution  {run}\nStatus     paused\n")),
        "{shown:?}"
    );
    let shown = told(&served, &["executions", "show", &run, "--json"]).json();
    assert_eq!(shown["structured"]["executionId"], json!(question));
    let ended = told(&served, &["resume", "--execution-id", &question, "--action", "accept"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "hi\n"), "{ended:?}");
    let followed = told(&served, &["executions", "follow", &run]);
    assert!(followed.stdout.contains("call 1: demo.ask"), "{followed:?}");
    let followed = told(&served, &["executions", "follow", &run, "--json"]);
    let first: Value = serde_json::from_str(followed.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&first["type"], &first["seq"]), (&json!("started"), &json!(1)));
    check(&served, &["executions", "cancel", &run], 0, &format!("{run} had ended before.\n"));
    let over = told(&served, &["executions", "cancel", &run, "--json"]).json();
    assert_eq!(over["structured"]["status"], "completed");
    let replayed = told(&served, &["executions", "replay", &run]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    check(&served, &["executions", "diff", &run, &run], 0, "");
}

#[test]
fn administrators_are_told_in_text_and_as_json() {
    let (_dir, served) = fresh();
    let added = told(&served, &["policy", "add", "demo.*", "require_approval", "--json"]).json();
    let id = added["id"].as_str().unwrap();
    let line = format!("{id}\torg\tdemo.*\trequire_approval\ta0\n");
    check(&served, &["policy", "list"], 0, &line);
    assert_eq!(told(&served, &["policy", "list", "--json"]).json()["pattern"], "demo.*");
    check(&served, &["policy", "test", "demo.add"], 0, &format!("ask\tdemo.*\t{id}\n"));
    assert_eq!(told(&served, &["policy", "test", "demo.add", "--json"]).json()["verdict"], "ask");
    check(&served, &["policy", "remove", id], 0, "");

    let minted = told(&served, &["token", "add", "agent", "--scope", "run"]);
    assert!(minted.stdout.starts_with("alk_"), "{minted:?}");
    assert!(told(&served, &["token", "list"]).stdout.contains("agent\trun\tperson\n"));
    let minted =
        told(&served, &["token", "add", "second", "--scope", "run,answer", "--json"]).json();
    assert_eq!((&minted["name"], &minted["scopes"]), (&json!("second"), &json!(["run", "answer"])));
    assert_eq!(told(&served, &["token", "remove", "agent", "--json"]).json()["removed"], true);

    let program = ["source", "add", "--name", "words", "--json", "--", "no-such-program-at-all"];
    assert_eq!(told(&served, &program).code, Some(1));
    assert!(told(&served, &["source", "list"]).stdout.starts_with("demo\t"));
    let listed = told(&served, &["source", "list", "--json"]);
    assert!(listed.stdout.lines().any(|line| line.contains(r#""slug":"demo""#)), "{listed:?}");
    check(&served, &["connection", "list"], 0, "");
    let refused =
        told(&served, &["connection", "add", "nothing", "--template", "bearer", "--value", "x"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let wrong = told(&served, &["connection", "add", "nothing", "--field", "user"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn links_checks_and_programs_are_told_in_text_and_as_json() {
    let (_dir, served) = fresh();
    let run = served.client("admin").execute("return 1").execution();
    let link = told(&served, &["open", "--print"]);
    assert!(link.stdout.starts_with(&format!("{}/#code=", served.url)), "{link:?}");
    let link = told(&served, &["open", &run, "--json"]).json();
    assert!(link["url"].as_str().unwrap().contains(&format!("/resume/{run}#code=")), "{link}");
    let checked = told(&served, &["doctor", "--json"]).json();
    assert_eq!(checked["findings"][0]["mark"], "ok");
    let ran = told(&served, &["run", "-e", "console.log('x'); 6 * 7", "--json"]).json();
    assert_eq!(ran, json!({ "status": "completed", "result": 42, "logs": ["[log] x"] }));
    let failed = told(&served, &["run", "-e", "throw new TypeError('no')", "--json"]);
    let said: Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!((failed.code, &said["error"]), (Some(1), &json!("TypeError: no")));
    let there = ["run", "--server", &served.url, "-e", "return tools.demo.add({ a: 1, b: 2 })"];
    check(&served, &there, 0, "3\n");
}

#[test]
fn a_first_configuration_completions_and_a_manual_come_with_the_binary() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().to_owned();
    let written = done(verb(&home, &["init"]));
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), "airlock.toml\n"), "{written:?}");
    assert_eq!(done(verb(&home, &["init"])).code, Some(1));
    let printed = done(verb(&home, &["init", "--print"]));
    assert_eq!(printed.stdout, fs::read_to_string(home.join("airlock.toml")).unwrap());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = done(verb(&home, &["completions", shell]));
        assert!(script.code == Some(0) && script.stdout.contains("executions"), "{shell}");
    }
    let page = done(verb(&home, &["man"]));
    assert!(page.stdout.contains(".TH airlock 1"), "{page:?}");
    let pages = home.join("man1");
    assert_eq!(done(verb(&home, &["man", "--dir", pages.to_str().unwrap()])).code, Some(0));
    assert!(
        pages.join("airlock-call.1").is_file()
            && pages.join("airlock-executions-follow.1").is_file()
    );
}

#[test]
fn a_server_with_a_name_is_reached_by_it() {
    let (dir, served) = fresh();
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    let secret = fs::read_to_string(served.data_dir.join("tokens/admin")).unwrap();
    let file = home.join("token");
    fs::write(&file, &secret).unwrap();
    let told = |words: &[&str]| done(verb(&home, words));
    let url = served.url.as_str();
    let add = ["server", "add", "build", url, "--token-file", file.to_str().unwrap()];
    assert_eq!(told(&add).code, Some(0));
    assert_eq!(told(&["server", "list"]).stdout, format!("build\t{url}\ttoken\n"));
    let add = ["call", "demo.add", r#"{"a":1,"b":2}"#];
    let there = told(&[&add[..], &["--server", "build"]].concat());
    assert_eq!((there.code, there.stdout.as_str()), (Some(0), "3\n"), "{there:?}");
    let nobody = told(&["executions", "list", "--server", "prod"]);
    let why = "error: there is no server prod; airlock server list names those there are\n";
    assert_eq!((nobody.code, nobody.stderr.as_str()), (Some(1), why));
    assert_eq!(told(&["server", "use", "build"]).code, Some(0));
    let listed = told(&["server", "list", "--json"]).json();
    let expected = json!({ "name": "build", "url": url, "inUse": true, "hasToken": true });
    assert_eq!(listed, expected);
    assert_eq!(told(&add).stdout, "3\n", "the one in use is meant where none is named");
    assert_eq!(told(&["token", "list"]).code, Some(0));
    assert_eq!(told(&["server", "use"]).code, Some(0));
    let ours = told(&["executions", "list"]);
    assert!(ours.stderr.contains("no server runs on"), "{ours:?}");
    assert_eq!(told(&["server", "remove", "build"]).code, Some(0));
    assert_eq!(told(&["server", "remove", "build"]).code, Some(1));
    assert_eq!(told(&["server", "add", "a.b", url]).code, Some(1));
}

/// A webhook that fails the first request: the body, timestamp and signature of each request.
fn webhook() -> (String, std::sync::mpsc::Receiver<[String; 3]>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (say, said) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for (n, stream) in listener.incoming().take(2).enumerate() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                stream.read_line(&mut head).unwrap();
            }
            let head = head.to_ascii_lowercase();
            let header = |name: &str| {
                let line = head.lines().find_map(|line| line.strip_prefix(name)).unwrap();
                line.trim().to_owned()
            };
            let mut body = vec![0; header("content-length:").parse().unwrap()];
            stream.read_exact(&mut body).unwrap();
            let body = String::from_utf8(body).unwrap();
            say.send([body, header("airlock-timestamp:"), header("airlock-signature:")]).unwrap();
            let status = if n == 0 { "500 No" } else { "200 OK" };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, said)
}

#[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
#[test]
fn people_hear_of_questions_by_a_program_and_by_a_webhook_that_failed_once() {
    use hmac::{Hmac, KeyInit as _, Mac as _};
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    fs::create_dir(&data_dir).unwrap();
    let (url, said) = webhook();
    let notices = dir.path().join("notices");
    assert!(Command::new("mkfifo").arg(&notices).status().unwrap().success());
    let config = format!(
        "[notify]\ncommand = [\"tee\", {notices:?}]\n[notify.webhook]\nurl = {url:?}\nsecret = \"s3\"\n"
    );
    fs::write(data_dir.join("airlock.toml"), config).unwrap();
    let served = Served::start(&data_dir, &[]);
    let asked = served.client("run").execute("return await tools.demo.ask({ text: 'my secret' })");
    let expected = json!({
        "type": "question", "executionId": asked.question(), "execution": asked.execution(),
        "caller": "run", "tool": "demo.ask", "kind": "approval", "title": "Approve demo.ask?",
        "url": format!("{}/resume/{}", served.url, asked.question()),
    });
    let told: Value = serde_json::from_str(&fs::read_to_string(&notices).unwrap()).unwrap();
    assert_eq!(told, expected);
    for _ in 0..2 {
        let [body, at, signature] = said.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(b"s3").unwrap();
        mac.update(format!("{at}.{body}").as_bytes());
        let bytes = mac.finalize().into_bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(signature, format!("v1={hex}"));
    }
}

/// A server that a verb started implicitly in a data directory. It ends when this goes out of scope.
struct Started<'a>(&'a Path);

impl Drop for Started<'_> {
    #[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
    fn drop(&mut self) {
        let note = fs::read_to_string(self.0.join("owner.lock")).unwrap_or_default();
        if let Some(pid) = note.lines().next() {
            let _ = Command::new("kill").arg(pid).status();
            // It is not this process's child: it is gone when its lock is.
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
    // Bound by this test or by another process: the port is busy in both cases.
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
    assert!(resumed.stderr.starts_with("error: There is no execution"), "{resumed:?}");
}
