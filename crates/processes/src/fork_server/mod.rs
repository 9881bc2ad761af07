//! The fork server: a small single-threaded process that forks a subreaper for each program.
//!
//! It does not see the programs. It receives the subreapers' sockets over its standard input, forks, and
//! reaps. If a subreaper is killed, its descendants become children of the fork server, which kills them.
#![expect(unsafe_code, reason = "fork and the controlling terminal have no safe interface")]

mod cage;
mod caged;
mod capabilities;
mod children;
mod covers;
mod family;
mod init;
mod program;
mod signals;
mod stat;
mod subreaper;
mod usage;
mod users;
mod vfork;

use crate::helper_process::end_process;
use crate::protected::ProtectedPaths;
use crate::subreaper_link::{ForkServerPacket, receive};
use children::children;
use covers::PathCovers;
use family::ProcessFamily;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The exit code of a fork server without a server: the verb was typed manually.
const NOT_STEERED: i32 = 64;

/// Serves until the server has ended, and returns the exit code.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> i32 {
    match ForkServer::start_serving(ProtectedPaths::from_args(args)) {
        Ok(fork_server) => fork_server.run(),
        Err(_) => NOT_STEERED,
    }
}

struct ForkServer {
    control: OwnedFd,
    children: SignalFd,
    covers: PathCovers,
    subreapers: HashSet<Pid>,
    /// Whether a killed subreaper has left children to us.
    has_orphans: bool,
}

impl ForkServer {
    fn start_serving(protected: ProtectedPaths) -> io::Result<Self> {
        let control = io::stdin().as_fd().try_clone_to_owned()?;
        nix::unistd::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        close_inherited(&control)?;
        // Failure means that it already leads a session.
        let _ = nix::unistd::setsid();
        let covers = PathCovers::enter_namespace(protected);
        nix::sys::prctl::set_child_subreaper(true)?;
        let children = signals::hear_children_only()?;
        let subreapers = HashSet::new();
        Ok(Self { control, children, covers, subreapers, has_orphans: false })
    }

    /// Serves until the server has ended.
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
                Ok(ForkServerPacket::Link(link)) => self.fork_subreaper(link),
                Ok(ForkServerPacket::Nothing) => {}
                Ok(ForkServerPacket::Gone) | Err(_) => return self.end_all(),
            }
        }
    }

    fn fork_subreaper(&mut self, link: OwnedFd) {
        // SAFETY: this process has one thread, so the child may do anything that the parent could: no lock
        // can be held by a thread that does not exist in the child.
        match unsafe { fork() } {
            Ok(ForkResult::Parent { child }) => {
                self.subreapers.insert(child);
            }
            Ok(ForkResult::Child) => {
                // The server must notice when the fork server ends, and no program may inherit its socket.
                let nothing = std::fs::File::open("/dev/null").map(OwnedFd::from);
                match nothing {
                    Ok(nothing) => drop(std::mem::replace(&mut self.control, nothing)),
                    Err(_) => end_process(1),
                }
                end_process(subreaper::run(link, &self.children, &self.covers))
            }
            // The server notices that its end of the subreaper's socket closes.
            Err(_) => {}
        }
    }

    /// Reaps all ended children; `None` when no child is left.
    fn reap(&mut self) -> Option<()> {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return Some(()),
                Ok(status) => {
                    let is_subreaper = status.pid().is_some_and(|pid| self.subreapers.remove(&pid));
                    // A subreaper that was killed leaves orphans to us; so does each orphan that we kill.
                    self.has_orphans |= !is_subreaper || matches!(status, WaitStatus::Signaled(..));
                }
                Err(Errno::EINTR) => {}
                // There are no children.
                Err(_) => return None,
            }
        }
    }

    /// The server has ended. Each subreaper notices that, too, and kills its family; none may remain as a
    /// zombie.
    fn end_all(&mut self) -> i32 {
        while self.reap().is_some() {
            self.kill_orphans();
            hear_an_end(&self.children);
        }
        0
    }

    fn kill_orphans(&mut self) {
        let mut family = ProcessFamily::new();
        while family.stop(self.orphans()) && self.reap().is_some() {}
        family.kill();
        let is_anybody_left = self.orphans().next().is_some();
        self.has_orphans = is_anybody_left;
    }

    fn orphans(&self) -> impl Iterator<Item = Pid> {
        children().filter(|child| !self.subreapers.contains(child))
    }
}

/// Waits until either is readable, at most this long.
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
    // Ended children are found by waiting; the signals themselves contain no more information.
    while let Ok(Some(_)) = other.read_signal() {}
    Ok((one, other_ready))
}

/// How long to wait for the end of a child, in milliseconds, before all children are searched again: the
/// list of children misses some while others end.
const AN_END_MS_MAX: u16 = 100;

/// Waits until a child has ended.
fn hear_an_end(children: &SignalFd) {
    let mut watched = [PollFd::new(children.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut watched, PollTimeout::from(AN_END_MS_MAX));
    while let Ok(Some(_)) = children.read_signal() {}
}

/// Closes descriptors that the server inherited from its parent, so that no program inherits them.
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
