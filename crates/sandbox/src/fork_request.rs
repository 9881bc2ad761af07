//! A runner from the server's side: its link, its process, and the notification of its end.

use crate::admission::MemoryGrant;
use crate::error::LeaseError;
use crate::exit::{RunnerActivity, RunnerExit};
use crate::zygote::{PinnedProcess, ProcessEnd, ZygoteSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{SetOnce, oneshot};

/// The end of a link and the end of its process are microseconds apart; on a very busy host, more.
const HANG_UP_GRACE: Duration = Duration::from_secs(1);

/// A request to fork a runner, and its recipient.
#[derive(Debug)]
pub(crate) struct ForkRequest {
    pub(crate) memory_bytes: u64,
    pub(crate) destiny: Recipient,
}

/// The recipient of a new runner.
#[derive(Debug)]
pub(crate) enum Recipient {
    /// The pool of waiting runners.
    Waiting,
    /// The caller of a lease.
    Lease(oneshot::Sender<Result<Runner, LeaseError>>),
}

/// A live runner. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) link: ZygoteSocket,
    pub(crate) memory_bytes: u64,
    /// The zygote that forked it.
    pub(crate) generation: u64,
    /// Whether it has served a lease.
    pub(crate) is_used: bool,
    process: Arc<PinnedProcess>,
    life: Arc<RunnerLife>,
}

/// The origin of a runner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunnerOrigin {
    pub(crate) generation: u64,
    pub(crate) memory_bytes: u64,
}

/// State that the keeper of the zygote and the holder of the runner share.
#[derive(Debug, Default)]
pub(crate) struct RunnerLife {
    end: SetOnce<Option<ProcessEnd>>,
    killed: AtomicBool,
    hung_up: AtomicBool,
    /// The kernel killed it for lack of memory.
    oom_killed: AtomicBool,
    /// Its share of the budget. It is returned when the process has ended, not when the kill is requested.
    admitted: Mutex<Option<MemoryGrant>>,
}

impl RunnerLife {
    /// Records the end. Called once, by the keeper.
    pub(crate) fn close(&self, end: Option<ProcessEnd>) {
        // There is no second end: the keeper removes a life when it closes it.
        drop(self.end.set(end));
        let admitted = self.admitted().take();
        drop(admitted);
    }

    /// Whether no action of ours explains a kill.
    pub(crate) fn is_unexplained(&self, end: ProcessEnd) -> bool {
        end == ProcessEnd::Signalled(libc::SIGKILL)
            && !self.killed.load(Ordering::Relaxed)
            && !self.hung_up.load(Ordering::Relaxed)
    }

    /// Records that the kernel killed it for lack of memory. Called before [`Self::close`].
    pub(crate) fn note_oom_kill(&self) {
        self.oom_killed.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.end.get().is_some()
    }

    fn admitted(&self) -> MutexGuard<'_, Option<MemoryGrant>> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runner {
    pub(crate) fn new(
        link: ZygoteSocket,
        pidfd: OwnedFd,
        origin: RunnerOrigin,
        life: Arc<RunnerLife>,
    ) -> Self {
        let RunnerOrigin { generation, memory_bytes } = origin;
        let process = Arc::new(PinnedProcess::new(pidfd));
        Self { link, memory_bytes, generation, is_used: false, process, life }
    }

    /// Ties a share of the budget to the process, which holds it until it ends.
    pub(crate) fn assign_share(&self, share: MemoryGrant) {
        let mut admitted = self.life.admitted();
        // A runner that has already ended would never return its share.
        if !self.life.is_over() {
            *admitted = Some(share);
        }
    }

    pub(crate) const fn process(&self) -> &Arc<PinnedProcess> {
        &self.process
    }

    pub(crate) fn is_over(&self) -> bool {
        self.life.is_over()
    }

    /// Kills it on purpose.
    pub(crate) fn kill(&self) {
        self.life.killed.store(true, Ordering::Relaxed);
        if let Some(admitted) = &*self.life.admitted() {
            admitted.mark_ending();
        }
        self.process.kill();
    }

    /// Waits for its end, after its link has ended. A process that closes the link but does not exit is
    /// killed.
    pub(crate) async fn exit(&self) -> RunnerExit {
        let end = match tokio::time::timeout(HANG_UP_GRACE, self.life.end.wait()).await {
            Ok(end) => *end,
            Err(_) => {
                self.life.hung_up.store(true, Ordering::Relaxed);
                self.process.kill();
                *self.life.end.wait().await
            }
        };
        RunnerExit::classify(end, self.doing())
    }

    fn doing(&self) -> RunnerActivity {
        if self.life.killed.load(Ordering::Relaxed) {
            RunnerActivity::Killed
        } else if self.life.hung_up.load(Ordering::Relaxed) {
            RunnerActivity::HungUp
        } else if self.life.oom_killed.load(Ordering::Relaxed) {
            RunnerActivity::OomKilled
        } else {
            RunnerActivity::Nothing
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.kill();
    }
}
