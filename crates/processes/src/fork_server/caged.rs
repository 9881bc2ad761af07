//! Starts a program in a cage.
//!
//! ```text
//! subreaper --fork--> helper: takes the namespaces --fork--> first process of the PID namespace
//!     |                    |
//!     +------ parent ------+--clone(CLONE_PARENT)--> the program
//! ```
//!
//! The helper stays in the subreaper's PID namespace, so that it learns the program's number there, and the program becomes
//! a child of the subreaper, which thus can signal and reap it as it does others.

use super::program::ExecPlan;
use super::{cage, init};
use crate::cage::{ProcessCage, WallError};
use crate::helper_process::end_process;
use crate::spawn_order::{REPORT_BYTES, SubreaperReport};
use nix::errno::Errno;
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::OwnedFd;

/// A program in a cage.
pub(super) struct CagedProgram {
    pub(super) leader: Pid,
    pub(super) init: CageInit,
}

/// The first process of a cage. It ends when this is dropped and no other process is left inside.
pub(super) struct CageInit {
    pub(super) pid: Pid,
    _hold: PipeWriter,
}

/// The two process numbers that a helper reports.
const BORN_BYTES: usize = 2 * size_of::<i32>();

/// Returns when the program has been executed, or could not be.
pub(super) fn start(
    plan: &ExecPlan,
    cage: &ProcessCage,
    streams: [OwnedFd; 3],
) -> Result<CagedProgram, SubreaperReport> {
    let pipe = || io::pipe().map_err(|error| failed(error_number(&error)));
    let ((mut said, say), (mut born, bear), (held, hold)) = (pipe()?, pipe()?, pipe()?);
    // SAFETY: this process has one thread, so the child may do anything that the parent could.
    match unsafe { fork() }.map_err(failed)? {
        ForkResult::Child => {
            drop((said, born, hold));
            if let Err(report) = bring_forth(plan, cage, held, &say, bear) {
                let _ = (&say).write_all(&report.to_bytes());
            }
            end_process(0)
        }
        ForkResult::Parent { child } => {
            drop((say, bear, held, streams));
            let mut numbers = [0; BORN_BYTES];
            let is_born = born.read_exact(&mut numbers).is_ok();
            let mut why = [0; REPORT_BYTES];
            // The other end closes when the program is executed.
            let has_failed = said.read_exact(&mut why).is_ok();
            let _ = waitpid(child, None);
            let [init, leader] = pids(numbers);
            if is_born && !has_failed {
                return Ok(CagedProgram { leader, init: CageInit { pid: init, _hold: hold } });
            }
            drop(hold);
            if is_born {
                let _ = waitpid(leader, None);
                let _ = waitpid(init, None);
            }
            let unknown = failed(Errno::EAGAIN);
            Err(if has_failed {
                SubreaperReport::from_bytes(why).unwrap_or(unknown)
            } else {
                unknown
            })
        }
    }
}

/// The helper's part. The helper exits afterwards.
fn bring_forth(
    plan: &ExecPlan,
    cage: &ProcessCage,
    held: PipeReader,
    say: &PipeWriter,
    mut bear: PipeWriter,
) -> Result<(), SubreaperReport> {
    let no_namespaces = |_| SubreaperReport::Uncaged { wall: WallError::Namespaces };
    cage::take_namespaces(cage.network).map_err(no_namespaces)?;
    // SAFETY: as above. The first process of the namespace must exist before any other.
    let init = match unsafe { fork() }.map_err(failed)? {
        ForkResult::Child => end_process(init::run(held)),
        ForkResult::Parent { child } => child,
    };
    drop(held);
    match clone_as_sibling().map_err(failed)? {
        ForkResult::Child => {
            drop(bear);
            let _ = (&*say).write_all(&become_caged(plan, cage).to_bytes());
            end_process(127)
        }
        ForkResult::Parent { child } => {
            let numbers = [init, child].map(|pid| pid.as_raw().to_le_bytes());
            bear.write_all(numbers.as_flattened()).map_err(|error| failed(error_number(&error)))
        }
    }
}

/// Forks a child of our parent.
fn clone_as_sibling() -> Result<ForkResult, Errno> {
    let flags = libc::CLONE_PARENT | libc::SIGCHLD;
    let none = std::ptr::null::<u8>();
    // SAFETY: without a stack or memory that is shared it is a fork, and this process has one thread.
    let answer = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    match Errno::result(answer)? {
        0 => Ok(ForkResult::Child),
        child => {
            let child = i32::try_from(child).map_err(|_| Errno::EINVAL)?;
            Ok(ForkResult::Parent { child: Pid::from_raw(child) })
        }
    }
}

/// Executes the program in its cage; returns only with the reason why it could not.
fn become_caged(plan: &ExecPlan, cage: &ProcessCage) -> SubreaperReport {
    // The subreaper is outside the namespace and has no number inside.
    if let Err(errno) = plan.prepare_session(Pid::from_raw(0)) {
        return failed(errno);
    }
    match cage::enter_cage(cage) {
        Ok(()) => failed(plan.exec_program()),
        Err((wall, _)) => SubreaperReport::Uncaged { wall },
    }
}

fn pids(numbers: [u8; BORN_BYTES]) -> [Pid; 2] {
    let [a, b, c, d, e, f, g, h] = numbers;
    [[a, b, c, d], [e, f, g, h]].map(|number| Pid::from_raw(i32::from_le_bytes(number)))
}

pub(super) const fn failed(errno: Errno) -> SubreaperReport {
    SubreaperReport::Failed { errno: errno as i32 }
}

fn error_number(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EINVAL))
}
