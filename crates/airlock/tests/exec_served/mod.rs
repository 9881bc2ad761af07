//! Exec-servers that are running, and what tests of them need.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio as Streams};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

pub(crate) const AIRLOCK: &str = env!("CARGO_BIN_EXE_airlock");

/// The codex that was recorded.
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

/// Runs a script; `None` where there is no node.
pub(crate) fn node(words: &[&str]) -> Option<Output> {
    let output = command("node").args(words).stdin(Streams::null()).output();
    if output.is_err() {
        skipped("this check needs node, and there is none");
    }
    output.ok()
}

pub(crate) fn bash(script: &Path, words: &[&str]) {
    let output = command("bash").arg(script).args(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The real codex, installed once under target/; `None` where it cannot be had.
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

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// An exec-server over stdio, spoken to in raw messages.
pub(crate) struct Stdio {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Stdio {
    pub(crate) fn start(words: &[&str]) -> Self {
        let mut child = command(AIRLOCK)
            .arg("exec-server")
            .args(words)
            .stdin(Streams::piped())
            .stdout(Streams::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
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
        // Whoever did not read everything must not keep it.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Waits until a process is gone.
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

/// A way to a server that can be cut.
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

    /// Cuts the connection that is there.
    pub(crate) fn cut(&self) {
        self.scissors.notify_one();
    }
}

/// What the server says to somebody who wants a WebSocket.
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
