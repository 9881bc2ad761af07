//! Starts runners. The only module of execbox that starts a program.

use super::channels::RunnerCommand;
use std::io;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Starts a runner whose owner is the returned value: dropping it kills the process.
#[expect(
    clippy::disallowed_methods,
    reason = "each child is owned by one `Transport` and dies with it"
)]
pub(super) fn runner(command: &RunnerCommand) -> io::Result<Child> {
    Command::new(&command.program)
        .args(&command.arguments)
        .envs(command.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(if command.is_quiet { Stdio::null() } else { Stdio::inherit() })
        .kill_on_drop(true)
        .spawn()
}
