//! A runner as the server holds it: link, process, and the news of its end.

use crate::admission::MemoryGrant;
use crate::error::LeaseError;
use crate::exit::{RunnerActivity, RunnerExit};
use crate::zygote::{PinnedProcess, ProcessEnd, ZygoteSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{SetOnce, oneshot};

/// Between the end of a link and the end of its process lie microseconds; on a very busy host, more.
const HANG_UP_GRACE: Duration = Duration::from_secs(1);

/// A wish for a runner, and who gets it.
#[derive(Debug)]
pub(crate) struct ForkRequest {
    pub(crate) memory_bytes: u64,
    pub(crate) destiny: Recipient,
}

/// Who gets a new runner.
#[derive(Debug)]
pub(crate) enum Recipient {
    /// The runners that wait ready.
    Waiting,
    /// Somebody who asked.
    Lease(oneshot::Sender<Result<Runner, LeaseError>>),
}

/// A live runner. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) link: ZygoteSocket,
    pub(crate) memory_bytes: u64,
    /// Which zygote bore it.
    pub(crate) generation: u64,
    /// Whether it has served somebody.
    pub(crate) is_used: bool,
    process: Arc<PinnedProcess>,
    life: Arc<RunnerLife>,
}

/// Where a runner comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunnerOrigin {
    pub(crate) generation: u64,
    pub(crate) memory_bytes: u64,
}

/// What the keeper of the zygote and the holder of the runner both know.
#[derive(Debug, Default)]
pub(crate) struct RunnerLife {
    end: SetOnce<Option<ProcessEnd>>,
    killed: AtomicBool,
    hung_up: AtomicBool,
    /// The kernel killed it for lack of memory.
    oom_killed: AtomicBool,
    /// Its share of the budget. It goes back when the process has ended, not when somebody wished it would.
    admitted: Mutex<Option<MemoryGrant>>,
}

impl RunnerLife {
    /// Called once, by the keeper.
    pub(crate) fn close(&self, end: Option<ProcessEnd>) {
        // A second end cannot be told: the keeper forgets a life when it closes it.
        drop(self.end.set(end));
        let admitted = self.admitted().take();
        drop(admitted);
    }

    /// Whether nothing that we did explains a kill.
    pub(crate) fn is_unexplained(&self, end: ProcessEnd) -> bool {
        end == ProcessEnd::Signalled(libc::SIGKILL)
            && !self.killed.load(Ordering::Relaxed)
            && !self.hung_up.load(Ordering::Relaxed)
    }

    /// Notes that the kernel killed it for lack of memory. Called before [`Self::close`].
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

    /// Ties a share of the budget to the process.
    pub(crate) fn assign_share(&self, share: MemoryGrant) {
        let mut admitted = self.life.admitted();
        // A runner that has ended already will not come to give it back.
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

    /// Waits for its end, after its link has ended. Whoever closes the link but lives on is killed.
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
