//! Starts a server where none runs. Of many who want one at the same time, one starts it and all use
//! it. What runs is known by the lock on the data directory, which names its owner's URL.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use store::sqlite::owner_of;

/// Longest start: a disk with much to recover, and a busy machine.
const BOOT_MAX: Duration = Duration::from_secs(30);

/// How soon somebody who waits for another's start looks again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Where the start is locked, and where a server that nobody watches writes.
const LOCK_FILE: &str = "start.lock";
const LOG_FILE: &str = "serve.log";

/// A log that is longer is begun anew.
const LOG_BYTES_MAX: u64 = 4 << 20;

/// The usual place; when somebody else listens there, any that is free.
const LISTEN: [&str; 2] = ["127.0.0.1:4788", "127.0.0.1:0"];

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The directory or its files cannot be used.
    #[error("use {0}: {1}")]
    Directory(PathBuf, io::Error),
    /// It ended before it was ready.
    #[error("start a server; {0} says why it ended")]
    Ended(PathBuf),
    /// Nobody was ready in time.
    #[error("start a server in time; {0} says what it does")]
    TooSlow(PathBuf),
}

/// Where the server of this data directory listens; starts one if none runs. Blocks.
pub(crate) fn running(data_dir: &Path) -> Result<String, StartError> {
    let deadline = Instant::now() + BOOT_MAX;
    let trouble = |error| StartError::Directory(data_dir.to_owned(), error);
    if let Some(url) = listening(data_dir) {
        return Ok(url);
    }
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(trouble)?;
    let lock = private(&data_dir.join(LOCK_FILE)).map_err(trouble)?;
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(trouble(error)),
            // Another one starts it.
            Err(TryLockError::WouldBlock) => wait(data_dir, deadline)?,
        }
        if let Some(url) = listening(data_dir) {
            return Ok(url);
        }
    }
    while owner_of(data_dir).is_some() {
        // Somebody typed `airlock serve` a moment ago, or one is stopping.
        if let Some(url) = listening(data_dir) {
            return Ok(url);
        }
        wait(data_dir, deadline)?;
    }
    start(data_dir, deadline)
}

/// Where the owner of the directory listens, if it has said so.
fn listening(data_dir: &Path) -> Option<String> {
    owner_of(data_dir).filter(|note| note.starts_with("http://"))
}

fn wait(data_dir: &Path, deadline: Instant) -> Result<(), StartError> {
    if Instant::now() > deadline {
        return Err(StartError::TooSlow(data_dir.join(LOG_FILE)));
    }
    std::thread::sleep(BETWEEN_LOOKS);
    Ok(())
}

fn start(data_dir: &Path, deadline: Instant) -> Result<String, StartError> {
    let log = data_dir.join(LOG_FILE);
    let trouble = |error| StartError::Directory(log.clone(), error);
    for listen in LISTEN {
        let mut child = spawn(data_dir, listen, &log).map_err(trouble)?;
        if let Some(url) = ready(&mut child, deadline) {
            return Ok(url);
        }
        if Instant::now() > deadline {
            // A server that is this late would only be in the way of the next.
            let _ = child.kill();
            let _ = child.wait();
            return Err(StartError::TooSlow(log));
        }
    }
    Err(StartError::Ended(log))
}

/// A server that outlives us: not in our group, and with nothing of ours but the log.
#[expect(
    clippy::disallowed_methods,
    reason = "a server has no parent: its data directory knows it"
)]
fn spawn(data_dir: &Path, listen: &str, log: &Path) -> io::Result<Child> {
    let mut file = private(log)?;
    if file.metadata()?.len() > LOG_BYTES_MAX {
        file.set_len(0)?;
    }
    writeln!(file, "airlock: starting on {listen}")?;
    std::process::Command::new(std::env::current_exe()?)
        .args(["serve", "--listen", listen, "--data-dir"])
        .arg(data_dir)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file)
        .process_group(0)
        .spawn()
}

/// What a server says when it is ready; none when it ended, or took too long.
fn ready(child: &mut Child, deadline: Instant) -> Option<String> {
    let stdout = child.stdout.take()?;
    let (say, said) = mpsc::sync_channel(1);
    // A thread, because a pipe cannot be read with a deadline; it ends with the server's first word.
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = say.send(line);
    });
    let line = said.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
    line.trim().strip_prefix("Airlock is ready at ").map(str::to_owned)
}

/// A file for this user's eyes, kept as it is where it exists.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}
