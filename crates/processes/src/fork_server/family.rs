//! Kills a process family, however fast it forks. A stopped process cannot fork and retains its children,
//! so all members are stopped before any is killed: members that are killed while others fork are replaced
//! meanwhile.

use super::children::{children_of, children_of_thread};
use super::stat::ProcessStat;
use nix::unistd::Pid;
use std::collections::HashSet;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// How often a family is searched before its members are killed: a search can miss some while others end,
/// and a family that still grows after this many searches undoes what we do.
const LOOKS_MAX: usize = 16;

/// The members that were found and stopped, by number and start time.
pub(super) struct ProcessFamily {
    found: Vec<(u32, u64)>,
    known: HashSet<u32>,
    n_looks: usize,
    _haste: PriorityBoost,
}

impl ProcessFamily {
    pub(super) fn new() -> Self {
        Self { found: vec![], known: HashSet::new(), n_looks: 0, _haste: PriorityBoost::make() }
    }

    /// Stops the given children of this process, and all their descendants; returns false when no new ones
    /// are found. Reap ended processes before, so that they are not searched.
    pub(super) fn stop(&mut self, children: impl Iterator<Item = Pid>) -> bool {
        self.n_looks += 1;
        let (own, n_before) = (std::process::id(), self.found.len());
        let mut unseen: Vec<(u32, u32)> =
            children.map(|pid| (own, pid.as_raw().unsigned_abs())).collect();
        // Depth first: the children of the last one found are about to fork.
        while let Some((parent, pid)) = unseen.pop() {
            if self.known.contains(&pid) {
                continue;
            }
            let Some(held) = StoppedProcess::from_pid(pid) else { continue };
            // It may have been adopted meanwhile, or the number may belong to another process.
            if held.stat.has_ended || ![parent, own].contains(&held.stat.parent) {
                continue;
            }
            held.signal(libc::SIGSTOP);
            self.known.insert(pid);
            self.found.push((pid, held.stat.begun));
            unseen.extend(held.children(pid).into_iter().map(|child| (pid, child)));
        }
        self.found.len() > n_before && self.n_looks < LOOKS_MAX
    }

    /// Kills the stopped processes. Others may have been missed, and these must still be reaped: repeat
    /// until none is left.
    pub(super) fn kill(self) {
        // Children first: the end of the last process that could continue a stopped one would wake it.
        for (pid, begun) in self.found.iter().rev() {
            if let Some(held) =
                StoppedProcess::from_pid(*pid).filter(|held| held.stat.begun == *begun)
            {
                held.signal(libc::SIGKILL);
            }
        }
    }
}

/// A process that cannot be confused with a later one of the same number.
struct StoppedProcess {
    process: OwnedFd,
    stat: ProcessStat,
}

impl StoppedProcess {
    fn from_pid(pid: u32) -> Option<Self> {
        // SAFETY: it takes numbers and returns a descriptor or an error.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let opened = i32::try_from(opened).ok().filter(|opened| *opened >= 0)?;
        // SAFETY: the kernel has just created it for us.
        let process = unsafe { OwnedFd::from_raw_fd(opened) };
        // If the status belongs to another process, this one has ended and receives no signals.
        Some(Self { process, stat: ProcessStat::from_pid(pid)? })
    }

    fn children(&self, pid: u32) -> Vec<u32> {
        if self.stat.n_threads == 1 { children_of_thread(pid, pid) } else { children_of(pid) }
    }

    fn signal(&self, signal: libc::c_int) {
        let (number, none) = (self.process.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
        // SAFETY: it takes numbers, and a pointer that may be null.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, number, signal, none, 0) };
    }
}

/// Raises our priority as far as possible while it exists: others fork meanwhile. Only privileged users
/// may.
struct PriorityBoost {
    before: libc::c_int,
}

impl PriorityBoost {
    fn make() -> Self {
        // SAFETY: both take numbers only.
        unsafe {
            let before = libc::getpriority(libc::PRIO_PROCESS, 0);
            libc::setpriority(libc::PRIO_PROCESS, 0, -20);
            Self { before }
        }
    }
}

impl Drop for PriorityBoost {
    fn drop(&mut self) {
        // SAFETY: it takes numbers only.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, self.before) };
    }
}
