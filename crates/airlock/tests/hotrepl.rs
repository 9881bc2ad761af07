//! The REPL as its clients meet it: the conformance harness, the published schemas, our own client, a terminal.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod repl_spoken;
mod served;

use client::repl::{Command as Called, Job, ReplClient, ReplError};
use repl_spoken::{Spoken, conformance};
use serde_json::{Value, json};
use served::{Served, airlock};
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio_tungstenite::tungstenite::Error as SocketError;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

fn repl_url(server: &Served) -> String {
    format!("{}/repl", server.url.replacen("http", "ws", 1))
}

fn token(server: &Served) -> String {
    let file = server.data_dir.join("tokens").join("run");
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

async fn spoken(server: &Served) -> Spoken {
    Spoken::connect(&repl_url(server), &token(server)).await
}

// ---- Conformance ----

#[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
fn python(words: &[&str]) -> std::process::Output {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    assert!(python.exists(), "`cargo xtask packages` makes the Python environment");
    Command::new(python).args(words).output().unwrap()
}

/// Everything that the harness checks must hold, with nothing skipped.
fn conforms(query: &str, profile: &str) {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(&folder.path().join("data"), &["--no-auth"]);
    let report = folder.path().join("report.json");
    let url = format!("{}{query}", repl_url(&server));
    let ran = python(&[
        conformance("harness.py").to_str().unwrap(),
        &url,
        "--profile",
        profile,
        "--hostile",
        "--args",
        "demo.echo={\"message\":\"hi\"}",
        "--long-job",
        "demo.sleep={\"ms\":2000}",
        "--json",
        report.to_str().unwrap(),
    ]);
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let report: Value = serde_json::from_slice(&std::fs::read(report).expect(&said)).unwrap();
    let results = report["results"].as_array().unwrap();
    assert!(results.len() >= 95, "{said}");
    let wrong: Vec<&Value> = results.iter().filter(|result| result["status"] != "PASS").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(report["violations"], json!([]));
}

#[test]
fn every_check_of_the_harness_passes() {
    conforms("", "seed");
}

#[test]
fn every_check_passes_for_clients_of_later_revisions() {
    conforms("?values=native", "v4");
}

// ---- Who gets in ----

#[tokio::test]
async fn a_page_of_another_origin_and_a_client_without_a_token_are_refused_at_the_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let status = async |name: &'static str, value: String| {
        let mut request = repl_url(&server).into_client_request().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        match tokio_tungstenite::connect_async(request).await {
            Err(SocketError::Http(response)) => response.status().as_u16(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(status("Origin", "http://evil.example".into()).await, 403);
    assert_eq!(status("X-Nothing", "x".into()).await, 401);
    assert_eq!(status("Authorization", "Bearer alk_wrong".into()).await, 401);
    let with_token = format!("{}?token={}", repl_url(&server), token(&server));
    let client = ReplClient::connect(&with_token, None).await.unwrap();
    assert_eq!(client.eval("1 + 1", None).await.unwrap().value.unwrap().text(), "2");
}

#[tokio::test]
async fn a_session_is_held_by_one_client_and_others_are_not_disturbed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let (url, token) = (repl_url(&server), token(&server));
    let mut usual = Spoken::connect(&url, &token).await;
    let mut named = Spoken::connect(&format!("{url}?session=a%20b"), &token).await;
    usual.value("let who = 'usual'").await;
    named.value("let who = 'named'").await;
    let mut next = Spoken::connect(&url, &token).await;
    assert_eq!(usual.next().await["reason"], "new_connection");
    assert!(usual.receive().await.is_none());
    assert_eq!(next.value("who").await, "usual");
    assert_eq!(named.value("who").await, "named");
}

// ---- Evaluating ----

#[tokio::test]
async fn definitions_stay_and_can_be_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    repl.value("const a = 1; let b = 2; class C { x = a + b }; function f() { return a * 10 }")
        .await;
    assert_eq!(repl.value("[a, b, new C().x, f()]").await, json!([1, 2, 3, 10]));
    repl.value("const a: number = 5; class C { x = 'again' }").await;
    assert_eq!(repl.value("[a, new C().x, f()]").await, json!([5, "again", 50]));
    repl.value("let b").await;
    assert_eq!(repl.eval("b").await["hasValue"], false);
    assert_eq!(repl.value("enum Color { Red = 7 }; await Promise.resolve(Color.Red)").await, 7);
    let failed = repl.eval("console.log('before');\nnull.x").await;
    assert_eq!(failed["error"]["details"]["line"], 2);
    assert_eq!(failed["error"]["details"]["stdout"], "before\n");
    // What was not awaited goes on, and the next eval can wait for it.
    repl.value("let later = tools.demo.echo({ message: 'late' })").await;
    assert_eq!(repl.value("(await later).message").await, "late");
}

#[tokio::test]
async fn code_that_does_not_yield_is_stopped_and_says_that_its_definitions_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    repl.value("let kept = 1").await;
    let stuck =
        json!({"type": "eval", "code": "[].sort.call({length: 2**53 - 1})", "timeoutMs": 200});
    let failed = repl.ask(stuck).await;
    assert_eq!(failed["error"]["code"], "evalTimeout");
    assert_eq!(failed["error"]["details"]["stateLost"], true);
    assert_eq!(repl.of_type("assembly_reload").await["assembly"], "evaluator");
    assert_eq!(repl.eval("kept").await["type"], "eval_error");
    assert_eq!(repl.value("1 + 1").await, 2);
}

#[tokio::test]
async fn polls_and_lists_are_answered_while_an_eval_computes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let job =
        repl.ask(json!({"type": "command_call", "name": "demo.sleep", "args": {"ms": 60_000}}));
    let job = job.await["jobId"].as_str().unwrap().to_owned();
    let busy =
        repl.send(json!({"type": "eval", "code": "while (true) {}", "timeoutMs": 60_000})).await;
    for _ in 0..200 {
        let status = repl.ask(json!({"type": "job_status", "jobId": job})).await;
        assert_eq!(status["state"], "running");
    }
    repl.ask(json!({"type": "commands_list"})).await;
    repl.ask(json!({"type": "journal_query"})).await;
    repl.send(json!({"type": "cancel", "targetId": busy})).await;
    assert_eq!(repl.answer(&busy).await["error"]["code"], "evalCancelled");
    let ended = repl.ask(json!({"type": "job_cancel", "jobId": job})).await;
    assert_eq!(ended["accepted"], true);
}

#[tokio::test]
async fn an_eval_that_must_ask_waits_without_blocking_and_is_answered_from_another_door() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let code = "await tools.demo.ask({ text: 'may I?' })";
    let asking = repl.send(json!({"type": "eval", "code": code, "timeoutMs": 60_000})).await;
    let http = server.client("admin");
    let question = loop {
        let open = http.get("/api/questions").json();
        if let Some(question) = open["questions"].get(0) {
            break question.clone();
        }
        // Meanwhile the connection answers.
        repl.ask(json!({"type": "complete", "code": "JSON."})).await;
    };
    let id = question["id"].as_str().or(question["executionId"].as_str()).unwrap();
    assert_eq!(http.resume(id, "accept").status, 200);
    let told = repl.answer(&asking).await;
    assert_eq!(told["value"], r#"{"approved":true,"text":"may I?"}"#);
}

// ---- Commands, jobs, files ----

#[tokio::test]
async fn commands_of_a_script_are_typed_timed_and_write_files() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("commands.js");
    let text = r#"
        const text = { type: "string" };
        Repl.command(
            { name: "text.shout", inputSchema: { type: "object", properties: { text }, required: ["text"] },
              outputSchema: { type: "object", properties: { text }, required: ["text"] } },
            ({ text }, context) => {
                context.artifact("../../shouted.txt", text.toUpperCase(), "text/plain");
                return text === "lie" ? {} : { text: text.toUpperCase() };
            });
        Repl.command({ name: "slow" }, () => new Promise((done) => setTimeout(done, 3_600_000)));
        Repl.command({ name: "picky" }, () => {
            throw Object.assign(new Error("not now"), { kind: "precondition_failed", code: "tooEarly" });
        });
    "#;
    std::fs::write(&script, text).unwrap();
    let server =
        Served::start(&folder.path().join("data"), &["--repl-script", script.to_str().unwrap()]);
    let mut repl = spoken(&server).await;
    let listed = repl.ask(json!({"type": "commands_list"})).await;
    let names: Vec<&str> = listed["commands"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert!(["demo.echo", "picky", "slow", "text.shout"].iter().all(|name| names.contains(name)));
    assert!(listed["since"].is_string());
    let call =
        |name: &str, args: Value| json!({"type": "command_call", "name": name, "args": args});
    let misfit = repl.ask(call("text.shout", json!({"text": 5}))).await;
    assert_eq!(misfit["error"]["code"], "argsSchemaViolation");
    let lied = repl.ask(call("text.shout", json!({"text": "lie"}))).await;
    assert_eq!(lied["error"]["code"], "handlerFailed");
    let shouted = repl.ask(call("text.shout", json!({"text": "hey"}))).await;
    assert_eq!(shouted["output"], json!({"text": "HEY"}));
    let file = &shouted["artifacts"]["../../shouted.txt"];
    assert!(file.get("path").is_none());
    let path = file["uri"].as_str().unwrap().split_once("/repl/").unwrap().1;
    assert!(path.ends_with("/_.._shouted.txt"), "{path}");
    let read = server.client_with("nobody").get(&format!("/repl/{path}"));
    assert_eq!((read.status, read.body.as_str()), (200, "HEY"));
    let mut late = call("slow", json!({}));
    late["timeoutMs"] = json!(100);
    assert_eq!(repl.ask(late).await["error"]["code"], "commandTimeout");
    let mut late = call("demo.ask", json!({"text": "x"}));
    late["timeoutMs"] = json!(60_000);
    repl.send(late).await;
    let picky = repl.ask(call("picky", json!({}))).await;
    assert_eq!(picky["error"]["kind"], "precondition_failed");
    assert_eq!(picky["error"]["code"], "tooEarly");
}

#[tokio::test]
async fn jobs_files_and_the_journal_are_read_back_after_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Served::start(&data, &[]);
    let mut repl = spoken(&server).await;
    let call =
        |name: &str, args: Value| json!({"type": "command_call", "name": name, "args": args});
    let id_of = |frame: Value| frame["jobId"].as_str().unwrap().to_owned();
    let done = id_of(repl.ask(call("demo.sleep", json!({"ms": 1}))).await);
    while repl.ask(json!({"type": "job_status", "jobId": done})).await["type"] != "job_result" {}
    let running = id_of(repl.ask(call("demo.sleep", json!({"ms": 600_000}))).await);
    repl.value("Repl.command({ name: 'forever', kind: 'job' }, () => new Promise(() => {}))").await;
    let lost = id_of(repl.ask(call("forever", json!({}))).await);
    let wrote = repl.ask(call("demo.artifact", json!({}))).await;
    let file = wrote["artifacts"]["note"].clone();
    repl.value("1 + 41").await;
    repl.ask(json!({"type": "journal_query"})).await;
    server.kill();

    let server = Served::start(&data, &[]);
    let mut repl = spoken(&server).await;
    let status = |job: &str| json!({"type": "job_status", "jobId": job});
    let read = repl.ask(status(&done)).await;
    assert_eq!((&read["state"], &read["output"]), (&json!("done"), &json!({"slept": 1})));
    assert_eq!(repl.ask(status(&running)).await["type"], "job_status_result");
    let ended = repl.ask(json!({"type": "job_cancel", "jobId": running})).await;
    assert_eq!(ended["accepted"], true);
    let cancelled = loop {
        let told = repl.ask(status(&running)).await;
        if told["type"] == "job_result" {
            break told;
        }
    };
    assert_eq!(cancelled["state"], "cancelled");
    assert_eq!(repl.ask(status(&lost)).await["error"]["details"]["stateLost"], true);
    let path = file["uri"].as_str().unwrap().split_once("/repl/").unwrap().1;
    let read = server.client_with("nobody").get(&format!("/repl/{path}"));
    assert!(read.body.starts_with("Written by demo.artifact"), "{read:?}");
    let journal = repl.ask(json!({"type": "journal_query", "kind": "eval", "limit": 1})).await;
    assert_eq!(journal["entries"][0]["code"], "1 + 41");
    let commands = repl.ask(json!({"type": "journal_query", "kind": "command"})).await;
    let names: Vec<&str> = commands["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert!(names.contains(&"demo.sleep") && names.contains(&"demo.artifact"), "{names:?}");
}

// ---- Our own client ----

#[tokio::test]
async fn the_rust_client_does_what_the_protocol_can() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let client = ReplClient::connect(&repl_url(&server), Some(&token(&server))).await.unwrap();
    assert_eq!(client.handshake().evaluator.name, "QuickJS");
    let (a, b) = tokio::join!(client.eval("20 + 1", None), client.eval("40 + 2", None));
    assert_eq!((a.unwrap().value.unwrap().text(), b.unwrap().value.unwrap().text()), ("21", "42"));
    let failed = client.eval("throw new RangeError('no')", None).await.unwrap_err();
    assert!(matches!(&failed, ReplError::Failed(error) if error.message == "RangeError: no"));
    assert_eq!(client.complete("tools.demo.ec", None).await.unwrap(), ["echo"]);
    assert_eq!(client.complete("tools.demo.add({ ", None).await.unwrap(), ["a", "b"]);
    client.eval("let ticks = 0", None).await.unwrap();
    let mut watch = client.watch("++ticks", 1, Some(3)).await.unwrap();
    let mut seen = vec![];
    while let Some(tick) = watch.next().await {
        seen.push(tick.unwrap().value.unwrap().text().to_owned());
    }
    assert_eq!(seen, ["1", "2", "3"]);
    let Called::Job(job) = client.call("demo.sleep", json!({"ms": 5}), None).await.unwrap() else {
        panic!("a job")
    };
    let ended = loop {
        if let Job::Ended(ended) = client.job(&job).await.unwrap() {
            break ended;
        }
    };
    assert_eq!(ended.output, Some(json!({"slept": 5})));
    assert!(client.reset().await.unwrap());
    assert!(client.eval("ticks", None).await.is_err());
    let entries = client.journal(None, 2).await.unwrap();
    assert_eq!(entries[1].name.as_deref(), Some("reset"));
    let _second = ReplClient::connect(&repl_url(&server), Some(&token(&server))).await.unwrap();
    assert!(matches!(client.closed().await, ReplError::Evicted));
    assert!(matches!(client.eval("1", None).await, Err(ReplError::Evicted)));
}

#[tokio::test]
async fn the_lone_server_speaks_at_every_path_and_says_where_the_door_is_when_another_owns_the_data()
 {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let words = ["repl-server", "--listen", "ws://127.0.0.1:0", "--no-auth", "--data-dir", data];
    let server = Lone::start(&words);
    let client = ReplClient::connect(&server.url, None).await.unwrap();
    assert_eq!(client.eval("1 + 1", None).await.unwrap().value.unwrap().text(), "2");
    let second = airlock(&words).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.contains(&format!("its REPL is at {}/repl", server.url)), "{said}");
    let journal = airlock(&["journal", "--url", &server.url, "--json"]).output().unwrap();
    let line: Value = serde_json::from_slice(&journal.stdout).unwrap();
    assert_eq!((&line["code"], &line["success"]), (&json!("1 + 1"), &json!(true)));
}

/// A running `airlock repl-server`. Dropping it kills it.
struct Lone {
    child: std::process::Child,
    url: String,
}

impl Lone {
    fn start(words: &[&str]) -> Self {
        use std::io::{BufRead as _, BufReader};
        use std::process::Stdio;
        let mut child =
            airlock(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let url = ready.trim().strip_prefix("Airlock is ready at ").unwrap();
        Self { child, url: url.replacen("http", "ws", 1) }
    }
}

impl Drop for Lone {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// ---- A terminal ----

#[tokio::test]
async fn the_prompt_works_in_a_real_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap().to_owned();
    let saved: PathBuf = folder.path().join("saved.js");
    let mut terminal = Terminal::open(&["repl", "--demo", "--data-dir", &home], &home).await;
    terminal.enters("let x = 20 + 1\r").await;
    // Numbers have a colour.
    terminal.sees("\u{1b}[33m20").await;
    terminal.enters("x * 2\r").await;
    terminal.sees("42").await;
    // A text that goes on in the next line.
    terminal.enters("[1, 2,\r7].length * 100\r").await;
    terminal.sees("300").await;
    terminal.enters("tools.demo.ech\t").await;
    terminal.sees("tools.demo.echo").await;
    terminal.types("\u{3}").await;
    terminal.enters("while (true) {}\r").await;
    terminal.sees("\u{1b}[?2004l").await;
    terminal.types("\u{3}").await;
    terminal.sees("Eval was cancelled").await;
    terminal.enters(".watch 2 x\r").await;
    terminal.sees("21\r\n21").await;
    terminal.enters(".run demo.sleep {\"ms\": 1}\r").await;
    terminal.sees("job ").await;
    terminal.enters(".jobs\r").await;
    terminal.sees("demo.sleep").await;
    terminal.enters(&format!(".save {}\r", saved.display())).await;
    terminal.sees("texts are in").await;
    terminal.enters(".reset\r").await;
    terminal.enters("typeof x\r").await;
    terminal.sees("\"undefined\"").await;
    terminal.enters(&format!(".load {}\r", saved.display())).await;
    terminal.enters("x + 100\r").await;
    terminal.sees("121").await;
    terminal.enters(".journal 3\r").await;
    terminal.sees("x + 100").await;
    terminal.enters(".help\r").await;
    terminal.sees(".load FILE").await;
    terminal.enters("\u{4}").await;
    assert_eq!(terminal.ends().await, 0);
    let history = std::fs::read_to_string(folder.path().join("repl-history")).unwrap();
    assert!(history.contains("let x = 20 + 1"), "{history}");
}

/// A program in a terminal, which our own exec-server provides.
struct Terminal {
    client: client::exec_server::ExecServerClient,
    events: client::exec_server::Events,
    seen: String,
    _server: client::exec_server::SpawnedExecServer,
}

impl Terminal {
    async fn open(words: &[&str], home: &str) -> Self {
        use client::exec_server::{
            ExecServerClientConnectOptions, ExecServerLaunchCommand, exec_params,
            spawn_local_exec_server,
        };
        let program = env!("CARGO_BIN_EXE_airlock");
        let launch = ExecServerLaunchCommand {
            program: program.into(),
            args: ["exec-server", "--listen", "stdio://"].map(Into::into).to_vec(),
        };
        let options = ExecServerClientConnectOptions::default();
        let server = spawn_local_exec_server(launch, options).await.unwrap();
        let client = server.client().clone();
        let events = client.events();
        let argv: Vec<&str> = std::iter::once(program).chain(words.iter().copied()).collect();
        let mut params = exec_params("repl", &argv, home);
        params.tty = true;
        params.env.extend([
            ("TERM".to_owned(), "xterm-256color".to_owned()),
            ("HOME".to_owned(), home.to_owned()),
        ]);
        client.exec(params).await.unwrap();
        Self { client, events, seen: String::new(), _server: server }
    }

    async fn types(&self, text: &str) {
        self.client.write("repl", text).await.unwrap();
    }

    /// Types as soon as there is a prompt: what is typed before it is not the prompt's.
    async fn enters(&mut self, text: &str) {
        self.sees("\u{1b}[?2004h").await;
        self.types(text).await;
    }

    /// Waits until that is on the screen after what was seen before.
    async fn sees(&mut self, text: &str) {
        use client::exec_server::ExecServerEvent;
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let next = tokio::time::timeout(std::time::Duration::from_secs(30), self.events.next());
            match next.await.unwrap_or_else(|_| panic!("{text:?} is not in {:?}", self.seen)) {
                Some(ExecServerEvent::OutputDelta(said)) => {
                    self.seen.push_str(&String::from_utf8_lossy(&said.chunk.0));
                }
                other => panic!("{text:?} is not in {:?}, and then {other:?}", self.seen),
            }
        }
    }

    async fn ends(&mut self) -> i32 {
        use client::exec_server::ExecServerEvent;
        loop {
            if let ExecServerEvent::Exited(exited) = self.events.next().await.unwrap() {
                return exited.exit_code;
            }
        }
    }
}
