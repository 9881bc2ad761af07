//! Starts zygotes. The only place in this crate that executes a program.

use crate::config::RunnerProgramPath;
use crate::error::SandboxStartError;
use crate::jail::JailTier;
use crate::zygote::{ControlSocket, VERB, ZygoteReport};
use crate::zygote_link::next_report;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;

/// A zygote is warm in milliseconds; one that needs this long is broken, not slow.
const START_TIME_MAX: Duration = Duration::from_secs(20);

/// How much of a dying zygote's output is recorded.
const LAST_WORDS_BYTES_MAX: u64 = 2_048;

/// Results of libm differ with these instructions; without them a replay on another machine has the same
/// results.
const SAME_MATHEMATICS: &str = "glibc.cpu.hwcaps=-FMA,-AVX2";

/// A zygote that is ready for requests.
#[derive(Debug)]
pub(crate) struct SpawnedZygote {
    pub(crate) child: Child,
    pub(crate) control: AsyncFd<ControlSocket>,
    pub(crate) tier: JailTier,
}

/// Opens the program once: later executions use the same file, even if its path changes.
pub(crate) fn open(program: &RunnerProgramPath) -> Result<File, SandboxStartError> {
    match program {
        RunnerProgramPath::ThisBinary => File::open("/proc/self/exe"),
        RunnerProgramPath::At(path) => File::open(path),
    }
    .map_err(SandboxStartError::Program)
}

/// Starts a zygote and waits until its jail is shut.
pub(crate) async fn zygote(program: &File) -> Result<SpawnedZygote, SandboxStartError> {
    let (ours, theirs) = ControlSocket::pair().map_err(SandboxStartError::Spawn)?;
    let control = ours.watched().map_err(SandboxStartError::Spawn)?;
    let mut child = start(program, theirs).map_err(SandboxStartError::Spawn)?;
    match tokio::time::timeout(START_TIME_MAX, next_report(&control)).await {
        Ok(Ok(Some((ZygoteReport::Ready(tier), _)))) => Ok(SpawnedZygote { child, control, tier }),
        Ok(Ok(Some((ZygoteReport::Missing { layer, errno }, _)))) => {
            Err(SandboxStartError::Missing { layer, source: io::Error::from_raw_os_error(errno) })
        }
        // Any other report, an end of the socket, or a timeout.
        Ok(_) | Err(_) => Err(silent(&mut child).await),
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place that the rule names")]
fn start(program: &File, control: ControlSocket) -> io::Result<Child> {
    // The control socket is passed as standard input: no code of ours has to run between fork and exec.
    tokio::process::Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()))
        .arg0("airlock-zygote")
        .arg(VERB)
        .env_clear()
        .env("TZ", "UTC")
        .env("GLIBC_TUNABLES", SAME_MATHEMATICS)
        .current_dir("/")
        // A Ctrl-C in the terminal is for the server, which then ends its runners in order.
        .process_group(0)
        .stdin(Stdio::from(control.into_descriptor()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

/// How a process that never became a zygote ended, and what it printed before.
async fn silent(child: &mut Child) -> SandboxStartError {
    // Once it is dead, reading its output cannot block.
    drop(child.kill().await);
    let status =
        child.wait().await.map_or_else(|error| error.to_string(), |status| status.to_string());
    let mut words = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        drop(stderr.take(LAST_WORDS_BYTES_MAX).read_to_end(&mut words).await);
    }
    SandboxStartError::Silent {
        status,
        last_words: String::from_utf8_lossy(&words).trim().to_owned(),
    }
}
