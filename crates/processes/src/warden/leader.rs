//! The last steps before a forked child is the program.

use super::cage;
use super::signals::unblock;
use crate::cage::Wall;
use crate::order::Order;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid, setsid};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

/// Becomes the program; returns only with the reason why not.
pub(super) fn become_program(
    order: Order,
    streams: [OwnedFd; 3],
    guardian: Pid,
) -> (Option<Wall>, io::Error) {
    if let Err(error) = prepare(&order, &streams, guardian) {
        return (None, error);
    }
    if let Some(Err((wall, error))) = order.cage.as_ref().map(cage::enter) {
        return (Some(wall), error);
    }
    (None, enter(order, streams))
}

fn prepare(order: &Order, [stdin, ..]: &[OwnedFd; 3], guardian: Pid) -> io::Result<()> {
    setsid()?;
    if order.has_terminal {
        take_terminal(stdin)?;
    }
    set_pdeathsig(Signal::SIGKILL)?;
    // It may have ended before the wish was made.
    if getppid() != guardian {
        super::leave(127);
    }
    Ok(unblock()?)
}

/// Makes the terminal the one that Ctrl-C and hang-ups of this session come from.
fn take_terminal(terminal: &OwnedFd) -> io::Result<()> {
    // SAFETY: the call takes a descriptor that we own and a number, and writes nothing.
    let answer = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Every descriptor but the three is closed by the system on the way.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing is spawned: this process becomes the program"
)]
fn enter(order: Order, [stdin, stdout, stderr]: [OwnedFd; 3]) -> io::Error {
    let mut words = order.argv.into_iter();
    let Some(program) = words.next() else { return io::ErrorKind::InvalidInput.into() };
    let mut command = std::process::Command::new(&program);
    command.arg0(order.arg0.as_ref().unwrap_or(&program)).args(words);
    command.env_clear().envs(order.env).current_dir(order.cwd);
    command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    command.exec()
}
