//! `executor` from npm: installed below the target directory, started, with the same tools.

use super::tool_server::ToolServer;
use crate::directory::directory;
use crate::durable::client::Client;
use crate::durable::served::tree_bytes;
use crate::npm;
use anyhow::{Context, Result, ensure};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The version that is measured.
pub(super) const VERSION: &str = "1.5.9";

/// The path of the package's binary on this machine.
const BINARY: &str = "node_modules/executor-linux-x64/bin/executor";

/// Lines of output before it is ready.
const LINES_MAX: usize = 50;

/// A running rival. Dropping it kills it.
pub(super) struct Rival {
    child: Child,
    address: String,
    _home: TempDir,
}

impl Rival {
    /// Installs it if it is missing, starts it, and registers `tools`.
    pub(super) fn install_and_start(tools: &ToolServer) -> Result<Self> {
        let rival = Self::start(&installed()?)?;
        tools.offer(&mut rival.client()?)?;
        Ok(rival)
    }

    /// Opens another connection.
    pub(super) fn client(&self) -> Result<Client> {
        Client::connect(&self.address, "none")
    }

    /// Opens several connections.
    pub(super) fn clients(&self, n: usize) -> Result<Vec<Client>> {
        (0..n).map(|_| self.client()).collect()
    }

    /// The present memory of all its processes.
    pub(super) fn bytes_now(&self) -> Result<u64> {
        tree_bytes(self.child.id())
    }

    #[expect(clippy::disallowed_methods, reason = "it is owned and awaited here")]
    fn start(binary: &Path) -> Result<Self> {
        let home = directory()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut child = Command::new(binary)
            .args(["web", "--port", &port.to_string()])
            .current_dir(home.path())
            .env("HOME", home.path())
            .env("EXECUTOR_DATA_DIR", home.path().join("data"))
            .env("EXECUTOR_SCOPE_DIR", home.path())
            .env("EXECUTOR_DISABLE_UPDATE_CHECK", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("start it")?;
        let stdout = child.stdout.take().context("its output is a pipe")?;
        // From here on an early return ends the child.
        let rival = Self { child, address: format!("127.0.0.1:{port}"), _home: home };
        let mut stdout = BufReader::new(stdout);
        let mut lines = stdout.by_ref().lines().take(LINES_MAX);
        let is_ready = lines.any(|line| line.is_ok_and(|line| line.contains("is ready")));
        ensure!(is_ready, "it did not say that it is ready");
        // It continues to write, and stops working if its output is not read.
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        Ok(rival)
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The path of the installed binary.
fn installed() -> Result<PathBuf> {
    npm::installed(&format!("executor-{VERSION}"), &format!("executor@{VERSION}"), BINARY)
}
