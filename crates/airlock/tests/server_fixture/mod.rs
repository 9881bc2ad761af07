//! The real binary as a server, and a client of a hundred lines.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest wait for anything. Only a server that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The administrator's secret in the environment of every test server.
pub(crate) const ENVIRONMENT_SECRET: &str = "from-the-environment-0123456789-abcdef";

/// A running `airlock serve`. Dropping it kills it.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
    pub(crate) data_dir: PathBuf,
}

impl Served {
    /// Starts a server with the demonstration tools on its own port.
    pub(crate) fn start(data_dir: &Path, more: &[&str]) -> Self {
        Self::begin(data_dir, more, airlock(&["serve"]), Stdio::null())
    }

    /// The same, and the agent may answer, as in Executor: the server permits it, and so does the token `run`.
    pub(crate) fn with_model_answers(data_dir: &Path, more: &[&str]) -> Self {
        let more: Vec<_> = ["--answers", "model"].iter().chain(more).copied().collect();
        let served = Self::start(data_dir, &more);
        served.let_model_answer();
        served
    }

    /// Lets clients with the token `run` answer, as far as the server permits it.
    pub(crate) fn let_model_answer(&self) {
        let json = [("Content-Type", "application/json")];
        let body = r#"{"answers":"model"}"#;
        let changed = self.client("admin").send("PATCH", "/api/tokens/run", &json, body);
        assert_eq!(changed.status, 200, "{changed:?}");
    }

    /// The same, with all log messages in a file, and with a secret in its environment.
    pub(crate) fn telling(
        data_dir: &Path,
        more: &[&str],
        log: std::fs::File,
        secret: &str,
    ) -> Self {
        let mut command = airlock(&["serve"]);
        command.env("AIRLOCK_LOG", "trace").env("SECRET_OF_A_TEST", secret);
        Self::begin(data_dir, more, command, log.into())
    }

    /// The same, with a destination for its log and one additional variable in its environment.
    pub(crate) fn start_with(
        data_dir: &Path,
        more: &[&str],
        log: Stdio,
        variable: Option<(&str, &str)>,
    ) -> Self {
        let mut command = airlock(&["serve"]);
        command.envs(variable);
        Self::begin(data_dir, more, command, log)
    }

    /// A server with exactly these variables of ours in its environment.
    pub(crate) fn start_with_variables(
        data_dir: &Path,
        more: &[&str],
        log: Stdio,
        variables: &[(&str, &str)],
    ) -> Self {
        let mut command = airlock(&["serve"]);
        command.envs(variables.iter().copied());
        Self::begin_in(data_dir, more, command, log)
    }

    /// A server that this command starts, without a secret in its environment.
    pub(crate) fn start_command(command: Command, data_dir: &Path, log: Stdio) -> Self {
        Self::begin_in(data_dir, &[], command, log)
    }

    /// A server that starts in this directory, with its log in a file.
    pub(crate) fn start_in(folder: &Path, data_dir: &Path, more: &[&str], log: Stdio) -> Self {
        let mut command = airlock(&["serve"]);
        command.current_dir(folder).env("HOME", folder.join("home")).env_remove("XDG_CONFIG_HOME");
        Self::begin(data_dir, more, command, log)
    }

    fn begin(data_dir: &Path, more: &[&str], mut command: Command, log: Stdio) -> Self {
        command.env("AIRLOCK_ADMIN_TOKEN", ENVIRONMENT_SECRET);
        Self::begin_in(data_dir, more, command, log)
    }

    fn begin_in(data_dir: &Path, more: &[&str], mut command: Command, log: Stdio) -> Self {
        let mut child = command
            .arg("--demo")
            .args(if more.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] })
            .arg("--data-dir")
            .arg(data_dir)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let url = ready.trim().strip_prefix("Airlock is ready at ");
        let url = url.expect("a server that starts says where it listens").to_owned();
        Self { child, url, data_dir: data_dir.to_owned() }
    }

    /// A client with the token that the first start minted.
    pub(crate) fn client(&self, token: &str) -> Client {
        let secret = std::fs::read_to_string(self.data_dir.join("tokens").join(token)).unwrap();
        self.client_with(secret.trim())
    }

    /// A client with this secret.
    pub(crate) fn client_with(&self, secret: &str) -> Client {
        let address = self.url.strip_prefix("http://").unwrap().to_owned();
        Client { address, secret: secret.to_owned() }
    }

    /// The memory of the server and all processes below it, with each page counted once.
    pub(crate) fn memory_kb(&self) -> u64 {
        let mut below = vec![self.child.id()];
        let mut total = 0;
        while let Some(pid) = below.pop() {
            let tasks =
                std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            for task in tasks {
                let listed =
                    std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
                below.extend(listed.split_whitespace().flat_map(str::parse::<u32>));
            }
            let rollup =
                std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
            total += pss
                .and_then(|pss| pss.trim().trim_end_matches(" kB").parse::<u64>().ok())
                .unwrap_or(0);
        }
        total
    }

    /// Sends SIGTERM and returns the exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal("-TERM");
        self.child.wait().unwrap().code()
    }

    /// Waits for a server that was stopped otherwise, and returns its exit code.
    pub(crate) fn stop_code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Sends a signal without waiting for the end.
    #[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already, if a test stopped it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary, without Airlock's variables in its environment.
#[expect(clippy::disallowed_methods, reason = "the test owns and awaits this child")]
pub(crate) fn airlock(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlock"));
    command.args(words).env_remove("AIRLOCK_LOG").env_remove("AIRLOCK_DATA_DIR");
    command.env_remove("AIRLOCK_MCP_DEBUG").env_remove("EXECUTOR_MCP_DEBUG");
    command.env_remove("AIRLOCK_TOKEN").env_remove("AIRLOCK_ADMIN_TOKEN").stdin(Stdio::null());
    command.env_remove("AIRLOCK_CONFIG").env_remove("INVOCATION_ID");
    command
}

/// Sends requests with one token, each on its own connection.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) address: String,
    pub(crate) secret: String,
}

/// The longest wait for an event that occurs by itself.
const EVENT_TIME_MAX: Duration = Duration::from_secs(60);

/// Polls until `look` returns a value, and returns it.
#[track_caller]
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < EVENT_TIME_MAX, "it did not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The body of a response that must be a success.
#[track_caller]
pub(crate) fn good(answer: Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &[("Content-Type", "application/json")], body)
    }

    /// Runs a program and waits for the response.
    pub(crate) fn execute(&self, code: &str) -> Answer {
        let body = serde_json::json!({ "code": code }).to_string();
        self.post("/api/executions", &body)
    }

    /// Answers a question and waits for the response.
    pub(crate) fn resume(&self, id: &str, action: &str) -> Answer {
        let body = serde_json::json!({ "action": action }).to_string();
        self.post(&format!("/api/executions/{id}/resume"), &body)
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut stream = self.connect();
        stream.write_all((self.head(method, path, headers, body.len()) + body).as_bytes()).unwrap();
        read(stream)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The head of a request. A header given here replaces the default one.
    pub(crate) fn head(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        length: usize,
    ) -> String {
        let secret = format!("Bearer {}", self.secret);
        let length = length.to_string();
        let usual = [
            ("Host", self.address.as_str()),
            ("Authorization", secret.as_str()),
            ("Content-Length", length.as_str()),
            ("Connection", "close"),
        ];
        let replaced = |name: &str| more.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let lines: String = usual
            .into_iter()
            .filter(|(name, _)| !replaced(name))
            .chain(more.iter().copied())
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        format!("{method} {path} HTTP/1.1\r\n{lines}\r\n")
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The id of the question that the response asks.
    pub(crate) fn question(&self) -> String {
        let id = self.json()["structured"]["executionId"].as_str().map(str::to_owned);
        id.unwrap_or_else(|| panic!("asks nothing: {self:?}"))
    }

    /// The value that the program returned.
    pub(crate) fn result(&self) -> Value {
        let json = self.json();
        assert_eq!(json["structured"]["status"], "completed", "{json}");
        json["structured"]["result"].clone()
    }

    pub(crate) fn execution(&self) -> String {
        self.header("airlock-execution").expect("it is about an execution").to_owned()
    }
}

/// Reads an answer to its end.
pub(crate) fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = vec![];
    // A server that is killed in mid-answer resets the connection; the data before that counts.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let is_chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    Answer { status, headers, body }
}

fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 || after.len() < length {
            break;
        }
        body.push_str(&after[..length]);
        rest = after[length..].trim_start_matches("\r\n");
    }
    body
}
