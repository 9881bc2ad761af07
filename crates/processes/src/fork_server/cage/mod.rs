//! Sets up a cage around the process that calls it, which is about to execute a program. The order matters:
//! namespaces while it may still create them, mounts while it may still mount, then privileges are dropped
//! for good, then the filters.

mod filter;
pub(super) mod mounts;
mod rights;

use super::users::take_with_own_user;
use crate::cage::{NetworkAccess, ProcessCage, WallError};
use std::io;

/// Enters a cage within its namespaces; this is irreversible.
pub(super) fn enter_cage(cage: &ProcessCage) -> Result<(), (WallError, io::Error)> {
    let at = |wall| move |error| (wall, error);
    mounts::lay(&cage.ordered()).map_err(at(WallError::Mounts))?;
    if cage.network == NetworkAccess::Loopback {
        raise_loopback().map_err(at(WallError::Network))?;
    }
    rights::limit(&cage.limits).map_err(at(WallError::Privileges))?;
    rights::give_up().map_err(at(WallError::Privileges))?;
    rights::landlock(&cage.ordered()).map_err(at(WallError::Landlock))?;
    filter::install(cage).map_err(at(WallError::Filter))
}

/// Creates the namespaces of a cage: users keep their numbers but lose all privileges over what is not
/// theirs. Children are in the PID namespace, this process is not.
pub(super) fn take_namespaces(network: NetworkAccess) -> io::Result<()> {
    let network = if network == NetworkAccess::All { 0 } else { libc::CLONE_NEWNET };
    let flags = libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWPID | network;
    take_with_own_user(flags)
}

/// A new network namespace has a loopback that is down.
fn raise_loopback() -> io::Result<()> {
    use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
    // SAFETY: it takes numbers; the descriptor is ours alone.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check_result(socket)?;
    // SAFETY: the kernel has just created it for us.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: all zero is a valid request: a name without a letter, and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the kernel reads one request, which outlives the call.
    check_result(unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request)
    })
}

fn check_result(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
