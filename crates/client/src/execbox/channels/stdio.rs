//! A runner that is a child process, connected by its standard input and output.

use super::{ConnectRunner, NdjsonChannel, RunnerTransport};
use crate::execbox::spawn;
use futures_util::future::BoxFuture;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;
use transport::{MessageReader, MessageWriter};

/// A runner that has closed its output, or read the end of its input, exits sooner.
const EXIT_TIME_MAX: Duration = Duration::from_secs(1);

/// A program that runs guests and speaks execbox on its standard input and output.
#[derive(Debug, Clone)]
pub struct RunnerCommand {
    pub(in crate::execbox) program: OsString,
    pub(in crate::execbox) arguments: Vec<OsString>,
    pub(in crate::execbox) variables: Vec<(OsString, OsString)>,
    pub(in crate::execbox) is_quiet: bool,
}

impl RunnerCommand {
    /// Sets the program, without arguments, with this process's environment and stderr.
    pub fn new(program: impl Into<OsString>) -> Self {
        let (arguments, variables) = (vec![], vec![]);
        Self { program: program.into(), arguments, variables, is_quiet: false }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Discards its stderr.
    #[must_use]
    pub const fn quiet(mut self) -> Self {
        self.is_quiet = true;
        self
    }

    fn start(&self) -> io::Result<Box<dyn RunnerTransport>> {
        let mut child = spawn::runner(self)?;
        let reader = child.stdout.take().expect("its output is piped");
        let writer = child.stdin.take().expect("its input is piped");
        Ok(Box::new(ChildRunner { child, lines: NdjsonChannel::new(reader, writer) }))
    }
}

impl ConnectRunner for RunnerCommand {
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn RunnerTransport>>> {
        Box::pin(async { self.start() })
    }
}

/// A child process; killed when dropped.
#[derive(Debug)]
struct ChildRunner {
    child: Child,
    lines: NdjsonChannel<ChildStdout, ChildStdin>,
}

impl RunnerTransport for ChildRunner {
    fn halves(&mut self) -> (&mut dyn MessageReader, &mut dyn MessageWriter) {
        self.lines.halves()
    }

    fn last_words(&mut self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            let status = timeout(EXIT_TIME_MAX, self.child.wait()).await.ok()?.ok()?;
            Some(obituary(status))
        })
    }

    fn terminate(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // Fails only if the child has already exited.
            drop(self.child.kill().await);
            self.lines.hang_up();
        })
    }

    fn dispose(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.lines.hang_up();
            if timeout(EXIT_TIME_MAX, self.child.wait()).await.is_err() {
                self.terminate().await;
            }
        })
    }
}

fn obituary(status: ExitStatus) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no status".to_owned(),
    };
    format!("Child process exited unexpectedly with {how}")
}
