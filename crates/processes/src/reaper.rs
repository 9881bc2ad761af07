//! A small process between the server and a program that the server started by itself. When the server is killed, it ends
//! the program and everything in the program's process group, which nothing else would do.
//!
//! [`command`] is the server's side; `run` is the process. A program that [`crate::ProcessSpawner`] starts needs none: its
//! subreaper does this and more.

use crate::helper_process::REAPER;
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgrp, getppid};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitStatus;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// The exit code by which a shell reports that a program could not be started.
const NOT_STARTED: i32 = 127;

/// A command that runs `argv` below a reaper: this binary, whose `main` must call [`crate::enter_if_asked`]
/// first. Give it its own process group (`process_group(0)`).
#[expect(clippy::disallowed_methods, reason = "this is the place that the rule names")]
pub fn command(argv: &[String]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(REAPER.title).arg(REAPER.verb).args(argv);
    command
}

/// Kills a process group that the caller leads or whose leader it has not reaped yet.
pub fn kill_group(leader: u32) {
    // An error means that the group has ended.
    let _ = killpg(Pid::from_raw(leader.cast_signed()), Signal::SIGKILL);
}

/// Why a program could not be started, in a shell's words.
pub fn start_error(error: &io::Error) -> String {
    use io::ErrorKind::{NotFound, PermissionDenied};
    if error.kind() == NotFound {
        return "command not found".into();
    }
    if error.kind() == PermissionDenied {
        return "permission denied".into();
    }
    error.kind().to_string()
}

/// Runs `program` until it ends or the server does, and returns the exit code.
pub(crate) fn run(program: Vec<OsString>) -> i32 {
    let server = getppid();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_or(NOT_STARTED, |runtime| runtime.block_on(watch_server(&program, server)))
}

#[expect(clippy::disallowed_methods, reason = "starting a program is what a reaper is for")]
async fn watch_server(program: &[OsString], server: Pid) -> i32 {
    let Ok(mut orphaned) = signal(SignalKind::terminate()) else { return NOT_STARTED };
    // The kernel sends this signal when the thread that started this process has ended.
    if set_pdeathsig(Signal::SIGTERM).is_err() || getppid() != server {
        return NOT_STARTED;
    }
    let Some((name, args)) = program.split_first() else { return NOT_STARTED };
    let mut child = match Command::new(name).args(args).spawn() {
        Ok(child) => child,
        Err(error) => {
            report_start_error(name, &error);
            return NOT_STARTED;
        }
    };
    loop {
        tokio::select! {
            ended = child.wait() => {
                // Asks what the program left behind to end. This process receives the signal too and ignores it.
                let _ = signal_own_group(Signal::SIGTERM);
                return ended.map_or(NOT_STARTED, exit_code);
            }
            _ = orphaned.recv() => {
                if getppid() != server {
                    // This process is a member of the group and ends with it.
                    let _ = signal_own_group(Signal::SIGKILL);
                }
            }
        }
    }
}

fn signal_own_group(signal: Signal) -> Result<(), Errno> {
    killpg(getpgrp(), signal)
}

/// Prints why the program could not be started, where the program itself would print its errors. The name has no folder,
/// because guests read this.
fn report_start_error(name: &OsStr, error: &io::Error) {
    let name = Path::new(name).file_name().unwrap_or(name).to_string_lossy();
    let text = format!("{name}: {}\n", start_error(error));
    // There is no other place to report to.
    let _ = io::stderr().write_all(text.as_bytes());
}

fn exit_code(status: ExitStatus) -> i32 {
    // Parent processes read this as a byte.
    status.code().filter(|code| (0..=255).contains(code)).unwrap_or(1)
}
