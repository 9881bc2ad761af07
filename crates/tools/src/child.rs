//! MCP servers and commands that this crate starts. Each runs below a reaper, so that it ends when the server does.

use processes::reaper;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

/// Environment variables that a child inherits; all others must be configured, because tokens live there.
const PASSED_ON: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL", "XDG_RUNTIME_DIR"];

/// Whether the programs that we start run below a reaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChildSupervision {
    /// Below a process of this binary, whose `main` calls [`processes::enter_if_asked`] first. It ends a program and
    /// everything that the program started when the server is killed.
    #[default]
    ThisBinary,
    /// Without one: when the server is killed, the program continues until it notices.
    Nobody,
}

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChildProgram {
    /// Name and arguments; at least a name.
    pub argv: Vec<String>,
    /// Environment variables besides the inherited ones.
    pub env: BTreeMap<String, String>,
    /// Working directory; by default, that of the server.
    pub directory: Option<PathBuf>,
}

/// A program at work. Dropping it kills it and what it started.
#[derive(Debug)]
pub(crate) struct RunningChild {
    child: Child,
    /// The process group, by the number of its leader.
    group: Option<u32>,
}

/// The ends of its pipes.
pub(crate) struct ChildPipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

#[expect(clippy::disallowed_methods, reason = "the one place of this room that starts programs")]
pub(crate) fn start(
    minding: ChildSupervision,
    program: &ChildProgram,
) -> io::Result<(RunningChild, ChildPipes)> {
    let name = program.argv.first().ok_or(io::ErrorKind::InvalidInput)?;
    // The reaper itself would start, and could report a missing program only by its exit code.
    if is_missing(name, program) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut command = match minding {
        ChildSupervision::ThisBinary => reaper::command(&program.argv),
        ChildSupervision::Nobody => {
            let mut command = tokio::process::Command::new(name);
            command.args(&program.argv[1..]);
            command
        }
    };
    let passed_on = PASSED_ON.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    command.env_clear().envs(passed_on).envs(&program.env);
    if let Some(directory) = &program.directory {
        command.current_dir(directory);
    }
    // A separate process group: Ctrl-C in the terminal is meant for the server, and the group can be killed as a whole.
    command.process_group(0).kill_on_drop(true);
    let piped = || Stdio::piped();
    let mut child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn()?;
    let group = child.id();
    let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let running = RunningChild { child, group };
    match taken {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            Ok((running, ChildPipes { stdin, stdout, stderr }))
        }
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// Whether there is no such program, neither at its path nor in a folder of `PATH`.
fn is_missing(name: &str, program: &ChildProgram) -> bool {
    if name.contains('/') {
        let folder = program.directory.clone().unwrap_or_default();
        return !folder.join(name).exists();
    }
    let given = program.env.get("PATH").map(std::ffi::OsString::from);
    match given.or_else(|| std::env::var_os("PATH")) {
        Some(path) => !std::env::split_paths(&path).any(|folder| folder.join(name).exists()),
        // Without a `PATH`, the system uses default folders.
        None => false,
    }
}

impl RunningChild {
    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) -> io::Result<std::process::ExitStatus> {
        self.child.wait().await
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        // Not reaped yet, so the process group's number cannot have been reused.
        if let (Ok(None), Some(group)) = (self.child.try_wait(), self.group) {
            reaper::kill_group(group);
        }
    }
}
