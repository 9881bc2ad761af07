//! The inside of the warden: a small process with one thread that forks a guardian for each program.
//!
//! It knows nothing of programs. It gets guardians' sockets over its standard input, forks, and reaps. Should a
//! guardian be killed, what it had falls to the warden, which kills it.
#![expect(unsafe_code, reason = "fork and the controlling terminal have no safe interface")]

mod cage;
mod children;
mod guardian;
mod program;
mod signals;
mod usage;
mod vfork;

use crate::guardian_link::{Received, receive};
use children::children;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The hidden verb that makes a program a warden.
pub(crate) const VERB: &str = "__warden";

/// The code of a warden that nobody steers: somebody typed the verb by hand.
const NOT_STEERED: i32 = 64;

/// Call first in `main`: if this process was started as our warden, it becomes it and never returns.
pub fn enter_if_asked() {
    if std::env::args_os().nth(1).as_deref() != Some(OsStr::new(VERB)) {
        return;
    }
    let code = match Warden::begin() {
        Ok(warden) => warden.run(),
        Err(_) => NOT_STEERED,
    };
    leave(code)
}

/// Ends the process.
#[expect(clippy::exit, reason = "wardens, guardians and what they fork have no main to return to")]
fn leave(code: i32) -> ! {
    std::process::exit(code)
}

struct Warden {
    control: OwnedFd,
    children: SignalFd,
    guardians: HashSet<Pid>,
}

impl Warden {
    fn begin() -> io::Result<Self> {
        let control = io::stdin().as_fd().try_clone_to_owned()?;
        nix::unistd::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        close_inherited(&control)?;
        // Leading a session already is as good.
        let _ = nix::unistd::setsid();
        nix::sys::prctl::set_child_subreaper(true)?;
        let children = signals::hear_children_only()?;
        Ok(Self { control, children, guardians: HashSet::new() })
    }

    /// Serves until the server is gone.
    fn run(mut self) -> i32 {
        loop {
            if wait(&self.control, &self.children, PollTimeout::NONE).is_err() {
                return 1;
            }
            self.reap();
            match receive(&self.control) {
                Ok(Received::Link(link)) => self.fork_guardian(link),
                Ok(Received::Nothing) => {}
                Ok(Received::Gone) | Err(_) => return self.end(),
            }
        }
    }

    fn fork_guardian(&mut self, link: OwnedFd) {
        // SAFETY: this process has one thread, so the child may do anything that the parent could: no lock can
        // be held by a thread that is not there.
        match unsafe { fork() } {
            Ok(ForkResult::Parent { child }) => {
                self.guardians.insert(child);
            }
            Ok(ForkResult::Child) => {
                // The server must see the end of the warden when the warden ends, and no program its socket.
                let nothing = std::fs::File::open("/dev/null").map(OwnedFd::from);
                match nothing {
                    Ok(nothing) => drop(std::mem::replace(&mut self.control, nothing)),
                    Err(_) => leave(1),
                }
                leave(guardian::run(link, &self.children))
            }
            // The server sees its end of the guardian's socket close.
            Err(_) => {}
        }
    }

    fn reap(&mut self) {
        let mut has_orphans = false;
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            let Some(pid) = status.pid() else { break };
            let is_guardian = self.guardians.remove(&pid);
            // A guardian that was killed leaves orphans to us; so does each orphan that we kill.
            has_orphans |= !is_guardian || matches!(status, WaitStatus::Signaled(..));
        }
        if has_orphans {
            self.kill_orphans();
        }
    }

    /// The server is gone. Each guardian sees the same and clears up after itself; none becomes a zombie.
    fn end(&mut self) -> i32 {
        self.kill_orphans();
        while let Ok(status) = waitpid(None, None) {
            if let Some(pid) = status.pid() {
                self.guardians.remove(&pid);
            }
            self.kill_orphans();
        }
        0
    }

    fn kill_orphans(&self) {
        for orphan in children().filter(|pid| !self.guardians.contains(pid)) {
            let _ = kill(orphan, Signal::SIGKILL);
        }
    }
}

/// Waits until there is something to read on either, or for so long.
fn wait(one: &impl AsFd, other: &SignalFd, most: PollTimeout) -> nix::Result<(bool, bool)> {
    let mut watched = [
        PollFd::new(one.as_fd(), PollFlags::POLLIN),
        PollFd::new(other.as_fd(), PollFlags::POLLIN),
    ];
    loop {
        match poll(&mut watched, most) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    let [one, other_ready] = watched.map(|watched| watched.any().unwrap_or(true));
    // Whoever ended is found by waiting; the signals themselves say nothing more.
    while let Ok(Some(_)) = other.read_signal() {}
    Ok((one, other_ready))
}

/// Closes what whoever started the server left open; no program of ours shall find it.
fn close_inherited(kept: &OwnedFd) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let kept = kept.as_raw_fd().unsigned_abs();
    for (first, last) in [(3, kept - 1), (kept + 1, u32::MAX)] {
        // SAFETY: nothing in this process owns a descriptor above the standard ones yet, except `kept`.
        let answer = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        if answer < 0 && first <= last {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
