//! An execbox host of a hundred lines: it drives `airlock runner`, and tests can see every line.

mod tools;

use protocols::execbox::FromRunner;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tools::Answer;

/// The longest wait for anything. Only a runner that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The binary, without Airlock's variables in its environment.
#[expect(clippy::disallowed_methods, reason = "the test owns and awaits this child")]
pub(crate) fn airlock(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlock"));
    command.args(words).env_remove("AIRLOCK_LOG").env_remove("AIRLOCK_DATA_DIR");
    command.env_remove("AIRLOCK_TOKEN").stdin(Stdio::null());
    command
}

/// One channel to its own `airlock runner`. Dropping it kills the runner.
pub(crate) struct Host {
    child: Child,
    to_runner: Arc<Mutex<ChildStdin>>,
    from_runner: Receiver<String>,
}

impl Host {
    pub(crate) fn start() -> Self {
        let mut command = airlock(&["runner"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (lines, from_runner) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        // The thread ends with the child's output.
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
        });
        let to_runner = Arc::new(Mutex::new(child.stdin.take().unwrap()));
        Self { child, to_runner, from_runner }
    }

    /// The runner's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send_line(&self, line: &str) {
        send(&self.to_runner, line);
    }

    pub(crate) fn send(&self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends the order for a program. `options` replace the defaults.
    pub(crate) fn execute(&self, id: &str, code: &str, options: &Value) {
        let mut all = json!({
            "timeoutMs": 5_000, "memoryLimitBytes": 64 << 20, "maxLogLines": 100, "maxLogChars": 64_000,
        });
        for (name, value) in options.as_object().into_iter().flatten() {
            all[name] = value.clone();
        }
        self.send(&json!({
            "type": "execute", "id": id, "code": code, "options": all, "providers": tools::manifests(),
        }));
    }

    /// The runner's next line.
    pub(crate) fn next_line(&self) -> String {
        self.from_runner.recv_timeout(PATIENCE).expect("a runner that lives answers")
    }

    /// The runner's next message.
    pub(crate) fn next(&self) -> Value {
        serde_json::from_str(&self.next_line()).unwrap()
    }

    /// The next message of this type; earlier ones are discarded.
    pub(crate) fn until(&self, kind: &str) -> Value {
        loop {
            let message = self.next();
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// Runs the program's tools until it is done.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a plain host hears nothing else of interest"
    )]
    pub(crate) fn attend(&self, id: &str) -> Value {
        loop {
            let line = self.next_line();
            match FromRunner::decode(line.as_bytes()).unwrap() {
                FromRunner::ToolCall(call) => {
                    match tools::call(&call.safe_tool_name, call.input.as_text()) {
                        Answer::Now(json) => self.send_line(&format!(
                            r#"{{"type":"tool_result","callId":"{}","ok":true,"result":{json}}}"#,
                            call.call_id
                        )),
                        Answer::Never => {}
                    }
                }
                FromRunner::Done(done) if done.id == id => return whole_text(&line),
                _ => {}
            }
        }
    }

    /// Closes the channel and returns the runner's exit code.
    pub(crate) fn leave(mut self) -> Option<i32> {
        self.kill_input();
        self.child.wait().unwrap().code()
    }

    fn kill_input(&mut self) {
        let (nothing, _) = std::os::unix::net::UnixStream::pair().unwrap();
        *self.to_runner.lock().unwrap() = ChildStdin::from(std::os::fd::OwnedFd::from(nothing));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A runner that has already ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Errors are ignored: a runner that has ended sends no further messages, which tests notice.
fn send(to: &Mutex<ChildStdin>, line: &str) {
    let _ = to.lock().unwrap().write_all(format!("{line}\n").as_bytes());
}

/// Parses a message. Log lines may contain half a surrogate pair, which a Rust string cannot hold: it becomes U+FFFD.
fn whole_text(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| {
        let is_half = |digits: &str| {
            digits.starts_with(['d', 'D'])
                && digits[1..2].contains(['8', '9', 'a', 'b', 'c', 'd', 'e', 'f'])
        };
        let mut parts = line.split("\\u");
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let is_half = part.get(..4).is_some_and(is_half);
            whole.push_str(if is_half { "\\ufffd" } else { "\\u" });
            whole.push_str(if is_half { &part[4..] } else { part });
        }
        serde_json::from_str(&whole).unwrap()
    })
}
