//! Starts a program in a child that borrows our memory until it is the program: nothing of it is copied.

use super::signals::unblock;
use crate::order::Order;
use nix::errno::Errno;
use nix::unistd::Pid;
use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicI32, Ordering};

/// Room for the child's calls: libc puts a path on it, and a list of arguments, which is counted apart.
const STACK_BYTES: usize = 64 << 10;

/// All that the child needs, made before it is born: it must not take memory, which is ours.
struct Plan<'a> {
    guardian: libc::pid_t,
    has_terminal: bool,
    streams: [RawFd; 3],
    cwd: &'a CString,
    program: &'a CString,
    argv: Pointers<'a>,
    env: Pointers<'a>,
    /// Why it did not become the program.
    failed: AtomicI32,
}

/// Starts it, with a session of its own and all signals as usual. Our own search path becomes the program's.
pub(super) fn start(order: &Order, streams: &[OwnedFd; 3]) -> Result<Pid, Errno> {
    let program = order.argv.first().ok_or(Errno::EINVAL)?;
    let arg0 = order.arg0.as_ref().unwrap_or(program);
    let words = [arg0].into_iter().chain(&order.argv[1..]);
    let argv = words.map(|word| text(word)).collect::<Result<Vec<_>, _>>()?;
    let env = order.env.iter().map(variable).collect::<Result<Vec<_>, _>>()?;
    search(order.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str()));
    let plan = Plan {
        guardian: nix::unistd::getpid().as_raw(),
        has_terminal: order.has_terminal,
        streams: streams.each_ref().map(std::os::fd::AsRawFd::as_raw_fd),
        cwd: &text(order.cwd.as_os_str())?,
        program: &text(program)?,
        argv: Pointers::new(&argv),
        env: Pointers::new(&env),
        failed: AtomicI32::new(0),
    };
    let child = clone(&plan)?;
    match plan.failed.load(Ordering::Relaxed) {
        0 => Ok(child),
        errno => {
            let _ = nix::sys::wait::waitpid(child, None);
            Err(Errno::from_raw(errno))
        }
    }
}

/// Makes libc look for programs there, or where it does for those who say nothing.
fn search(path: Option<&OsStr>) {
    // SAFETY: this process has one thread, so nobody reads the environment meanwhile.
    unsafe {
        match path {
            Some(path) => std::env::set_var("PATH", path),
            None => std::env::remove_var("PATH"),
        }
    }
}

fn text(text: &OsStr) -> Result<CString, Errno> {
    CString::new(text.as_bytes()).map_err(|_| Errno::EINVAL)
}

fn variable((name, value): &(OsString, OsString)) -> Result<CString, Errno> {
    let parts = [name.as_bytes(), b"=", value.as_bytes()];
    CString::new(parts.concat()).map_err(|_| Errno::EINVAL)
}

/// Texts as the system wants them: their places, and nothing behind the last.
struct Pointers<'a> {
    places: Vec<*const c_char>,
    _texts: &'a [CString],
}

impl<'a> Pointers<'a> {
    fn new(texts: &'a [CString]) -> Self {
        let places = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Self { places, _texts: texts }
    }
}

/// Returns when the child is the program or has ended.
fn clone(plan: &Plan<'_>) -> Result<Pid, Errno> {
    let n_bytes = STACK_BYTES + size_of_val(plan.argv.places.as_slice());
    let mut stack = Box::<[u128]>::new_uninit_slice(n_bytes / size_of::<u128>());
    let top = stack.as_mut_ptr_range().end.cast::<c_void>();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child runs `child` on a stack of its own, whose end is as aligned as stacks must be, and we stand
    // still until it has left our memory for good. So the plan and the stack outlive it and nobody else writes to them.
    // This process has one thread and no handler of signals.
    let answer = unsafe { libc::clone(child, top, flags, std::ptr::from_ref(plan) as *mut c_void) };
    Errno::result(answer).map(Pid::from_raw)
}

/// What the child does. It shares our memory, so it calls the system and nothing else.
extern "C" fn child(plan: *mut c_void) -> c_int {
    // SAFETY: `clone` above was given a plan that outlives this call.
    let plan = unsafe { &*plan.cast::<Plan<'_>>() };
    // SAFETY: descriptors and texts of a plan stay as they are, and lists of texts end with nothing.
    let errno = unsafe { become_program(plan) };
    plan.failed.store(errno as i32, Ordering::Relaxed);
    // SAFETY: it ends this process and runs nothing of the one whose memory this is.
    unsafe { libc::_exit(127) }
}

/// Returns only with the reason why not.
///
/// # Safety
/// To be called in the child, with a plan that is whole.
unsafe fn become_program(plan: &Plan<'_>) -> Errno {
    let [stdin, stdout, stderr] = plan.streams;
    // SAFETY: the caller's promise; each call takes numbers, or texts that end with a zero.
    unsafe {
        if libc::setsid() < 0
            || (plan.has_terminal && libc::ioctl(stdin, libc::TIOCSCTTY, 0) < 0)
            || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0
        {
            return Errno::last();
        }
        // It may have ended before the wish was made.
        if libc::getppid() != plan.guardian {
            libc::_exit(127);
        }
        if libc::dup2(stdin, 0) < 0
            || libc::dup2(stdout, 1) < 0
            || libc::dup2(stderr, 2) < 0
            || libc::chdir(plan.cwd.as_ptr()) < 0
        {
            return Errno::last();
        }
        if let Err(errno) = unblock() {
            return errno;
        }
        // Every descriptor but the three is closed by the system on the way.
        libc::execvpe(plan.program.as_ptr(), plan.argv.places.as_ptr(), plan.env.places.as_ptr());
    }
    Errno::last()
}
