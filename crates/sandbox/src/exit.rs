//! How a runner ended, from the lease holder's point of view.

use crate::zygote::{NOT_SHUT, ProcessEnd};

/// Why no more messages come from a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunnerExit {
    /// It closed its link and exited by itself.
    Ended,
    /// It was killed by a signal that it caused.
    Crashed {
        /// The signal, such as SIGSEGV.
        signal: i32,
    },
    /// It made a system call that the jail forbids.
    Violation,
    /// The kernel killed it because memory ran out, as our cgroup reports.
    OutOfMemory,
    /// Another process killed it: not caused by the guest.
    KilledFromOutside,
    /// It broke the rules of the link: a line too long, input not read, or a closed link without an exit.
    Unruly,
    /// We killed it.
    Killed,
    /// Its zygote ended: not caused by the guest.
    Lost,
}

impl RunnerExit {
    /// Combines the end that the zygote saw with our own actions. `None` means that the zygote has ended.
    pub(crate) const fn classify(end: Option<ProcessEnd>, doing: RunnerActivity) -> Self {
        match (end, doing) {
            (
                None,
                RunnerActivity::Nothing | RunnerActivity::HungUp | RunnerActivity::OomKilled,
            ) => Self::Lost,
            (None | Some(ProcessEnd::Signalled(libc::SIGKILL)), RunnerActivity::Killed) => {
                Self::Killed
            }
            (Some(ProcessEnd::Signalled(libc::SIGKILL)), RunnerActivity::HungUp) => Self::Unruly,
            (Some(ProcessEnd::Signalled(libc::SIGKILL)), RunnerActivity::OomKilled) => {
                Self::OutOfMemory
            }
            (Some(ProcessEnd::Signalled(libc::SIGKILL)), RunnerActivity::Nothing) => {
                Self::KilledFromOutside
            }
            (Some(ProcessEnd::Signalled(libc::SIGSYS)), _) => Self::Violation,
            (Some(ProcessEnd::Signalled(signal)), _) => Self::Crashed { signal },
            (Some(ProcessEnd::Exited(NOT_SHUT)), _) => Self::Lost,
            (Some(ProcessEnd::Exited(_)), _) => Self::Ended,
        }
    }
}

/// Our actions on a runner before it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunnerActivity {
    Nothing,
    /// Killed because it did not exit after its link had ended.
    HungUp,
    /// Killed by us on purpose.
    Killed,
    /// Killed by the kernel for lack of memory.
    OomKilled,
}

impl ProcessEnd {
    /// Whether the runner crashed by itself, so that a guest may know its address layout.
    pub(crate) const fn is_crash(self) -> bool {
        matches!(self, Self::Signalled(signal) if signal != libc::SIGKILL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_is_ours_only_if_we_meant_it() {
        let killed = Some(ProcessEnd::Signalled(libc::SIGKILL));
        assert_eq!(RunnerExit::classify(killed, RunnerActivity::Killed), RunnerExit::Killed);
        assert_eq!(RunnerExit::classify(killed, RunnerActivity::HungUp), RunnerExit::Unruly);
        assert_eq!(
            RunnerExit::classify(killed, RunnerActivity::Nothing),
            RunnerExit::KilledFromOutside
        );
    }

    #[test]
    fn a_kill_is_for_lack_of_memory_only_if_the_kernel_counted_it() {
        let killed = Some(ProcessEnd::Signalled(libc::SIGKILL));
        assert_eq!(
            RunnerExit::classify(killed, RunnerActivity::OomKilled),
            RunnerExit::OutOfMemory
        );
        let segv = Some(ProcessEnd::Signalled(libc::SIGSEGV));
        assert_eq!(
            RunnerExit::classify(segv, RunnerActivity::OomKilled),
            RunnerExit::Crashed { signal: libc::SIGSEGV }
        );
    }

    #[test]
    fn a_crash_stays_a_crash_although_we_killed_too() {
        let segv = Some(ProcessEnd::Signalled(libc::SIGSEGV));
        assert_eq!(
            RunnerExit::classify(segv, RunnerActivity::Killed),
            RunnerExit::Crashed { signal: libc::SIGSEGV }
        );
        assert_eq!(
            RunnerExit::classify(Some(ProcessEnd::Signalled(libc::SIGSYS)), RunnerActivity::HungUp),
            RunnerExit::Violation
        );
        assert_eq!(
            RunnerExit::classify(Some(ProcessEnd::Exited(0)), RunnerActivity::Killed),
            RunnerExit::Ended
        );
        assert_eq!(RunnerExit::classify(None, RunnerActivity::HungUp), RunnerExit::Lost);
    }
}
