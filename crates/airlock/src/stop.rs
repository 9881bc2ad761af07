//! `airlock stop`: stops the server that owns the data directory, and waits for its end.

use crate::autostart::is_supervised;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, data_directory, duration, print};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::sqlite::{DirectoryOwner, directory_owner, lock_file};

/// Pause between two checks of the lock.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Stops the server that owns the data directory, and waits until it has ended.
///
/// Unfinished executions continue after the next start. A client verb, such as call, starts a server again.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// How long to wait for its end; a server takes five seconds at most, on a busy machine more.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    timeout: Duration,
    /// One line of JSON.
    #[arg(long)]
    json: bool,
    /// The data directory [default: ~/.airlock].
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

impl CommandVerb for Args {
    const NAME: &'static str = "stop";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Server, 3);

    fn run(self) -> VerbExit {
        stop(&self)
    }
}

const HELP: &str = "\
Examples:
  airlock stop
  airlock stop --data-dir /var/lib/airlock --timeout 1m

Exit codes:
  0    it has ended
  1    no server runs there, it may not be stopped from here, or it did not end in time
  2    the command line made no sense";

/// Stops the server, and reports it.
pub(crate) fn stop(args: &Args) -> VerbExit {
    let Some(dir) = data_directory::absolute(args.data_dir.as_deref()) else {
        print::error("the data directory is unknown: set HOME, or name it with --data-dir");
        return VerbExit::Usage;
    };
    match stop_server(&dir, args.timeout) {
        Ok(pid) => {
            let told = json!({ "stopped": true, "pid": pid });
            print::print_result(args.json, &told, |_| {
                format!("the server (process {pid}) has ended")
            });
            if is_supervised(&dir) {
                print::print_note(
                    "a supervisor runs it and may start it again: systemctl stop airlock",
                );
            }
            VerbExit::Good
        }
        Err(error) => {
            print::error(&format!("{error:#}"));
            VerbExit::Failed
        }
    }
}

fn stop_server(dir: &Path, timeout: Duration) -> anyhow::Result<u32> {
    let shown = dir.display();
    let Some(owner) = directory_owner(dir) else {
        anyhow::bail!("no server runs on {shown}");
    };
    if !owner.note.starts_with("http") {
        anyhow::bail!(
            "{shown} is in use by process {}, which is not a server, or not ready yet; try again",
            owner.pid
        );
    }
    terminate(owner.pid, dir)?;
    let deadline = Instant::now() + timeout;
    let is_there = |owner: &DirectoryOwner| {
        directory_owner(dir).is_some_and(|present| present.pid == owner.pid)
    };
    while is_there(&owner) {
        if Instant::now() > deadline {
            anyhow::bail!(
                "the server of {shown} (process {}) was asked to stop, and has not ended within {timeout:?}",
                owner.pid
            );
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(owner.pid)
}

/// Sends SIGTERM to the owner of the directory, after checking that the process has its lock file open: a pid of another
/// PID namespace, or one that was reused, may be any process.
pub(crate) fn terminate(pid: u32, data_dir: &Path) -> anyhow::Result<()> {
    let lock = std::fs::metadata(lock_file(data_dir))?;
    let has_it_open = |entry: std::fs::DirEntry| {
        std::fs::metadata(entry.path())
            .is_ok_and(|data| (data.dev(), data.ino()) == (lock.dev(), lock.ino()))
    };
    let mut open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    if !open.any(has_it_open) {
        anyhow::bail!(
            "the server of {} (process {pid}) runs in another container or as another account, and cannot be stopped \
             from here; stop it there",
            data_dir.display()
        );
    }
    let pid = i32::try_from(pid)?;
    match kill(Pid::from_raw(pid), Signal::SIGTERM) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(error) => Err(anyhow::anyhow!("could not stop process {pid}: {error}")),
    }
}
