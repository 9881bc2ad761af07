//! Starts a program in a child that shares our memory until it executes the program: no memory is copied.

use super::program::ExecPlan;
use nix::errno::Errno;
use nix::unistd::Pid;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// Stack size of the child: libc builds a path on it, and an argument list, which is counted separately.
const STACK_BYTES: usize = 64 << 10;

/// The arguments of the child.
struct ForkArguments<'a> {
    plan: &'a ExecPlan,
    /// The error if it could not execute the program.
    failed: AtomicI32,
}

/// Returns when the child has executed the program, or has exited because it could not.
pub(super) fn start(plan: &ExecPlan) -> Result<Pid, Errno> {
    let birth = ForkArguments { plan, failed: AtomicI32::new(0) };
    let n_bytes = STACK_BYTES + plan.argv_bytes();
    let mut stack = Box::<[u128]>::new_uninit_slice(n_bytes / size_of::<u128>());
    let top = stack.as_mut_ptr_range().end.cast::<c_void>();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let given = (&raw const birth).cast_mut().cast::<c_void>();
    // SAFETY: the child runs `child` on its own stack, whose end is aligned as required, and this process
    // is suspended until the child no longer uses our memory. So the child's arguments and its stack
    // outlive it, and nothing else writes to them. This process has one thread and no signal handlers.
    let child = Errno::result(unsafe { libc::clone(child, top, flags, given) })?;
    let child = Pid::from_raw(child);
    match birth.failed.load(Ordering::Relaxed) {
        0 => Ok(child),
        errno => {
            let _ = nix::sys::wait::waitpid(child, None);
            Err(Errno::from_raw(errno))
        }
    }
}

/// The child's part. It shares our memory, so it makes system calls and nothing else.
extern "C" fn child(birth: *mut c_void) -> c_int {
    // SAFETY: `start` passed a pointer to a value that outlives this call.
    let birth = unsafe { &*birth.cast::<ForkArguments<'_>>() };
    let errno = match birth.plan.prepare_session(birth.plan.subreaper()) {
        Ok(()) => birth.plan.exec_program(),
        Err(errno) => errno,
    };
    birth.failed.store(errno as i32, Ordering::Relaxed);
    // SAFETY: it ends this process and runs no code of the process whose memory this is.
    unsafe { libc::_exit(127) }
}
