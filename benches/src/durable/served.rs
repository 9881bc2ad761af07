//! `airlock serve`, from the directory of this binary: started, measured, stopped.

use super::client::Client;
use crate::enclave::Streams;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The number of memory samples and their distance; the largest counts. Warm runners are forked
/// within the first few samples.
const N_LOOKS: usize = 10;
const LOOKS_APART: Duration = Duration::from_millis(100);

/// A running server. Dropping it kills it.
pub(crate) struct Served {
    child: Child,
    address: String,
    secret: String,
    /// The time from just before the start to its first line.
    pub(crate) took: Duration,
}

impl Served {
    /// Starts a server with default options, on a free port.
    pub(crate) fn start(data_dir: &Path) -> Result<Self> {
        Self::start_with(data_dir, &[])
    }

    /// Like `start`, with the demonstration tools.
    pub(crate) fn start_with_tools(data_dir: &Path) -> Result<Self> {
        Self::start_with(data_dir, &["--demo"])
    }

    /// Like `start`, with more flags.
    pub(crate) fn start_with(data_dir: &Path, more: &[&str]) -> Result<Self> {
        Self::start_binary(&binary()?, data_dir, more)
    }

    /// Like `start_with`, with another binary, such as one built from an earlier commit.
    pub(crate) fn start_binary(binary: &Path, data_dir: &Path, more: &[&str]) -> Result<Self> {
        let mut command = command(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data_dir).args(more);
        let began = Instant::now();
        let mut child = command.spawn().context("start airlock serve")?;
        let stdout = child.stdout.take().context("its output is a pipe")?;
        let mut ready = String::new();
        let read = BufReader::new(stdout).read_line(&mut ready);
        let took = began.elapsed();
        // From here on an early return ends the child.
        let mut served = Self { child, address: String::new(), secret: String::new(), took };
        read.context("read its first line")?;
        let url = ready.trim().strip_prefix("Airlock is ready at http://");
        url.context("airlock serve did not start")?.clone_into(&mut served.address);
        let secret = std::fs::read_to_string(data_dir.join("tokens/admin"))?;
        secret.trim().clone_into(&mut served.secret);
        Ok(served)
    }

    /// The address on which it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The secret of its token.
    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    /// Opens another connection.
    pub(crate) fn client(&self) -> Result<Client> {
        Client::connect(&self.address, &self.secret)
    }

    /// Opens another connection for streams.
    pub(crate) fn streams(&self) -> Result<Streams> {
        Streams::connect(&self.address, &self.secret)
    }

    /// The present memory of the server itself, without its runners and zygote.
    pub(crate) fn own_bytes(&self) -> Result<u64> {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.child.id()))?;
        pss_bytes(&rollup).context("/proc tells no Pss")
    }

    /// The present memory of the server and its descendants.
    pub(crate) fn bytes_now(&self) -> Result<u64> {
        tree_bytes(self.child.id())
    }

    /// Memory of the server and its descendants, each page counted once: the maximum of the first second.
    pub(crate) fn memory_bytes(&self) -> Result<u64> {
        let mut most = 0;
        for _ in 0..N_LOOKS {
            std::thread::sleep(LOOKS_APART);
            most = most.max(tree_bytes(self.child.id())?);
        }
        Ok(most)
    }

    /// Stops it gracefully and waits for its exit.
    #[expect(clippy::disallowed_methods, reason = "it is awaited here")]
    pub(crate) fn stop(mut self) -> Result<()> {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().context("send SIGTERM")?;
        ensure!(sent.success(), "SIGTERM could not be sent");
        let status = self.child.wait()?;
        ensure!(status.success(), "airlock serve did not stop in order ({status})");
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has already exited if it was stopped.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The time in which the binary is loaded, parses its command line and exits.
pub(crate) fn load_and_leave() -> Result<Duration> {
    let mut command = airlock()?;
    command.arg("--version");
    let began = Instant::now();
    let mut child = command.spawn().context("start airlock")?;
    let said = match child.stdout.take() {
        Some(mut stdout) => stdout.read_to_end(&mut vec![]),
        None => Ok(0),
    };
    let took = began.elapsed();
    let status = child.wait()?;
    ensure!(said? > 0 && status.success(), "airlock does not know its version");
    Ok(took)
}

/// The binary, with a clean environment.
pub(crate) fn airlock() -> Result<Command> {
    Ok(command(&binary()?))
}

#[expect(clippy::disallowed_methods, reason = "all callers own and await this child")]
fn command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command.env_remove("AIRLOCK_LOG").env_remove("AIRLOCK_DATA_DIR").env_remove("AIRLOCK_TOKEN");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// The path of the binary that is measured.
pub(crate) fn binary() -> Result<PathBuf> {
    let binary = std::env::current_exe()?.with_file_name("airlock");
    if !binary.is_file() {
        bail!("no airlock beside this binary; run: cargo build --release --package airlock");
    }
    Ok(binary)
}

/// Memory of a process and its descendants, each page counted once.
pub(crate) fn tree_bytes(root: u32) -> Result<u64> {
    let mut below = vec![root];
    let mut total = 0;
    while let Some(pid) = below.pop() {
        let (Some(rollup), Ok(tasks)) = (
            unless_gone(std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")))?,
            std::fs::read_dir(format!("/proc/{pid}/task")),
        ) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = unless_gone(std::fs::read_to_string(task.path().join("children")))?;
            below.extend(
                children.unwrap_or_default().split_whitespace().flat_map(str::parse::<u32>),
            );
        }
        total += pss_bytes(&rollup).context("/proc tells no Pss")?;
    }
    Ok(total)
}

/// A process may end during the measurement; one that may not be read would falsify the sum.
fn unless_gone(read: std::io::Result<String>) -> Result<Option<String>> {
    match read {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) => Err(error).context("look at a process"),
    }
}

/// The proportional set size in the kernel's report on a process.
pub(crate) fn pss_bytes(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proportional_size_is_read_as_the_kernel_writes_it() {
        let rollup = "00400000-7ffc [rollup]\nRss:    9 kB\nPss:     3 kB\nPss_Anon:  1 kB\n";
        assert_eq!(pss_bytes(rollup), Some(3 << 10));
        assert_eq!(pss_bytes("Pss_Anon: 1 kB\n"), None);
    }

    #[test]
    fn this_process_uses_memory() {
        assert!(tree_bytes(std::process::id()).unwrap() > 0);
    }
}
