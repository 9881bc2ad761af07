//! Signals of fork servers and subreapers, which wait only for the end of children.

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Blocks all signals, and reports ended children through a descriptor. Service managers and terminals
/// signal every process they know; the server decides when to stop.
pub(super) fn hear_children_only() -> nix::Result<SignalFd> {
    for signal in Signal::iterator() {
        reset(signal)?;
    }
    reset_own_signals_of_libc();
    SigSet::all().thread_block()?;
    let children = SigSet::from(Signal::SIGCHLD);
    SignalFd::with_flags(&children, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

/// Undoes the blocking in a child that executes a program: programs inherit blocked and ignored signals.
pub(super) fn unblock() -> nix::Result<()> {
    SigSet::empty().thread_set_mask()
}

/// libc reserves the first signals after the standard ones. It refuses to change them, and starts programs
/// with them ignored.
fn reset_own_signals_of_libc() {
    let default = [0_u64; 4];
    for signal in [32, 33] {
        // SAFETY: the kernel reads one action: handler, flags, restorer and mask, all zero, which is the
        // default action. It receives the size of its mask and writes nothing.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, &raw const default, 0, size_of::<u64>())
        };
    }
}

/// A program must not inherit the signals that the server, or its parent, ignores.
fn reset(signal: Signal) -> nix::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the default action runs no code of ours.
    match unsafe { sigaction(signal, &default) } {
        // Two signals cannot be changed and are never ignored.
        Ok(_) | Err(Errno::EINVAL) => Ok(()),
        Err(error) => Err(error),
    }
}
