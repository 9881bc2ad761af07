//! Notifies a zygote of its children's ends: SIGCHLD is blocked except while it waits.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// Ignores stop signals, which are for the server: service managers and terminals signal every process they
/// know.
pub(super) fn leave_stopping_to_the_server() -> io::Result<()> {
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM]
        .into_iter()
        .try_for_each(|signal| set_handler(signal, libc::SIG_IGN))
}

/// Blocks SIGCHLD and gives it a handler, so that it interrupts [`wait`] and nothing else.
pub(super) fn hear_children() -> io::Result<()> {
    set_handler(libc::SIGCHLD, on_child as *const () as libc::sighandler_t)?;
    mask_children(libc::SIG_BLOCK)
}

/// Undoes [`hear_children`] in a runner, which has no children.
pub(super) fn forget_children() -> io::Result<()> {
    set_handler(libc::SIGCHLD, libc::SIG_DFL)?;
    mask_children(libc::SIG_UNBLOCK)
}

/// Waits until the descriptor is readable or a child has ended.
pub(super) fn wait(descriptor: &impl AsFd) -> io::Result<()> {
    let mut watched =
        libc::pollfd { fd: descriptor.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `watched` is one entry and outlives the call; an all-zero set becomes a valid empty one; no
    // time limit is a null pointer. Unblocking inside the call leaves no gap in which a child could be missed.
    let answer = unsafe {
        let mut nothing_blocked: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut nothing_blocked);
        libc::ppoll(&raw mut watched, 1, ptr::null(), &raw const nothing_blocked)
    };
    let error = io::Error::last_os_error();
    if answer < 0 && error.kind() != io::ErrorKind::Interrupted { Err(error) } else { Ok(()) }
}

extern "C" fn on_child(_signal: libc::c_int) {}

fn set_handler(signal: libc::c_int, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: an all-zero sigaction is valid; the handler is one of the kernel's own or a
    // function that does nothing, which is safe at any moment.
    let answer = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler;
        libc::sigaction(signal, &raw const action, ptr::null_mut())
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn mask_children(how: libc::c_int) -> io::Result<()> {
    // SAFETY: the set is made empty before it is used and outlives the call.
    let answer = unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(how, &raw const set, ptr::null_mut())
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
