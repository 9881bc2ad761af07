//! Ends families, however fast they multiply. Whoever is stopped forks no more and keeps its children, so everybody is
//! stopped before anybody is killed: those who are killed while others fork are replaced meanwhile.

use super::children::{children_of, children_of_thread};
use super::stat::ProcessStat;
use nix::unistd::Pid;
use std::collections::HashSet;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// How often a family is looked at before those who were found are killed: some are missed while others end, and more
/// looks than these find only who undoes what we do.
const LOOKS_MAX: usize = 16;

/// Those who were found and stopped, by their numbers and when they began.
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

    /// Stops the children of ours that are given, and all who descend from them; false when there is nobody to be found
    /// any more. Whoever has ended should be reaped before, so that it is not looked at.
    pub(super) fn stop(&mut self, children: impl Iterator<Item = Pid>) -> bool {
        self.n_looks += 1;
        let (own, n_before) = (std::process::id(), self.found.len());
        let mut unseen: Vec<(u32, u32)> =
            children.map(|pid| (own, pid.as_raw().unsigned_abs())).collect();
        // Whoever was found last is followed first: its children are about to have children.
        while let Some((parent, pid)) = unseen.pop() {
            if self.known.contains(&pid) {
                continue;
            }
            let Some(held) = StoppedProcess::from_pid(pid) else { continue };
            // It may have been adopted meanwhile, or be another.
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

    /// Kills those who were stopped. Others may have been missed, and these still have to be reaped: whoever wants nobody
    /// to be left repeats it.
    pub(super) fn kill(self) {
        // Children first: a stopped process would be woken by the end of the last who could have continued it.
        for (pid, begun) in self.found.iter().rev() {
            if let Some(held) =
                StoppedProcess::from_pid(*pid).filter(|held| held.stat.begun == *begun)
            {
                held.signal(libc::SIGKILL);
            }
        }
    }
}

/// A process that cannot be mistaken for one that gets its number later.
struct StoppedProcess {
    process: OwnedFd,
    stat: ProcessStat,
}

impl StoppedProcess {
    fn from_pid(pid: u32) -> Option<Self> {
        // SAFETY: it takes numbers and gives a descriptor or an error.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let opened = i32::try_from(opened).ok().filter(|opened| *opened >= 0)?;
        // SAFETY: the kernel has just made it for us.
        let process = unsafe { OwnedFd::from_raw_fd(opened) };
        // If it is not of this process, then this process is gone and hears nothing.
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

/// As much of the processors as we can have, while it lasts: others fork meanwhile. Only some users may.
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
