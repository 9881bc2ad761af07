//! Running exec-servers, and helpers for their tests.

use client::exec_server::{
    ExecServerClient, ExecServerEvent, ProcessEvents, RemoteExecServerConnectArgs,
};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio as Streams};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::Message;

pub(crate) const AIRLOCK: &str = env!("CARGO_BIN_EXE_airlock");

/// The version of codex that was recorded.
const CODEX: &str = "@openai/codex@0.166.0";

pub(crate) fn conformance(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/exec-server").join(file)
}

#[expect(clippy::disallowed_methods, reason = "every caller waits for the child or kills it")]
fn command(program: &str) -> Command {
    Command::new(program)
}

#[expect(clippy::print_stderr, reason = "a skipped check must not look like a passed one")]
fn skipped(why: &str) {
    eprintln!("SKIPPED, NOT PASSED: {why}");
}

/// The environment of the machine of the recordings: variables that were set, and others that were not. Processes
/// inherit it.
const SET: [(&str, &str); 2] = [("LANG", "C.UTF-8"), ("SHELL", "/bin/bash")];
const UNSET: [&str; 8] =
    ["LC_ALL", "LC_CTYPE", "LOGNAME", "TEMP", "TMP", "TMPDIR", "USER", "USERNAME"];

/// Runs a script; `None` if node is not installed.
pub(crate) fn node(words: &[&str]) -> Option<Output> {
    let mut command = command("node");
    for name in UNSET {
        command.env_remove(name);
    }
    let output = command.envs(SET).args(words).stdin(Streams::null()).output();
    if output.is_err() {
        skipped("this check needs node, and there is none");
    }
    output.ok()
}

pub(crate) fn bash(script: &Path, words: &[&str]) {
    let output = command("bash").arg(script).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The real codex, installed once under target/; `None` if it cannot be installed.
pub(crate) fn codex() -> Option<String> {
    let target = Path::new(AIRLOCK).ancestors().nth(2).unwrap();
    let folder = target.join("codex-cli");
    let program = folder.join("node_modules/.bin/codex");
    if !program.exists() {
        let words = ["install", "--no-audit", "--no-fund", "--prefix", folder.to_str().unwrap()];
        let installed = command("npm").args(words).arg(CODEX).output();
        if !installed.is_ok_and(|output| output.status.success()) || !program.exists() {
            skipped("the package @openai/codex could not be installed");
            return None;
        }
    }
    Some(program.to_str().unwrap().to_owned())
}

/// An exec-server that listens. Dropping it kills it.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
}

impl Served {
    pub(crate) fn start(words: &[&str]) -> Self {
        Self::run(&[&["--no-auth"], words].concat())
    }

    pub(crate) fn start_with_token() -> Self {
        Self::run(&[])
    }

    fn run(words: &[&str]) -> Self {
        let mut child = command(AIRLOCK)
            .args(["exec-server", "--listen", "ws://127.0.0.1:0"])
            .args(words)
            .env_remove("AIRLOCK_TOKEN")
            .stdout(Streams::piped())
            .stderr(Streams::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }
}

impl Served {
    /// The number of the server's open descriptors, and of the processes below it.
    pub(crate) fn descriptors_and_children(&self) -> (usize, usize) {
        let own = self.child.id();
        let n_open = std::fs::read_dir(format!("/proc/{own}/fd")).unwrap().count();
        let (mut below, mut n_below) = (vec![own], 0);
        while let Some(pid) = below.pop() {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
            for task in tasks.into_iter().flatten().flatten() {
                let listed = std::fs::read_to_string(task.path().join("children"));
                for child in listed.unwrap_or_default().split_whitespace() {
                    n_below += 1;
                    below.push(child.parse().unwrap());
                }
            }
        }
        (n_open, n_below)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// An exec-server over stdio, driven with raw messages.
pub(crate) struct Stdio {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    n_asked: i64,
    notes: Vec<Value>,
}

impl Stdio {
    pub(crate) fn start(words: &[&str]) -> Self {
        Self::start_with(words, &[])
    }

    /// A server with these variables, greeted in today's dialect.
    pub(crate) fn greeted(env: &[(&str, &str)]) -> Self {
        let mut server = Self::start_with(&[], env);
        server.greet(json!({"clientName": "test", "resumeSessionId": null})).unwrap();
        server
    }

    /// A server with these variables.
    pub(crate) fn start_at(words: &[&str], env: &[(&str, &str)]) -> Self {
        Self::start_with(words, env)
    }

    fn start_with(words: &[&str], env: &[(&str, &str)]) -> Self {
        let mut child = command(AIRLOCK)
            .arg("exec-server")
            .args(words)
            .envs(env.iter().copied())
            .stdin(Streams::piped())
            .stdout(Streams::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines, n_asked: 0, notes: vec![] }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends the greeting.
    pub(crate) fn greet(&mut self, params: Value) -> Result<Value, (i64, String)> {
        let answer = self.ask("initialize", params)?;
        self.send(&json!({"method": "initialized"}));
        Ok(answer)
    }

    /// Sends a request and waits for the answer; notifications that arrive before it are queued.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Result<Value, (i64, String)> {
        self.n_asked += 1;
        let id = self.n_asked;
        self.send(&json!({"id": id, "method": method, "params": params}));
        loop {
            let mut message = self.next();
            if message["id"] != id {
                self.notes.push(message);
                continue;
            }
            let error = message["error"].take();
            if error.is_null() {
                return Ok(message["result"].take());
            }
            let text = error["message"].as_str().unwrap().to_owned();
            return Err((error["code"].as_i64().unwrap(), text));
        }
    }

    /// The next notification, from the queue or from the server.
    pub(crate) fn note(&mut self) -> Value {
        if self.notes.is_empty() { self.next() } else { self.notes.remove(0) }
    }

    pub(crate) fn next(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "the server left");
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // A server with unread output must not outlive its test.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Waits until a process has ended.
pub(crate) async fn gone(pid: i32) {
    for _ in 0..3_000 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{pid} is still there");
}

/// A proxy to a server, whose connection can be cut.
pub(crate) struct Proxy {
    pub(crate) url: String,
    scissors: Arc<Notify>,
    _accepting: tokio::task::JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn start(url: &str) -> Self {
        let server = url.strip_prefix("ws://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let scissors = Arc::new(Notify::new());
        let cut = Arc::clone(&scissors);
        let mut accepting = tokio::task::JoinSet::new();
        accepting.spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut upstream = TcpStream::connect(&server).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut client, &mut upstream) => {}
                    () = cut.notified() => {}
                }
            }
        });
        Self { url, scissors, _accepting: accepting }
    }

    /// Cuts the current connection.
    pub(crate) fn cut(&self) {
        self.scissors.notify_one();
    }
}

/// The server's response to a WebSocket upgrade.
pub(crate) fn upgrade(url: &str, more: &[(&str, &str)]) -> String {
    let rest = url.strip_prefix("ws://").unwrap();
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let host = more.iter().find(|(name, _)| *name == "Host").map_or(address, |(_, value)| value);
    let mut head = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n");
    let usual = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for (name, value) in usual.iter().chain(more).filter(|(name, _)| *name != "Host") {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    String::from_utf8_lossy(&start[9..12]).into_owned()
}

/// Servers for `http/request`, one of them with TLS. Dropping it ends them.
pub(crate) struct Sites {
    child: Child,
    pub(crate) http: String,
    pub(crate) https: String,
}

impl Sites {
    /// Starts the servers; `None` if node is not installed.
    pub(crate) fn start() -> Option<Self> {
        let script = conformance("https.mjs");
        let node =
            command("node").arg(script).stdin(Streams::piped()).stdout(Streams::piped()).spawn();
        let Ok(mut child) = node else {
            skipped("this check needs node, and there is none");
            return None;
        };
        let mut ports = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ports).unwrap();
        let ports: Value = serde_json::from_str(&ports).unwrap();
        let at = |scheme: &str| format!("{scheme}://127.0.0.1:{}", ports[scheme]);
        Some(Self { child, http: at("http"), https: at("https") })
    }
}

impl Drop for Sites {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A client over a WebSocket.
pub(crate) async fn connected(server: &Served) -> ExecServerClient {
    let args = RemoteExecServerConnectArgs::new(&server.url, "test");
    ExecServerClient::connect_websocket(args).await.unwrap()
}

/// Collects the events of a process to its end: all of its output, and its exit code.
pub(crate) async fn heard(events: &mut ProcessEvents, process_id: &str) -> (Vec<u8>, i32) {
    let (mut said, mut code) = (vec![], None);
    while let Some(event) = events.next().await {
        if event.process_id() != process_id {
            continue;
        }
        match event {
            ExecServerEvent::OutputDelta(output) => said.extend(output.chunk.0),
            ExecServerEvent::Exited(exited) => code = Some(exited.exit_code),
            ExecServerEvent::Closed(_) => return (said, code.expect("the exit comes first")),
            ExecServerEvent::Lost { .. } => panic!("{event:?}"),
        }
    }
    panic!("the connection ended before {process_id} did");
}

/// A WebSocket, driven with raw messages. Dropping it cuts the connection.
pub(crate) struct Raw {
    socket: tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<TcpStream>>,
    n_asked: i64,
    notes: Vec<Value>,
}

impl Raw {
    pub(crate) async fn connect(url: &str) -> Self {
        let (socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        Self { socket, n_asked: 0, notes: vec![] }
    }

    /// Sends the greeting.
    pub(crate) async fn greet(&mut self, params: Value) -> Value {
        let answer = self.ask("initialize", params).await;
        self.send(&json!({"method": "initialized"}).to_string()).await;
        answer
    }

    /// Greets a session whose last client may still seem connected to the server.
    pub(crate) async fn greet_again(&mut self, params: Value) -> Value {
        /// The session is in use.
        const ATTACHED: i64 = -32_010;
        loop {
            let answer = self.answer("initialize", params.clone()).await;
            if answer["error"]["code"] != ATTACHED {
                self.send(&json!({"method": "initialized"}).to_string()).await;
                return answer["result"].clone();
            }
        }
    }

    /// Sends a request and waits for the answer; notifications that arrive before it are queued.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.answer(method, params).await;
        assert_eq!(answer["error"], Value::Null);
        answer["result"].take()
    }

    async fn answer(&mut self, method: &str, params: Value) -> Value {
        self.n_asked += 1;
        let id = self.n_asked;
        self.send(&json!({"id": id, "method": method, "params": params}).to_string()).await;
        loop {
            let message = self.next().await.expect("the server stays");
            if message["id"] == id {
                return message;
            }
            self.notes.push(message);
        }
    }

    /// The next notification, from the queue or from the server.
    pub(crate) async fn note(&mut self) -> Value {
        if self.notes.is_empty() { self.next().await.unwrap() } else { self.notes.remove(0) }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.socket.send(Message::Text(text.into())).await.unwrap();
    }

    /// Shuts down the sending direction of the connection without a Close frame; incoming messages stay unread.
    pub(crate) async fn close_write(&mut self) {
        use tokio::io::AsyncWriteExt as _;
        self.socket.get_mut().shutdown().await.unwrap();
    }

    /// The next message; `None` once the server has closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            match self.socket.next().await?.ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}

/// The text that a listener prints to stdout and to stderr until it is ready.
pub(crate) fn announced(words: &[&str]) -> (String, String) {
    let mut child = command(AIRLOCK)
        .args(["exec-server", "--listen", "ws://127.0.0.1:0"])
        .args(words)
        .stdout(Streams::piped())
        .stderr(Streams::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    // The listener wrote to stderr first.
    child.kill().unwrap();
    let said = child.wait_with_output().unwrap().stderr;
    (url.trim().to_owned(), String::from_utf8(said).unwrap())
}
