//! Every process that the server starts by executing its own binary again, except the sandbox's zygote: one list of their
//! hidden verbs and of the names that they have in lists of processes.
//!
//! | Helper | Started by | Does |
//! |---|---|---|
//! | [`FORK_SERVER`] | [`crate::ProcessSpawner`] | forks a subreaper for each program |
//! | [`REAPER`] | [`crate::reaper::command`] | ends one program and its descendants when the server dies |
//! | [`FILE_WORKER`] | the door of the exec-server protocol | reads and writes files with the rights of a program |

use crate::{fork_server, reaper};
use std::ffi::OsStr;

/// Forks a subreaper for each program.
pub const FORK_SERVER: HelperProcess =
    HelperProcess { verb: "__fork-server", title: "airlock-fork-server" };

/// Ends one program and its descendants when the server dies.
pub const REAPER: HelperProcess = HelperProcess { verb: "__reaper", title: "airlock-reaper" };

/// Performs file requests of a client of the exec-server protocol. Its code is in that protocol's crate.
pub const FILE_WORKER: HelperProcess = HelperProcess { verb: "__files", title: "airlock-files" };

/// A process of this same binary under a hidden verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelperProcess {
    /// The first argument, by which `main` recognises it.
    pub verb: &'static str,
    /// Its name in lists of processes (`argv[0]`).
    pub title: &'static str,
}

impl HelperProcess {
    /// Whether this process was started as that helper.
    pub fn is_this_process(&self) -> bool {
        std::env::args_os().nth(1).as_deref() == Some(OsStr::new(self.verb))
    }
}

/// Call first in `main`: a process that was started as one of this crate's helpers becomes it, and the function does not
/// return.
pub fn enter_if_asked() {
    if FORK_SERVER.is_this_process() {
        end_process(fork_server::run(std::env::args_os().skip(2)));
    }
    if REAPER.is_this_process() {
        end_process(reaper::run(std::env::args_os().skip(2).collect()));
    }
}

/// Ends a helper process, or a child that it forked.
#[expect(clippy::exit, reason = "helpers and what they fork have no `main` to return to")]
pub(crate) fn end_process(code: i32) -> ! {
    std::process::exit(code)
}
