//! Starts exec-servers. The only module of this client that starts a program.

use super::{ExecServerClient, ExecServerClientConnectOptions, ExecServerError};
use std::ffi::OsString;
use std::process::Stdio;
use tokio::process::Child;

/// A program that is an exec-server over stdio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecServerLaunchCommand {
    /// The program.
    pub program: OsString,
    /// Its arguments, such as `exec-server`.
    pub args: Vec<OsString>,
}

/// A server started by this process. Dropping it ends the server.
#[derive(Debug)]
pub struct SpawnedExecServer {
    client: ExecServerClient,
    /// Killed when dropped; its processes end with it.
    child: Child,
}

impl SpawnedExecServer {
    /// Its client.
    pub const fn client(&self) -> &ExecServerClient {
        &self.client
    }

    /// Its pid, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }
}

/// Starts a server and performs the handshake.
pub async fn spawn_local_exec_server(
    command: ExecServerLaunchCommand,
    options: ExecServerClientConnectOptions,
) -> Result<SpawnedExecServer, ExecServerError> {
    let mut child = start(&command).map_err(ExecServerError::Spawn)?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(ExecServerError::Closed);
    };
    let client = ExecServerClient::connect_stdio(stdin, stdout, options).await?;
    Ok(SpawnedExecServer { client, child })
}

#[expect(clippy::disallowed_methods, reason = "each child is owned by one server and dies with it")]
fn start(command: &ExecServerLaunchCommand) -> std::io::Result<Child> {
    tokio::process::Command::new(&command.program)
        .args(&command.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
}
