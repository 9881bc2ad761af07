//! The inside of the warden: a small process with one thread that forks a guardian for each program.
//!
//! It knows nothing of programs. It forks guardians, a few in advance, who wait for descriptors at its standard
//! input, and reaps them. Should a guardian be killed, what it had falls to the warden, which kills it.
#![expect(unsafe_code, reason = "fork and the controlling terminal have no safe interface")]

mod children;
mod guardian;
mod leader;
mod signals;

use crate::guardian_link::{Received, Wait, receive};
use children::children;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
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

/// Guardians that wait for a program: forking one takes longer than to wake it.
const SPARES_MAX: usize = 2;

struct Warden {
    control: OwnedFd,
    children: SignalFd,
    guardians: HashSet<Pid>,
    /// Those of them that wait for a program.
    spares: HashSet<Pid>,
    /// Where a spare that got one says its number.
    taken: (PipeReader, PipeWriter),
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
        let taken = io::pipe()?;
        let (guardians, spares) = (HashSet::new(), HashSet::new());
        Ok(Self { control, children, guardians, spares, taken })
    }

    /// Serves until the server is gone.
    fn run(mut self) -> i32 {
        loop {
            while self.spares.len() < SPARES_MAX && self.fork_guardian() {}
            // Where not even one can be forked, somebody must tell the server so.
            let is_alone = self.spares.is_empty();
            let Ok(news) = self.wait(is_alone) else { return 1 };
            self.reap();
            if news.has_taken {
                self.note_taken();
            }
            if news.has_packet && is_alone {
                // Dropping its descriptors closes the socket that the server waits at.
                drop(receive(&self.control, Wait::No));
            }
            if news.is_gone {
                return self.end();
            }
        }
    }

    /// Waits until something happens.
    fn wait(&self, is_alone: bool) -> nix::Result<News> {
        let for_packets = if is_alone { PollFlags::POLLIN } else { PollFlags::empty() };
        let mut watched = [
            PollFd::new(self.taken.0.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.children.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.control.as_fd(), for_packets),
        ];
        poll_all(&mut watched)?;
        let [taken, _, control] = watched.map(|watched| watched.revents());
        // Whoever ended is found by waiting; the signals themselves say nothing more.
        while let Ok(Some(_)) = self.children.read_signal() {}
        let has =
            |events: Option<PollFlags>, flag| events.is_some_and(|events| events.contains(flag));
        Ok(News {
            has_taken: has(taken, PollFlags::POLLIN),
            has_packet: has(control, PollFlags::POLLIN),
            is_gone: has(control, PollFlags::POLLHUP),
        })
    }

    /// Forks a guardian, who waits for a program; whether it could.
    fn fork_guardian(&mut self) -> bool {
        // SAFETY: this process has one thread, so the child may do anything that the parent could: no lock can
        // be held by a thread that is not there.
        match unsafe { fork() } {
            Ok(ForkResult::Parent { child }) => {
                self.guardians.insert(child);
                self.spares.insert(child);
                true
            }
            Ok(ForkResult::Child) => leave(self.become_guardian()),
            Err(_) => false,
        }
    }

    /// Waits for a program and guards it.
    fn become_guardian(&mut self) -> i32 {
        if guardian::prepare().is_err() {
            return 1;
        }
        let descriptors = loop {
            match receive(&self.control, Wait::Yes) {
                Ok(Received::Descriptors(descriptors)) => break descriptors,
                Ok(Received::Nothing) => {}
                Ok(Received::Gone) | Err(_) => return 0,
            }
        };
        // The warden forks the next one meanwhile. Where it is gone, so is the server, and the link will tell.
        let own = nix::unistd::getpid().as_raw();
        let _ = (&self.taken.1).write_all(&own.to_ne_bytes());
        // The server must see the end of the warden when the warden ends, and no program its socket.
        match std::fs::File::open("/dev/null").map(OwnedFd::from) {
            Ok(nothing) => drop(std::mem::replace(&mut self.control, nothing)),
            Err(_) => return 1,
        }
        guardian::run(descriptors, &self.children)
    }

    fn note_taken(&mut self) {
        let mut pid = [0; 4];
        // Each was written in one piece; the next is read after the next look.
        if (&self.taken.0).read_exact(&mut pid).is_ok() {
            self.spares.remove(&Pid::from_raw(i32::from_ne_bytes(pid)));
        }
    }

    fn reap(&mut self) {
        let mut has_orphans = false;
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            let Some(pid) = status.pid() else { break };
            let is_guardian = self.guardians.remove(&pid);
            self.spares.remove(&pid);
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

/// What a warden waits for.
struct News {
    has_taken: bool,
    has_packet: bool,
    is_gone: bool,
}

fn poll_all(watched: &mut [PollFd<'_>]) -> nix::Result<()> {
    loop {
        match poll(watched, PollTimeout::NONE) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(()),
        }
    }
}

/// Waits until there is something to read on either.
fn wait(one: &impl AsFd, other: &SignalFd) -> nix::Result<(bool, bool)> {
    let mut watched = [
        PollFd::new(one.as_fd(), PollFlags::POLLIN),
        PollFd::new(other.as_fd(), PollFlags::POLLIN),
    ];
    poll_all(&mut watched)?;
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
