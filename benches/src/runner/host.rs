//! A minimal blocking execbox host, and the null runner.

use crate::apart::Apart;
use crate::durable::{binary, tree_bytes};
use anyhow::{Context, Result, bail};
use protocols::execbox::FromRunner;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The verb of the null runner.
pub(crate) const NULL: &str = "__null";

/// How long a runner gets to finish its idle-time preparation.
const COMING_TO_REST: Duration = Duration::from_millis(300);

/// One channel. Dropping it ends the runner.
pub(super) struct Host {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    line: String,
}

impl Host {
    /// Starts the released binary.
    pub(super) fn of_airlock() -> Result<Self> {
        Self::start(&binary()?, "runner")
    }

    /// Starts the null runner.
    pub(super) fn of_nobody() -> Result<Self> {
        Self::start(&std::env::current_exe()?, NULL)
    }

    #[expect(clippy::disallowed_methods, reason = "the host owns and awaits this child")]
    fn start(program: &std::path::Path, verb: &str) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg(verb).env_remove("AIRLOCK_LOG").stderr(Stdio::null());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to = child.stdin.take().context("its input is a pipe")?;
        let from = BufReader::new(child.stdout.take().context("its output is a pipe")?);
        Ok(Self { child, to, from, line: String::new() })
    }

    /// Runs a program to its end, answering its calls with their arguments; returns its value as JSON.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a plain host hears nothing else of interest"
    )]
    pub(super) fn run(&mut self, code: &str) -> Result<String> {
        let execute = format!(
            r#"{{"type":"execute","id":"run","code":{},"options":{{"timeoutMs":5000,"memoryLimitBytes":67108864,"maxLogLines":100,"maxLogChars":64000}},"providers":[{{"name":"tools","types":"","tools":{{"echo":{{"safeName":"echo","originalName":"echo"}}}}}}]}}"#,
            serde_json::to_string(code)?
        );
        self.send(&execute)?;
        loop {
            self.line.clear();
            if self.from.read_line(&mut self.line)? == 0 {
                bail!("the runner is gone");
            }
            let answer = match FromRunner::decode(self.line.trim_end().as_bytes())? {
                FromRunner::ToolCall(call) => format!(
                    r#"{{"type":"tool_result","callId":"{}","ok":true,"result":{}}}"#,
                    call.call_id,
                    call.input.as_text()
                ),
                FromRunner::Done(done) => {
                    let value = done.outcome.ok().flatten().context("the program failed")?;
                    return Ok(value.as_text().to_owned());
                }
                _ => continue,
            };
            self.send(&answer)?;
        }
    }

    fn send(&mut self, message: &str) -> Result<()> {
        self.to.write_all(format!("{message}\n").as_bytes()).context("the runner is gone")
    }

    /// Memory of the runner and its descendants, when idle.
    pub(super) fn memory_bytes(&self) -> Result<u64> {
        std::thread::sleep(COMING_TO_REST);
        tree_bytes(self.child.id())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A benchmark needs no graceful shutdown.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The null runner: sends a runner's messages, and runs nothing.
pub(crate) fn null() -> Result<()> {
    let _apart = Apart::answering()?;
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    let (mut line, mut n_calls) = (String::new(), 0);
    while stdin.read_line(&mut line)? > 0 {
        let is_new = line.starts_with(r#"{"type":"execute""#);
        let calls = if is_new { 0 } else { n_calls };
        let started = if is_new { "{\"type\":\"started\",\"id\":\"run\"}\n" } else { "" };
        let calls_more = if is_new { line.contains("tools.echo") } else { calls < super::N_CALLS };
        let rest = if calls_more {
            n_calls = calls + 1;
            format!(
                "{{\"type\":\"tool_call\",\"callId\":\"0123456789abcdef0123456789abcdef.{n_calls}\",\"providerName\":\"tools\",\"safeToolName\":\"echo\",\"input\":{calls}}}\n"
            )
        } else {
            n_calls = 0;
            "{\"type\":\"done\",\"id\":\"run\",\"ok\":true,\"durationMs\":0,\"logs\":[],\"result\":2}\n".to_owned()
        };
        stdout.write_all(format!("{started}{rest}").as_bytes())?;
        stdout.flush()?;
        line.clear();
    }
    Ok(())
}
