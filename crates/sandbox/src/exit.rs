//! How a runner ended, in the words of those who leased it.

use crate::zygote::{End, NOT_SHUT};

/// Why there is nothing more to hear from a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It closed its link and left by itself.
    Ended,
    /// It was killed by a signal that it caused.
    Crashed {
        /// The signal, such as SIGSEGV.
        signal: i32,
    },
    /// It tried a system call that the jail forbids.
    Violation,
    /// The kernel killed it because memory ran out, as our cgroup reports.
    OutOfMemory,
    /// Another process killed it: not the guest's fault.
    KilledFromOutside,
    /// It broke the rules of the link: a line too long, input not read, or silence without an end.
    Unruly,
    /// We killed it.
    Killed,
    /// Its zygote went away: not the guest's fault.
    Lost,
}

impl Exit {
    /// Puts what the zygote saw and what we did ourselves together. No end means that the zygote is gone.
    pub(crate) const fn classify(end: Option<End>, doing: Doing) -> Self {
        match (end, doing) {
            (None, Doing::Nothing | Doing::HungUp | Doing::OomKilled) => Self::Lost,
            (None | Some(End::Signalled(libc::SIGKILL)), Doing::Killed) => Self::Killed,
            (Some(End::Signalled(libc::SIGKILL)), Doing::HungUp) => Self::Unruly,
            (Some(End::Signalled(libc::SIGKILL)), Doing::OomKilled) => Self::OutOfMemory,
            (Some(End::Signalled(libc::SIGKILL)), Doing::Nothing) => Self::KilledFromOutside,
            (Some(End::Signalled(libc::SIGSYS)), _) => Self::Violation,
            (Some(End::Signalled(signal)), _) => Self::Crashed { signal },
            (Some(End::Exited(NOT_SHUT)), _) => Self::Lost,
            (Some(End::Exited(_)), _) => Self::Ended,
        }
    }
}

/// What happened to a runner before it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    Nothing,
    /// Killed because its link had ended while it had not.
    HungUp,
    /// Killed by us on purpose.
    Killed,
    /// Killed by the kernel for lack of memory.
    OomKilled,
}

impl End {
    /// Whether the runner broke by itself, so that its address layout may be known to a guest.
    pub(crate) const fn is_crash(self) -> bool {
        matches!(self, Self::Signalled(signal) if signal != libc::SIGKILL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_is_ours_only_if_we_meant_it() {
        let killed = Some(End::Signalled(libc::SIGKILL));
        assert_eq!(Exit::classify(killed, Doing::Killed), Exit::Killed);
        assert_eq!(Exit::classify(killed, Doing::HungUp), Exit::Unruly);
        assert_eq!(Exit::classify(killed, Doing::Nothing), Exit::KilledFromOutside);
    }

    #[test]
    fn a_kill_is_for_lack_of_memory_only_if_the_kernel_counted_it() {
        let killed = Some(End::Signalled(libc::SIGKILL));
        assert_eq!(Exit::classify(killed, Doing::OomKilled), Exit::OutOfMemory);
        let segv = Some(End::Signalled(libc::SIGSEGV));
        assert_eq!(Exit::classify(segv, Doing::OomKilled), Exit::Crashed { signal: libc::SIGSEGV });
    }

    #[test]
    fn a_crash_stays_a_crash_although_we_killed_too() {
        let segv = Some(End::Signalled(libc::SIGSEGV));
        assert_eq!(Exit::classify(segv, Doing::Killed), Exit::Crashed { signal: libc::SIGSEGV });
        assert_eq!(
            Exit::classify(Some(End::Signalled(libc::SIGSYS)), Doing::HungUp),
            Exit::Violation
        );
        assert_eq!(Exit::classify(Some(End::Exited(0)), Doing::Killed), Exit::Ended);
        assert_eq!(Exit::classify(None, Doing::HungUp), Exit::Lost);
    }
}
