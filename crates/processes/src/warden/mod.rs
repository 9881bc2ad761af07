//! The inside of the warden: a small process with one thread that forks a guardian for each program.
//!
//! It knows nothing of programs. It gets guardians' sockets over its standard input, forks, and reaps. Should a
//! guardian be killed, what it had falls to the warden, which kills it.
#![expect(unsafe_code, reason = "fork and the controlling terminal have no safe interface")]

mod cage;
mod caged;
mod capabilities;
mod children;
mod covers;
mod family;
mod guardian;
mod init;
mod program;
mod signals;
mod stat;
mod usage;
mod users;
mod vfork;

use crate::guardian_link::{Received, receive};
use crate::protected::ProtectedPaths;
use children::children;
use covers::Covers;
use family::Family;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
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
    let protected = ProtectedPaths::from_args(std::env::args_os().skip(2));
    let code = match Warden::begin(protected) {
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
    covers: Covers,
    guardians: HashSet<Pid>,
    /// Whether somebody was left to us by a guardian that was killed.
    has_orphans: bool,
}

impl Warden {
    fn begin(protected: ProtectedPaths) -> io::Result<Self> {
        let control = io::stdin().as_fd().try_clone_to_owned()?;
        nix::unistd::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        close_inherited(&control)?;
        // Leading a session already is as good.
        let _ = nix::unistd::setsid();
        let covers = Covers::enter(protected);
        nix::sys::prctl::set_child_subreaper(true)?;
        let children = signals::hear_children_only()?;
        let guardians = HashSet::new();
        Ok(Self { control, children, covers, guardians, has_orphans: false })
    }

    /// Serves until the server is gone.
    fn run(mut self) -> i32 {
        loop {
            let orphans = PollTimeout::from(AN_END_MS_MAX);
            let most = if self.has_orphans { orphans } else { PollTimeout::NONE };
            if wait(&self.control, &self.children, most).is_err() {
                return 1;
            }
            let _ = self.reap();
            if self.has_orphans {
                self.kill_orphans();
            }
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
                leave(guardian::run(link, &self.children, &self.covers))
            }
            // The server sees its end of the guardian's socket close.
            Err(_) => {}
        }
    }

    /// Takes note of all who have ended; `None` when nobody is left.
    fn reap(&mut self) -> Option<()> {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return Some(()),
                Ok(status) => {
                    let is_guardian = status.pid().is_some_and(|pid| self.guardians.remove(&pid));
                    // A guardian that was killed leaves orphans to us; so does each orphan that we kill.
                    self.has_orphans |= !is_guardian || matches!(status, WaitStatus::Signaled(..));
                }
                Err(Errno::EINTR) => {}
                // There are no children.
                Err(_) => return None,
            }
        }
    }

    /// The server is gone. Each guardian sees the same and clears up after itself; none becomes a zombie.
    fn end(&mut self) -> i32 {
        while self.reap().is_some() {
            self.kill_orphans();
            hear_an_end(&self.children);
        }
        0
    }

    fn kill_orphans(&mut self) {
        let mut family = Family::new();
        while family.stop(self.orphans()) && self.reap().is_some() {}
        family.kill();
        let is_anybody_left = self.orphans().next().is_some();
        self.has_orphans = is_anybody_left;
    }

    fn orphans(&self) -> impl Iterator<Item = Pid> {
        children().filter(|child| !self.guardians.contains(child))
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

/// How long nobody's end is waited for, in milliseconds, before everybody is looked at again: the list of children
/// misses some while others end.
const AN_END_MS_MAX: u16 = 100;

/// Waits until a child has ended.
fn hear_an_end(children: &SignalFd) {
    let mut watched = [PollFd::new(children.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut watched, PollTimeout::from(AN_END_MS_MAX));
    while let Ok(Some(_)) = children.read_signal() {}
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
