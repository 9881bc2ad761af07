//! The published `executor` 1.5.9 from npm, driven through its own command line against our server.
//!
//! It is installed below the target directory, once. Where npm cannot, the test says so and shows nothing.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should stop; it owns and awaits its children"
)]

mod served;

use serde_json::{Value, json};
use served::{Client, airlock};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const VERSION: &str = "1.5.9";
const BINARY: &str = "node_modules/executor-linux-x64/bin/executor";
const SECRET: &str = "from-the-environment-0123456789-abcdef";

#[test]
fn the_published_command_line_calls_pauses_and_resumes() {
    let Some(binary) = installed() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    assert!(server.is_found(), "this client finds servers by their catalogue over HTTP");
    let cli = Cli { binary, home: folder.path().join("home"), url: server.url.clone() };

    cli.check(&["call", "demo", "add", r#"{"a":1,"b":2}"#], 0, "3\n");
    cli.check(&["call", "demo", "fail", r#"{"message":"no luck"}"#], 1, "");
    let found: Value =
        serde_json::from_str(&cli.says(&["tools", "search", "adds numbers"]).1).unwrap();
    assert_eq!(found["items"][0]["path"], "demo.add");
    let sources: Value = serde_json::from_str(&cli.says(&["tools", "sources"]).1).unwrap();
    assert!(sources["items"].as_array().unwrap().iter().any(|source| source["id"] == "demo"));

    let asked = cli.pauses(&["call", "demo", "ask", r#"{"text":"x"}"#]);
    let approved = json!({ "approved": true, "text": "x" });
    let resume =
        |id: &str, action: &str| cli.says(&["resume", "--execution-id", id, "--action", action]);
    for action in ["accept", "decline"] {
        // The second answer changes nothing: what followed the first is told again.
        let (code, told, _) = resume(&asked, action);
        assert_eq!((code, serde_json::from_str(&told).ok()), (Some(0), Some(approved.clone())));
    }
    let asked = cli.pauses(&["call", "demo", "ask", r#"{"text":"y"}"#]);
    let (code, _, error) = resume(&asked, "decline");
    let sentence = "Tool \"demo.ask\" requires approval but the request was declined by the user.";
    assert_eq!((code, error.trim()), (Some(1), sentence));

    let form = r#"{"message":"Who?","schema":{"type":"object","required":["n"]}}"#;
    let asked = cli.pauses(&["call", "demo", "form", form]);
    let fill_in = |content: &str| {
        let (code, told, _) = cli.says(&["resume", "--execution-id", &asked, "--content", content]);
        (code, serde_json::from_str::<Value>(&told).ok())
    };
    assert_eq!(fill_in("{}").0, Some(1), "what does not fit is told");
    assert_eq!(fill_in(r#"{"n":1}"#), (Some(0), Some(json!({ "n": 1 }))));
    assert_eq!(resume("exec_00000000-0000-4000-8000-000000000001", "accept").0, Some(1));
}

struct Cli {
    binary: PathBuf,
    home: PathBuf,
    url: String,
}

impl Cli {
    /// How it ends and what it prints.
    fn says(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(&self.binary)
            .args(words)
            .args(["--base-url", &self.url])
            .env("HOME", &self.home)
            .env("EXECUTOR_DATA_DIR", self.home.join("executor"))
            .env("EXECUTOR_API_KEY", SECRET)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    #[track_caller]
    fn check(&self, words: &[&str], code: i32, printed: &str) {
        let (ended, told, error) = self.says(words);
        assert_eq!((ended, told.as_str()), (Some(code), printed), "{error}");
    }

    /// Calls what asks, and returns the id to resume.
    #[track_caller]
    fn pauses(&self, words: &[&str]) -> String {
        let (code, told, error) = self.says(words);
        assert_eq!(code, Some(0), "{error}");
        let id = told.lines().find_map(|line| line.strip_prefix("executionId: "));
        id.unwrap_or_else(|| panic!("it did not pause: {told}")).to_owned()
    }
}

/// A server on a loopback address that this client does not take for its own daemon's.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(data_dir: &Path) -> Self {
        let mut child = airlock(&["serve", "--listen", "127.0.0.2:0", "--demo", "--data-dir"])
            .arg(data_dir)
            .env("AIRLOCK_ADMIN_TOKEN", SECRET)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let url = ready.trim().strip_prefix("Airlock is ready at ").unwrap().to_owned();
        Self { child, url }
    }

    /// Whether it answers what the client asks first.
    fn is_found(&self) -> bool {
        let address = self.url.strip_prefix("http://").unwrap().to_owned();
        Client { address, secret: SECRET.into() }.get("/api/integrations").status == 200
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn installed() -> Option<PathBuf> {
    let exe = std::env::current_exe().unwrap();
    let folder = exe.ancestors().nth(3).unwrap().join(format!("executor-{VERSION}"));
    let binary = folder.join(BINARY);
    if binary.is_file() {
        return Some(binary);
    }
    std::fs::create_dir_all(&folder).unwrap();
    let installing = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--prefix"])
        .arg(&folder)
        .arg(format!("executor@{VERSION}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if installing.is_ok_and(|status| status.success()) && binary.is_file() {
        return Some(binary);
    }
    skip("npm could not install it");
    None
}

#[expect(clippy::print_stderr, reason = "a test that shows nothing must say so")]
fn skip(why: &str) {
    eprintln!("SKIPPED: executor {VERSION} against our server: {why}");
}
