//! `airlock repl`, `repl-server` and `journal`, and the Rust client that they use.

use crate::repl_client::{repl_url, token};
use crate::server_fixture::{Served, airlock};
use client::repl::{CommandOutcome, JobSnapshot, ReplClient, ReplError};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[tokio::test]
async fn the_rust_client_does_what_the_protocol_can() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let client = ReplClient::connect(&repl_url(&server), Some(&token(&server))).await.unwrap();
    assert_eq!(client.handshake().evaluator.name, "QuickJS");
    let (a, b) = tokio::join!(client.eval("20 + 1", None), client.eval("40 + 2", None));
    assert_eq!(
        (a.unwrap().value.unwrap().as_text(), b.unwrap().value.unwrap().as_text()),
        ("21", "42")
    );
    let failed = client.eval("throw new RangeError('no')", None).await.unwrap_err();
    assert!(matches!(&failed, ReplError::Failed(error) if error.message == "RangeError: no"));
    assert_eq!(client.complete("tools.demo.ec", None).await.unwrap(), ["echo"]);
    assert_eq!(client.complete("tools.demo.add({ ", None).await.unwrap(), ["a", "b"]);
    client.eval("let ticks = 0", None).await.unwrap();
    let mut watch = client.watch("++ticks", 1, Some(3)).await.unwrap();
    let mut seen = vec![];
    while let Some(tick) = watch.next().await {
        seen.push(tick.unwrap().value.unwrap().as_text().to_owned());
    }
    assert_eq!(seen, ["1", "2", "3"]);
    let CommandOutcome::Job(job) = client.call("demo.sleep", json!({"ms": 5}), None).await.unwrap()
    else {
        panic!("a job")
    };
    let ended = loop {
        if let JobSnapshot::Ended(ended) = client.job(&job).await.unwrap() {
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
    let server = Lone::start(&words, folder.path());
    let client = ReplClient::connect(&server.url, None).await.unwrap();
    assert_eq!(client.eval("1 + 1", None).await.unwrap().value.unwrap().as_text(), "2");
    let second = airlock(&words).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.contains(&format!("its REPL is at {}/repl", server.url)), "{said}");
    let journal = airlock(&["journal", "--url", &server.url, "--json"]).output().unwrap();
    let line: Value = serde_json::from_slice(&journal.stdout).unwrap();
    assert_eq!((&line["code"], &line["success"]), (&json!("1 + 1"), &json!(true)));
    let named = format!("{}/?session=a%20b", server.url);
    ReplClient::connect(&named, None).await.unwrap().eval("2 + 2", None).await.unwrap();
    let words = ["journal", "--url", &server.url, "--session", "a b", "--json"];
    let journal = airlock(&words).output().unwrap();
    let line: Value = serde_json::from_slice(&journal.stdout).unwrap();
    assert_eq!(line["code"], "2 + 2");
}

#[tokio::test]
async fn a_server_is_found_by_its_document_which_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let documents = || -> Vec<Value> {
        let entries = std::fs::read_dir(state.join("hotrepl/instances")).unwrap();
        let read = |path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        entries.map(|entry| read(entry.unwrap().path())).collect()
    };
    let discover = || {
        let mut command = airlock(&["journal", "--discover", "--json"]);
        let output = command.env("XDG_RUNTIME_DIR", &state).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let start = |name: &str, listen: &str| {
        let data = folder.path().join(name);
        let data = data.to_str().unwrap();
        let words = ["repl-server", "--listen", listen, "--no-auth", "--data-dir", data];
        Lone::start(&words, &state)
    };
    let mut first = start("first", "ws://127.0.0.1:0");
    let [document] = documents().try_into().unwrap();
    let port: u16 = first.url.rsplit(':').next().unwrap().parse().unwrap();
    let told = ["schemaVersion", "url", "bindHost", "port", "controlPlane"]
        .map(|member| document[member].clone());
    let expected = [
        json!(1),
        json!(first.url),
        json!("127.0.0.1"),
        json!(port),
        json!({"supported": true, "protocolVersion": 2}),
    ];
    assert_eq!(told, expected);
    assert_eq!(document["process"]["id"], first.child.id());
    assert!(discover().0);

    // If there are several servers, the verb does not choose one.
    let second = start("second", "ws://127.0.0.1:0");
    let (found, said) = discover();
    assert!(!found && said.contains(&first.url) && said.contains(&second.url), "{said}");
    // A killed server leaves its document, and is not found; the next server at its port removes the document.
    drop(second);
    assert_eq!(documents().len(), 2);
    assert!(discover().0);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let (found, said) = discover();
    assert!(!found && said.contains("no HotRepl server"), "{said}");
    let again = start("first", &first.url);
    assert_eq!(documents().iter().filter(|it| it["url"] == again.url.as_str()).count(), 1);
    assert_eq!(again.stop(), Some(0));
    assert!(documents().iter().all(|it| it["url"] != first.url.as_str()));
}

/// The output of a prompt whose input is a file, its errors, and whether it exited with success.
fn fed(lines: &str) -> (String, String, bool) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("input");
    std::fs::write(&file, lines).unwrap();
    let mut command = airlock(&["repl", "--demo", "--data-dir", folder.path().to_str().unwrap()]);
    let output = command.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.success())
}

#[test]
fn a_text_that_the_input_leaves_open_is_evaluated_and_no_line_is_swallowed() {
    let (printed, complaints, is_good) = fed("1 + 41\n[1,\n2");
    assert!(printed.contains("42") && complaints.contains("(2,2): error"), "{printed}{complaints}");
    assert!(!is_good);
    // The prompt counts the bracket as one, because it does not know the language.
    let (printed, _, is_good) = fed("/[(]/.test('(')\n");
    assert!(printed.contains("true") && is_good, "{printed}");
    let (printed, complaints, is_good) = fed(".run demo.echo {bad\n1 + 41\n");
    assert!(complaints.contains("must be a JSON object"), "{complaints}");
    assert!(printed.contains("42") && is_good, "{printed}");
}

/// A running `airlock repl-server`. Dropping it kills it.
struct Lone {
    child: std::process::Child,
    url: String,
}

impl Lone {
    /// Starts one with the user's state in this folder.
    fn start(words: &[&str], state: &Path) -> Self {
        use std::io::{BufRead as _, BufReader};
        use std::process::Stdio;
        let mut command = airlock(words);
        command.env("XDG_RUNTIME_DIR", state).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let url = ready.trim().strip_prefix("Airlock is ready at ").unwrap();
        Self { child, url: url.replacen("http", "ws", 1) }
    }

    /// Sends SIGTERM and returns the exit code.
    #[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
    fn stop(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(
            std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success()
        );
        self.child.wait().unwrap().code()
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
    // Numbers are coloured.
    terminal.sees("\u{1b}[33m20").await;
    terminal.enters("x * 2\r").await;
    terminal.sees("42").await;
    // An expression that continues on the next line.
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

/// A program in a terminal that our own exec-server provides.
struct Terminal {
    client: client::exec_server::ExecServerClient,
    events: client::exec_server::ProcessEvents,
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

    /// Types as soon as there is a prompt: input that is typed earlier does not reach the prompt.
    async fn enters(&mut self, text: &str) {
        self.sees("\u{1b}[?2004h").await;
        self.types(text).await;
    }

    /// Waits until the text is on the screen, after the text that was seen before.
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
