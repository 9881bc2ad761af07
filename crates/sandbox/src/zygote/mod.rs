//! The inside of a zygote: a small, single-threaded process that is already in the jail and forks runners.
//!
//! It warms the guest's world once, shuts the jail around itself, then does three things until its control
//! socket closes: clone on request, pass the pidfd back, report which runners have ended.
#![expect(unsafe_code, reason = "clone, descriptor passing and pidfds have no safe interface")]

mod child;
mod control;
mod link;
mod mapped;
mod pages;
mod process;
mod signals;

pub(crate) use control::{ControlSocket, ForkOrder, ForkToken, ProcessEnd, ZygoteReport};
pub(crate) use link::{ZygoteSocket, writable};
pub(crate) use process::PinnedProcess;

use crate::jail::{self, JailLayer, JailTier};
use child::ChildSetup;
use pages::{LearningSide, TouchedPages};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// The hidden verb that makes a program a zygote.
pub(crate) const VERB: &str = "__zygote";

/// Where the control socket lies once the standard descriptors are /dev/null.
const CONTROL_DESCRIPTOR: u32 = 3;

/// The exit code of a zygote without a server: it was started manually, or the server has ended.
const NOT_STEERED: i32 = 64;

/// The exit code of a zygote or runner that could not shut its jail: an error on our side, before any guest
/// code ran.
pub(crate) const NOT_SHUT: i32 = 70;

/// What zygotes and runners do apart from shutting jails. None of it may start a thread.
#[derive(Debug, Clone, Copy)]
pub struct RunnerProgram<W> {
    /// Runs once, in the zygote, before the jail is shut.
    pub warm: fn() -> W,
    /// The order that a copy of the zygote runs, so that runners know in advance which pages they will touch.
    pub rehearsal: &'static str,
    /// Runs in runners that will wait for their lease, inside the jail, to save time later.
    pub limber_up: fn(&W),
    /// Runs in every runner, inside the jail.
    pub serve: fn(W, UnixStream) -> i32,
}

/// Becomes a zygote that runs `play`, if this process was started as one.
pub fn enter_with<W>(play: RunnerProgram<W>) {
    if std::env::args_os().nth(1).as_deref() != Some(OsStr::new(VERB)) {
        return;
    }
    let Ok(control) = take_control() else { leave(NOT_STEERED) };
    signals::leave_stopping_to_the_server().expect("a signal that exists can be ignored");
    let world = (play.warm)();
    give_back();
    let touched = match TouchedPages::learn() {
        Ok(LearningSide::Copy(saying)) => {
            rehearse(play, world);
            leave(i32::from(saying.send_pages().is_err()));
        }
        Ok(LearningSide::Zygote(touched)) => touched,
        Err(_) => TouchedPages::default(),
    };
    let mapped_bytes = mapped_bytes();
    let mut tier = JailTier::default();
    jail::leave_the_host(&mut tier);
    if tier.has(JailLayer::PidNamespace) {
        // The namespace applies to children only: the first one is its init, the actual zygote.
        become_init(&control);
    }
    signals::hear_children().expect("a signal that exists can be handled and blocked");
    silence();
    if let Err(missing) = jail::shut(&mut tier) {
        let errno = missing.source.raw_os_error().unwrap_or(0);
        drop(control.report(ZygoteReport::Missing { layer: missing.layer, errno }, None));
        leave(NOT_SHUT);
    }
    let own_pid = std::process::id();
    Zygote { control, runners: HashMap::new(), own_pid, mapped_bytes, touched }
        .run(world, tier, play)
}

struct Zygote {
    control: ControlSocket,
    runners: HashMap<i32, ForkToken>,
    own_pid: u32,
    mapped_bytes: u64,
    touched: TouchedPages,
}

impl Zygote {
    fn run<W>(mut self, world: W, tier: JailTier, play: RunnerProgram<W>) -> ! {
        self.send_report(ZygoteReport::Ready(tier), None);
        loop {
            let woken = signals::wait(&self.control).map(|()| self.reap());
            match woken.and_then(|()| self.control.next_order()) {
                Ok(Some((order, Some(link)))) => match clone_runner() {
                    // From here on it is the runner's own copy of the world; the zygote's is not changed.
                    Ok(CloneSide::Runner) => {
                        if order.will_wait {
                            self.touched.take_now();
                        }
                        child::serve(self.birth(order), link, |link| {
                            if order.will_wait {
                                (play.limber_up)(&world);
                            }
                            (play.serve)(world, link)
                        })
                    }
                    Ok(CloneSide::Zygote { pid, pidfd }) => self.born(order.token, pid, &pidfd),
                    Err(error) => self.not_born(order.token, &error),
                },
                Err(nothing) if nothing.kind() == io::ErrorKind::WouldBlock => {}
                // The server has ended or sent an invalid packet. Runners die with us.
                Ok(Some((_, None)) | None) | Err(_) => leave(0),
            }
        }
    }

    const fn birth(&self, order: ForkOrder) -> ChildSetup {
        ChildSetup {
            zygote_pid: self.own_pid,
            mapped_bytes: self.mapped_bytes,
            memory_bytes: order.memory_bytes,
        }
    }

    fn born(&mut self, token: ForkToken, pid: i32, pidfd: &OwnedFd) {
        self.runners.insert(pid, token);
        self.send_report(ZygoteReport::Born(token), Some(pidfd));
    }

    fn not_born(&self, token: ForkToken, error: &io::Error) {
        self.send_report(
            ZygoteReport::NotBorn { token, errno: error.raw_os_error().unwrap_or(0) },
            None,
        );
    }

    fn reap(&mut self) {
        while let Some((pid, end)) = next_ended(libc::WNOHANG) {
            if let Some(token) = self.runners.remove(&pid) {
                self.send_report(ZygoteReport::Ended { token, end }, None);
            }
        }
    }

    /// Reports to the server, or exits: without a server there is nothing to do.
    fn send_report(&self, report: ZygoteReport, passed: Option<&OwnedFd>) {
        if self.control.report(report, passed.map(AsFd::as_fd)).is_err() {
            leave(0);
        }
    }
}

/// Returns the memory that the warm-up used to the system: runners that reuse it get zero pages instead of
/// copies of old content.
fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it touches nothing but memory that is free; the process is single-threaded.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Serves one order and discards the result.
fn rehearse<W>(play: RunnerProgram<W>, world: W) {
    let Ok((mut link, theirs)) = UnixStream::pair() else { return };
    if link.write_all(play.rehearsal.as_bytes()).is_ok() && link.shutdown(Shutdown::Write).is_ok() {
        (play.serve)(world, theirs);
    }
}

/// Moves the control socket away from the standard descriptors and closes all other inherited descriptors.
fn take_control() -> io::Result<ControlSocket> {
    let mut found: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `found`; dup3 and dup2 take numbers only, and the
    // descriptors they replace are not owned by anything in this process yet.
    let taken = unsafe {
        let answer = libc::getsockopt(
            libc::STDIN_FILENO,
            libc::SOL_SOCKET,
            libc::SO_TYPE,
            (&raw mut found).cast(),
            &raw mut length,
        );
        if answer < 0 || found != libc::SOCK_SEQPACKET {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let to = CONTROL_DESCRIPTOR as RawFd;
        libc::dup3(libc::STDIN_FILENO, to, libc::O_CLOEXEC) == to
            && libc::dup2(libc::STDOUT_FILENO, libc::STDIN_FILENO) == libc::STDIN_FILENO
    };
    if !taken {
        return Err(io::Error::last_os_error());
    }
    close_range(CONTROL_DESCRIPTOR + 1, u32::MAX);
    // SAFETY: dup3 has just created this descriptor, and nothing else refers to it.
    Ok(ControlSocket::from_descriptor(unsafe { OwnedFd::from_raw_fd(CONTROL_DESCRIPTOR as RawFd) }))
}

/// From here on nothing is printed: a runner's output on standard error must not leave the process.
fn silence() {
    // SAFETY: both descriptors are open since the start; dup2 takes numbers only.
    unsafe { libc::dup2(libc::STDOUT_FILENO, libc::STDERR_FILENO) };
}

/// Closes descriptors from `first` to `last`; none of them may be owned by a value that is still used.
fn close_range(first: u32, last: u32) {
    if first <= last {
        // SAFETY: callers pass ranges whose owners are never used again: the process is about to become
        // something else that has no reference to them.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// Address space in use; a runner's limit is relative to it. If /proc is hidden, a generous estimate.
fn mapped_bytes() -> u64 {
    const GUESS: u64 = 64 << 20;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    crate::memory::bytes_after("VmSize:", &status).unwrap_or(GUESS)
}

/// Continues as the first process of the new pid namespace. The old process waits for it and exits with the
/// same status.
fn become_init(control: &ControlSocket) {
    // SAFETY: the process is single-threaded, so the copy finds every lock free.
    match unsafe { libc::fork() } {
        0 => {
            // When the waiting half is killed, so are we; when the server ends, the control socket closes.
            drop(jail::die_with_parent());
        }
        -1 => {
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            drop(
                control
                    .report(ZygoteReport::Missing { layer: JailLayer::PidNamespace, errno }, None),
            );
            leave(NOT_SHUT)
        }
        _init => {
            close_range(CONTROL_DESCRIPTOR, u32::MAX);
            match next_ended(0) {
                Some((_, ProcessEnd::Exited(code))) => leave(code),
                Some((_, ProcessEnd::Signalled(signal))) => leave(128 + signal),
                None => leave(NOT_SHUT),
            }
        }
    }
}

/// Which process continues after a clone.
enum CloneSide {
    Runner,
    Zygote { pid: i32, pidfd: OwnedFd },
}

fn clone_runner() -> io::Result<CloneSide> {
    let mut pidfd: RawFd = -1;
    let (no_stack, none) = (0_usize, 0_usize);
    // SAFETY: without CLONE_VM the child continues with a copy of this stack, as after fork; the process is
    // single-threaded, so the copy finds every lock free. The kernel writes the pidfd where the third
    // argument points. Not fork: its flags are not the one set that the filter allows.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone, jail::CLONE_FLAGS, no_stack, &raw mut pidfd, none, none)
    };
    match pid {
        0 => Ok(CloneSide::Runner),
        -1 => Err(io::Error::last_os_error()),
        pid => {
            // SAFETY: the kernel has just made this descriptor for us.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(CloneSide::Zygote { pid: pid as i32, pidfd })
        }
    }
}

/// Reaps one child that has ended, and waits for it unless `options` forbid it.
fn next_ended(options: i32) -> Option<(i32, ProcessEnd)> {
    let mut status = 0;
    let pid = loop {
        // SAFETY: the kernel writes one status, which is what is there.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, options) };
        if pid >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break pid;
        }
    };
    let end = if libc::WIFSIGNALED(status) {
        ProcessEnd::Signalled(libc::WTERMSIG(status))
    } else {
        ProcessEnd::Exited(libc::WEXITSTATUS(status))
    };
    (pid > 0).then_some((pid, end))
}

/// Ends this process immediately: no destructor and no exit handler may run in a zygote or runner.
fn leave(code: i32) -> ! {
    // SAFETY: _exit takes a number and does not return.
    unsafe { libc::_exit(code) }
}
