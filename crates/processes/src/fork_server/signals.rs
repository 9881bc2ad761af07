//! Signals of fork servers and subreapers: they wait for none but the end of children.

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Blocks everything, and hears of children through a descriptor. Service managers and terminals signal
/// every process they know; when to stop is the server's decision.
pub(super) fn hear_children_only() -> nix::Result<SignalFd> {
    for signal in Signal::iterator() {
        reset(signal)?;
    }
    reset_own_signals_of_libc();
    SigSet::all().thread_block()?;
    let children = SigSet::from(Signal::SIGCHLD);
    SignalFd::with_flags(&children, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

/// Undoes the blocking in a child that becomes a program: programs inherit what is blocked and ignored.
pub(super) fn unblock() -> nix::Result<()> {
    SigSet::empty().thread_set_mask()
}

/// The first signals after the standard ones are libc's own. It cannot be asked to change them, and starts programs
/// with them ignored.
fn reset_own_signals_of_libc() {
    let default = [0_u64; 4];
    for signal in [32, 33] {
        // SAFETY: the kernel reads one action: handler, flags, restorer and mask, all zero, which is its own way to
        // handle a signal. It is told the size of its mask and writes nothing.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, &raw const default, 0, size_of::<u64>())
        };
    }
}

/// What the server ignores, or whoever started it, no program shall.
fn reset(signal: Signal) -> nix::Result<()> {
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: the kernel's own way to handle a signal runs no code of ours.
    match unsafe { sigaction(signal, &default) } {
        // Two signals cannot be changed and never are ignored.
        Ok(_) | Err(Errno::EINVAL) => Ok(()),
        Err(error) => Err(error),
    }
}
