//! Starts a program in a child that borrows our memory until it is the program: nothing of it is copied.

use super::program::ExecPlan;
use nix::errno::Errno;
use nix::unistd::Pid;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// Room for the child's calls: libc puts a path on it, and a list of arguments, which is counted apart.
const STACK_BYTES: usize = 64 << 10;

/// What the child is given.
struct ForkArguments<'a> {
    plan: &'a ExecPlan,
    /// Why it did not become the program.
    failed: AtomicI32,
}

/// Returns when the child is the program, or has ended because it could not.
pub(super) fn start(plan: &ExecPlan) -> Result<Pid, Errno> {
    let birth = ForkArguments { plan, failed: AtomicI32::new(0) };
    let n_bytes = STACK_BYTES + plan.argv_bytes();
    let mut stack = Box::<[u128]>::new_uninit_slice(n_bytes / size_of::<u128>());
    let top = stack.as_mut_ptr_range().end.cast::<c_void>();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let given = (&raw const birth).cast_mut().cast::<c_void>();
    // SAFETY: the child runs `child` on a stack of its own, whose end is as aligned as stacks must be, and we stand
    // still until it has left our memory for good. So what it is given and its stack outlive it, and nobody else writes
    // to them. This process has one thread and no handler of signals.
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

/// What the child does. It shares our memory, so it calls the system and nothing else.
extern "C" fn child(birth: *mut c_void) -> c_int {
    // SAFETY: `start` gave it something that outlives this call.
    let birth = unsafe { &*birth.cast::<ForkArguments<'_>>() };
    let errno = match birth.plan.prepare_session(birth.plan.subreaper()) {
        Ok(()) => birth.plan.exec_program(),
        Err(errno) => errno,
    };
    birth.failed.store(errno as i32, Ordering::Relaxed);
    // SAFETY: it ends this process and runs nothing of the one whose memory this is.
    unsafe { libc::_exit(127) }
}
