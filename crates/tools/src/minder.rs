//! A small process between us and a program that we started: when we are killed, it ends the program and all
//! that the program started, which nobody else would do.

use rustix::process::{
    Signal, getpgrp, getppid, kill_process_group, set_parent_process_death_signal,
};
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use tokio::signal::unix::{SignalKind, signal};

/// The hidden word that makes this binary a minder.
pub(crate) const VERB: &str = "__mind";

/// How a shell says that a program could not be started.
const NOT_STARTED: u8 = 127;

/// Minds a program, if this process was started to do that. Call it first in `main`.
pub fn enter_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != *VERB {
        return None;
    }
    let program: Vec<OsString> = args.collect();
    let parent = getppid();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Some(match runtime {
        Ok(runtime) => runtime.block_on(mind(&program, parent)),
        Err(_) => ExitCode::from(NOT_STARTED),
    })
}

#[expect(clippy::disallowed_methods, reason = "starting a program is what a minder is for")]
async fn mind(program: &[OsString], parent: Option<rustix::process::Pid>) -> ExitCode {
    let Ok(mut orphaned) = signal(SignalKind::terminate()) else { return NOT_STARTED.into() };
    // The kernel says so when the thread that started us is gone.
    if set_parent_process_death_signal(Some(Signal::TERM)).is_err() || getppid() != parent {
        return NOT_STARTED.into();
    }
    let Some((name, args)) = program.split_first() else { return NOT_STARTED.into() };
    let mut child = match tokio::process::Command::new(name).args(args).spawn() {
        Ok(child) => child,
        Err(error) => {
            tell(name, &error);
            return NOT_STARTED.into();
        }
    };
    loop {
        tokio::select! {
            ended = child.wait() => {
                // What it left behind is asked to go; we hear it too, and do not mind.
                let _ = kill_process_group(getpgrp(), Signal::TERM);
                return ended.map_or(NOT_STARTED.into(), code);
            }
            _ = orphaned.recv() => {
                if getppid() != parent {
                    // Ourselves included.
                    let _ = kill_process_group(getpgrp(), Signal::KILL);
                }
            }
        }
    }
}

/// Says why the program could not be started, where the program itself would say what is wrong. The name without its
/// folder: guests read this.
fn tell(name: &OsStr, error: &std::io::Error) {
    let name = Path::new(name).file_name().unwrap_or(name).to_string_lossy();
    let text = format!("{name}: {}\n", start_error(error));
    // Nobody else is there to be told.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Why a program could not be started, in a shell's words.
pub fn start_error(error: &std::io::Error) -> String {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    if error.kind() == NotFound {
        return "command not found".into();
    }
    if error.kind() == PermissionDenied {
        return "permission denied".into();
    }
    error.kind().to_string()
}

fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.unwrap_or(1).into()
}
