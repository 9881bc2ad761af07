//! Starts a server where none runs. Of several clients that need one at the same time, one starts it and all use it. The
//! lock on the data directory identifies the running server: it contains the owner's URL.

use crate::print;
use server::settings::{SettingName, look_up_settings};
use std::ffi::OsStr;
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

/// Poll interval while another process starts the server.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The files in the data directory that lock the start and receive the log of a background server.
const LOCK_FILE: &str = "start.lock";
pub(crate) const LOG_FILE: &str = "serve.log";

/// A longer log is truncated.
const LOG_BYTES_MAX: u64 = 4 << 20;

/// Where to listen: as recorded, or the default address; if that is in use, any free port.
const LISTEN: [&[&str]; 2] = [&[], &["--listen", "127.0.0.1:0"]];

/// The environment variables that a started server inherits, besides `LC_*`. It must not inherit the client's token,
/// configuration or proxies.
const VARIABLES: [&str; 5] = ["PATH", "HOME", "LANG", "LANGUAGE", "TZ"];

/// How often a client reports that it waits for a supervisor.
const BETWEEN_WORDS: Duration = Duration::from_secs(5);

/// Why no server is available.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AutostartError {
    /// The directory or its files cannot be used.
    #[error("use {0}: {1}")]
    Directory(PathBuf, io::Error),
    /// The server exited before it was ready.
    #[error("start a server; it exited, and {0} has the reason")]
    Ended(PathBuf),
    /// A supervisor runs the server, and has not started it.
    #[error(
        "reach the server of {0}: a supervisor runs it and has not started it within 30 s. Look at it (systemctl status \
         airlock, docker ps), or let clients start servers again with: airlock settings set supervised off"
    )]
    Supervised(PathBuf),
    /// No server was ready in time.
    #[error("start a server in time; {0} has its log")]
    TooSlow(PathBuf),
}

/// Returns the URL of the server of this data directory; starts a server if none runs. Blocks.
pub(crate) fn running(data_dir: &Path) -> Result<String, AutostartError> {
    running_at(data_dir, None)
}

/// Like `running`; a server that is started listens at `listen`, where that is given.
pub(crate) fn running_at(data_dir: &Path, listen: Option<&str>) -> Result<String, AutostartError> {
    let deadline = Instant::now() + BOOT_MAX;
    let trouble = |error| AutostartError::Directory(data_dir.to_owned(), error);
    if let Some(url) = listening(data_dir) {
        return Ok(url);
    }
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(trouble)?;
    let lock = private(&data_dir.join(LOCK_FILE)).map_err(trouble)?;
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(trouble(error)),
            // Another process starts it.
            Err(TryLockError::WouldBlock) => wait(data_dir, deadline)?,
        }
        if let Some(url) = listening(data_dir) {
            return Ok(url);
        }
    }
    while owner_of(data_dir).is_some() {
        // A server was started manually a moment ago, or one is stopping.
        if let Some(url) = listening(data_dir) {
            return Ok(url);
        }
        wait(data_dir, deadline)?;
    }
    if is_supervised(data_dir) {
        return await_supervisor(data_dir, deadline);
    }
    start(data_dir, deadline, listen)
}

/// Whether the record shows that a supervisor, or an operator with a separate account, starts the server.
pub(crate) fn is_supervised(data_dir: &Path) -> bool {
    let recorded = look_up_settings(data_dir).unwrap_or_default();
    let is_on = |name| recorded.get(&name).is_some_and(|setting| setting.value.as_text() == "on");
    is_on(SettingName::Supervised) || is_on(SettingName::OperatorMode)
}

/// A server started here would hold the directory when the supervisor starts its own.
fn await_supervisor(data_dir: &Path, deadline: Instant) -> Result<String, AutostartError> {
    let mut said: Option<Instant> = None;
    loop {
        if let Some(url) = listening(data_dir) {
            return Ok(url);
        }
        if Instant::now() > deadline {
            return Err(AutostartError::Supervised(data_dir.to_owned()));
        }
        if said.is_none_or(|at| at.elapsed() > BETWEEN_WORDS) {
            let shown = data_dir.display();
            print::print_note(&format!(
                "waiting for the server of {shown}, which a supervisor starts"
            ));
            said = Some(Instant::now());
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// The file that is locked while a server is started or replaced.
pub(crate) fn start_lock(data_dir: &Path) -> io::Result<File> {
    private(&data_dir.join(LOCK_FILE))
}

/// The URL of the directory's owner, if the lock contains it.
fn listening(data_dir: &Path) -> Option<String> {
    owner_of(data_dir).filter(|note| note.starts_with("http://"))
}

fn wait(data_dir: &Path, deadline: Instant) -> Result<(), AutostartError> {
    if Instant::now() > deadline {
        return Err(AutostartError::TooSlow(data_dir.join(LOG_FILE)));
    }
    std::thread::sleep(BETWEEN_LOOKS);
    Ok(())
}

fn start(
    data_dir: &Path,
    deadline: Instant,
    listen: Option<&str>,
) -> Result<String, AutostartError> {
    let log = data_dir.join(LOG_FILE);
    let trouble = |error| AutostartError::Directory(log.clone(), error);
    let named = listen.map(|address| ["--listen", address]);
    let addresses = named.as_ref().map_or(LISTEN.to_vec(), |named| vec![&named[..]]);
    for listen in addresses {
        let mut child = spawn(data_dir, listen, &log).map_err(trouble)?;
        if let Some(url) = ready(&mut child, deadline) {
            return Ok(url);
        }
        if Instant::now() > deadline {
            // A server that is this late would only conflict with the next one.
            let _ = child.kill();
            let _ = child.wait();
            return Err(AutostartError::TooSlow(log));
        }
    }
    Err(AutostartError::Ended(log))
}

/// Starts a server that outlives this process: in its own process group, and with no open file of ours but the log.
#[expect(
    clippy::disallowed_methods,
    reason = "a server has no parent: its data directory knows it"
)]
fn spawn(data_dir: &Path, listen: &[&str], log: &Path) -> io::Result<Child> {
    let mut file = private(log)?;
    if file.metadata()?.len() > LOG_BYTES_MAX {
        file.set_len(0)?;
    }
    writeln!(file, "airlock: starting {}", listen.join(" "))?;
    std::process::Command::new(std::env::current_exe()?)
        .args(["serve", "--started-by-client"])
        .args(listen)
        .arg("--data-dir")
        .arg(data_dir)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| is_passed_on(name)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file)
        .process_group(0)
        .spawn()
}

fn is_passed_on(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| VARIABLES.contains(&name) || name.starts_with("LC_"))
}

/// Returns the server's ready line; `None` when it exited, or took too long.
fn ready(child: &mut Child, deadline: Instant) -> Option<String> {
    let stdout = child.stdout.take()?;
    let (say, said) = mpsc::sync_channel(1);
    // A thread, because a pipe cannot be read with a deadline; it ends with the server's first line.
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = say.send(line);
    });
    let line = said.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
    line.trim().strip_prefix("Airlock is ready at ").map(str::to_owned)
}

/// Opens a file for appending, with access for this user only.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_a_supervisor_ends_and_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let waited = await_supervisor(folder.path(), Instant::now());
        let why = waited.unwrap_err().to_string();
        assert!(why.contains("a supervisor runs it and has not started it"), "{why}");
        assert!(why.contains("airlock settings set supervised off"), "{why}");
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "no server was started");
    }

    #[test]
    fn a_server_gets_nothing_of_a_client_but_path_home_and_locale() {
        for (name, expected) in [
            ("PATH", true),
            ("HOME", true),
            ("LC_ALL", true),
            ("AIRLOCK_TOKEN", false),
            ("AIRLOCK_ADMIN_TOKEN", false),
            ("AIRLOCK_CONFIG", false),
            ("XDG_CONFIG_HOME", false),
            ("HTTPS_PROXY", false),
            ("http_proxy", false),
            ("INVOCATION_ID", false),
            ("LD_PRELOAD", false),
        ] {
            assert_eq!((name, is_passed_on(OsStr::new(name))), (name, expected));
        }
    }
}
