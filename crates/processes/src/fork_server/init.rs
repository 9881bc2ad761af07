//! The first process of a cage's PID namespace. It reaps orphans and exits when no process is left; the
//! kernel then ends the namespace. The program is its sibling and not its child: the first process of a
//! namespace ignores signals that it does not handle, which programs rely on, and the subreaper must learn
//! how the program ended.

use super::{close_inherited, signals, wait};
use nix::errno::Errno;
use nix::poll::PollTimeout;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io::PipeReader;
use std::os::fd::OwnedFd;

/// Serves until the subreaper has closed the other end of `hold`, which it does when the program has ended,
/// and no orphan is left. The end of this process ends the namespace and all processes in it.
pub(super) fn run(hold: PipeReader) -> i32 {
    let _ = nix::sys::prctl::set_name(c"airlock-init");
    let hold = OwnedFd::from(hold);
    let _ = nix::sys::prctl::set_dumpable(false);
    let (Ok(()), Ok(children)) = (close_inherited(&hold), signals::hear_children_only()) else {
        return 1;
    };
    let mut is_held = true;
    while is_held || reap().is_some() {
        let answer = match is_held {
            true => wait(&hold, &children, PollTimeout::NONE),
            false => {
                super::hear_an_end(&children);
                Ok((false, true))
            }
        };
        match answer {
            Ok((is_closed, _)) => is_held &= !is_closed,
            Err(_) => return 1,
        }
        let _ = reap();
    }
    0
}

/// Reaps all ended children; `None` when there are no children.
fn reap() -> Option<()> {
    loop {
        match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return Some(()),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return None,
        }
    }
}
