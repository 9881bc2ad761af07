//! A program that is about to be executed: its arguments, prepared by its subreaper, and the steps of the
//! child that executes it. The child may share its parent's memory, so its steps only make system calls and
//! allocate no memory.

use super::capabilities;
use super::signals::unblock;
use crate::spawn_order::SpawnOrder;
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid, setsid};
use std::ffi::{CString, OsStr, OsString, c_char};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;

/// What a child needs to execute a program.
pub(super) struct ExecPlan {
    subreaper: Pid,
    has_terminal: bool,
    /// Whether the program loses the capabilities that could remove covers.
    loses_capabilities: bool,
    streams: [RawFd; 3],
    cwd: CString,
    program: CString,
    argv: ExecStrings,
    env: ExecStrings,
}

impl ExecPlan {
    /// Prepares an order. The search path of this process becomes the program's.
    pub(super) fn new(
        order: &SpawnOrder,
        streams: &[OwnedFd; 3],
        loses_capabilities: bool,
    ) -> Result<Self, Errno> {
        let program = order.argv.first().ok_or(Errno::EINVAL)?;
        let arg0 = order.arg0.as_ref().unwrap_or(program);
        let words = [arg0].into_iter().chain(&order.argv[1..]);
        let path = order.env.iter().find(|(name, _)| name == "PATH");
        search(path.map(|(_, path)| path.as_os_str()));
        Ok(Self {
            subreaper: nix::unistd::getpid(),
            has_terminal: order.has_terminal,
            loses_capabilities: loses_capabilities && order.cage.is_none(),
            streams: streams.each_ref().map(std::os::fd::AsRawFd::as_raw_fd),
            cwd: os_str_to_cstring(order.cwd.as_os_str())?,
            program: os_str_to_cstring(program)?,
            argv: ExecStrings::new(
                words.map(|word| os_str_to_cstring(word)).collect::<Result<_, _>>()?,
            ),
            env: ExecStrings::new(order.env.iter().map(variable).collect::<Result<_, _>>()?),
        })
    }

    /// The size of its argument list.
    pub(super) const fn argv_bytes(&self) -> usize {
        size_of_val(self.argv.places.as_slice())
    }

    /// The subreaper, as a child in its PID namespace sees it.
    pub(super) const fn subreaper(&self) -> Pid {
        self.subreaper
    }

    /// The child's first steps: its own session, with its terminal, that ends with its parent.
    pub(super) fn prepare_session(&self, parent: Pid) -> Result<(), Errno> {
        setsid()?;
        if self.has_terminal {
            // Ctrl-C and hang-ups of this session come from this terminal. SAFETY: the call takes a
            // descriptor that we own and a number, and writes nothing.
            Errno::result(unsafe { libc::ioctl(self.streams[0], libc::TIOCSCTTY, 0) })?;
        }
        set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have ended before the previous call.
        if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH) }
    }

    /// The last step: the child executes the program, with default signal handling. Returns only with the
    /// reason why it could not.
    pub(super) fn exec_program(&self) -> Errno {
        for (ours, theirs) in self.streams.into_iter().zip(0..) {
            // SAFETY: both are numbers; ours is open, and above the standard ones, which subreapers leave
            // open.
            if unsafe { libc::dup2(ours, theirs) } < 0 {
                return Errno::last();
            }
        }
        // SAFETY: the text ends with a zero and outlives the call.
        if unsafe { libc::chdir(self.cwd.as_ptr()) } < 0 {
            return Errno::last();
        }
        if self.loses_capabilities
            && let Err(errno) = capabilities::give_up_administration()
        {
            return errno;
        }
        if let Err(errno) = unblock() {
            return errno;
        }
        let (argv, env) = (self.argv.places.as_ptr(), self.env.places.as_ptr());
        // The system closes every descriptor but the three on exec. SAFETY: texts end with a zero, lists of
        // them with a null, and all are this plan's own.
        unsafe { libc::execvpe(self.program.as_ptr(), argv, env) };
        Errno::last()
    }
}

/// Makes libc search for programs in `path`, or in its default path if there is none.
fn search(path: Option<&OsStr>) {
    // SAFETY: this process has one thread, so no other thread reads the environment meanwhile.
    unsafe {
        match path {
            Some(path) => std::env::set_var("PATH", path),
            None => std::env::remove_var("PATH"),
        }
    }
}

fn os_str_to_cstring(text: &OsStr) -> Result<CString, Errno> {
    CString::new(text.as_bytes()).map_err(|_| Errno::EINVAL)
}

fn variable((name, value): &(OsString, OsString)) -> Result<CString, Errno> {
    CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).map_err(|_| Errno::EINVAL)
}

/// Strings in the system's form: an array of pointers that ends with a null.
struct ExecStrings {
    places: Vec<*const c_char>,
    /// Their addresses are stable while this exists.
    _texts: Vec<CString>,
}

impl ExecStrings {
    fn new(texts: Vec<CString>) -> Self {
        let places = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Self { places, _texts: texts }
    }
}
