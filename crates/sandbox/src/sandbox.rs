//! The handle: start, lease, load, shut down.

use crate::admission::{AdmissionQueue, CallerKey, ReleaseOffer};
use crate::config::{Config, MEMORY_BYTES_DEFAULT};
use crate::cpu_shares::CpuShares;
use crate::error::{LeaseError, SandboxStartError};
use crate::fork_request::{ForkRequest, Recipient, Runner};
use crate::jail::JailTier;
use crate::lease::Lease;
use crate::oom_kills::OomKills;
use crate::spawn;
use crate::spin::BusyRunners;
use crate::supervisor::ZygoteSupervisor;
use crate::warm_pool::WarmPool;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Capacity of the queue of fork requests to the supervisor; leases wait when it is full.
const WISHES_MAX: usize = 256;

/// How often a lease tries again when the zygote ends during its request.
const ATTEMPTS_MAX: usize = 4;

/// How often a lease retries after no runner could be forked, and the first delay. It doubles each time, so
/// that a lease gives up after about 25 s.
const FORK_RETRIES_MAX: u32 = 8;
const FORK_BACK_OFF_FIRST: Duration = Duration::from_millis(100);

/// Limit of idle runners that are reserved for their callers. Each holds its share of the budget until a
/// demand needs it.
const KEPT_MAX: usize = 64;

/// The component that runs guests. Cheap to clone; runners end when the last handle and the last lease are
/// dropped.
#[derive(Debug, Clone)]
pub struct Sandbox {
    shared: Arc<SandboxShared>,
}

/// The requirements of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseDemand {
    /// Memory of the guest.
    pub memory_bytes: u64,
    /// The caller that the runner is charged to, and that may get it again if runners are reused. All
    /// demands without one count as one caller.
    pub caller: Option<String>,
    /// Whether a channel or a session holds the runner for many programs. It gets a fresh runner, which is
    /// used for nothing else.
    pub is_held: bool,
}

impl Default for LeaseDemand {
    fn default() -> Self {
        Self { memory_bytes: MEMORY_BYTES_DEFAULT, caller: None, is_held: false }
    }
}

/// The load of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SandboxLoad {
    /// Leased or reserved runners whose processes have not ended.
    pub live_runners: usize,
    /// Leases that wait for their share of the budget.
    pub waiting: usize,
    /// The memory that live runners may use together.
    pub admitted_bytes: u64,
    /// Runners that wait for a lease.
    pub idle_runners: usize,
}

impl Sandbox {
    /// Starts the zygote and the waiting runners. Fails if a required layer of the jail is missing.
    pub async fn start(config: Config) -> Result<Self, SandboxStartError> {
        let program = spawn::open(&config.program)?;
        let first = spawn::zygote(&program).await?;
        let (wishes, heard) = mpsc::channel(WISHES_MAX);
        let nursery = Arc::new(WarmPool::new(config.warm_runners));
        let tasks = TaskTracker::new();
        let shutdown = CancellationToken::new();
        let cpu_shares = Arc::new(CpuShares::new());
        let oom_kills = Arc::new(OomKills::watch(Path::new("/")));
        tasks.spawn(Arc::clone(&cpu_shares).run(Arc::clone(&oom_kills), shutdown.clone()));
        let shared = SandboxShared {
            admission: AdmissionQueue::new(
                config.memory_budget_bytes,
                config.caller_weights.clone(),
            ),
            cpu_shares,
            nursery: Arc::clone(&nursery),
            keeps: config.reuse,
            kept: Mutex::new(Vec::new()),
            busy_runners: BusyRunners::new(),
            wishes,
            tasks: tasks.clone(),
            _shutdown_on_drop: shutdown.clone().drop_guard(),
            shutdown: shutdown.clone(),
        };
        let supervisor =
            ZygoteSupervisor::new(program, config, (nursery, oom_kills), heard, &tasks);
        // Installed immediately, so that the tier is available before the supervisor has run.
        tasks.spawn(supervisor.install_first(first).run(shutdown));
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The layers of the jail around the guests.
    pub fn tier(&self) -> JailTier {
        self.shared.nursery.tier()
    }

    /// The process number of the present zygote, for people.
    pub fn zygote_pid(&self) -> Option<u32> {
        self.shared.nursery.zygote_pid()
    }

    /// The current load.
    pub fn load(&self) -> SandboxLoad {
        SandboxLoad {
            live_runners: self.shared.admission.runners(),
            waiting: self.shared.admission.waiting(),
            admitted_bytes: self.shared.admission.bytes(),
            idle_runners: self.shared.nursery.ready(),
        }
    }

    /// Waits until a demand does not fit into the budget, or a change might help the waiting ones.
    /// [`Self::plan_releases`] returns what would help. Only one task should wait.
    pub async fn shortage(&self) {
        self.shared.admission.shortage().await;
    }

    /// Indexes of the runners that should be given up so that waiting demands can start: only runners of
    /// callers above their fair share, or of the caller whose demand waits, the cheapest to replay first.
    pub fn plan_releases(&self, offers: &[ReleaseOffer]) -> Vec<usize> {
        self.shared.admission.plan_releases(offers)
    }

    /// Leases a runner, as soon as its memory fits into the budget and no other caller is more entitled.
    /// Dropping the future leaves the queue, and a runner that was being forked ends.
    pub async fn lease(&self, demand: LeaseDemand) -> Result<Lease, LeaseError> {
        let shared = &self.shared;
        let lease = |runner, caller| Lease::new(runner, Arc::clone(shared), caller);
        if shared.keeps
            && !demand.is_held
            && let Some(caller) = &demand.caller
            && let Some(runner) = shared.kept_for(caller, demand.memory_bytes)
        {
            return Ok(lease(runner, demand.caller));
        }
        let key: CallerKey = demand.caller.as_deref().map(Arc::from);
        let mut share = match shared.admission.try_admit(&key, demand.memory_bytes)? {
            Some(share) => share,
            None => {
                // Idle runners are released for waiting demands.
                shared.release_kept();
                shared.admission.admit_caller(&key, demand.memory_bytes).await?
            }
        };
        let runner = shared.runner_with_retries(demand.memory_bytes).await?;
        share.live = Some(shared.cpu_shares.watch(&key, runner.process(), runner.is_used));
        runner.assign_share(share);
        Ok(lease(runner, demand.caller.filter(|_| !demand.is_held)))
    }

    /// Kills all runners and the zygote, and waits for their ends.
    pub async fn shutdown(&self) {
        self.shared.admission.close();
        self.shared.release_kept();
        self.shared.shutdown.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

/// State that all handles and leases share.
#[derive(Debug)]
pub(crate) struct SandboxShared {
    admission: AdmissionQueue,
    cpu_shares: Arc<CpuShares>,
    nursery: Arc<WarmPool>,
    keeps: bool,
    kept: Mutex<Vec<KeptRunner>>,
    pub(crate) busy_runners: Arc<BusyRunners>,
    wishes: mpsc::Sender<ForkRequest>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
    _shutdown_on_drop: DropGuard,
}

/// An idle runner, reserved for the caller whose code it ran.
#[derive(Debug)]
struct KeptRunner {
    caller: String,
    runner: Runner,
}

impl SandboxShared {
    /// Reserves a runner for its caller, unless others need its share.
    pub(crate) fn retain_runner(&self, caller: String, runner: Runner) {
        if self.keeps && self.admission.waiting() == 0 && !self.shutdown.is_cancelled() {
            let mut kept = self.kept();
            if kept.len() < KEPT_MAX {
                kept.push(KeptRunner { caller, runner });
            }
        }
    }

    fn kept_for(&self, caller: &str, memory_bytes: u64) -> Option<Runner> {
        let mut kept = self.kept();
        kept.retain(|kept| !kept.runner.is_over() && self.nursery.trusts(&kept.runner));
        let fits =
            |kept: &KeptRunner| kept.caller == caller && kept.runner.memory_bytes == memory_bytes;
        // The most recently used runner is the fastest to resume: its memory is still in the caches.
        let at = kept.iter().rposition(fits)?;
        Some(kept.remove(at).runner)
    }

    fn release_kept(&self) {
        let released = std::mem::take(&mut *self.kept());
        drop(released);
    }

    /// Retries if a runner could not be forked; the host may be able to a moment later.
    async fn runner_with_retries(&self, memory_bytes: u64) -> Result<Runner, LeaseError> {
        let mut n_retries = 0;
        loop {
            match self.runner(memory_bytes).await {
                Err(LeaseError::Unavailable { reason }) if n_retries < FORK_RETRIES_MAX => {
                    tracing::warn!(reason, n_retries, "no runner could be forked; trying again");
                }
                runner => return runner,
            }
            tokio::select! {
                () = self.shutdown.cancelled() => return Err(LeaseError::Closed),
                () = tokio::time::sleep(FORK_BACK_OFF_FIRST * (1 << n_retries)) => n_retries += 1,
            }
        }
    }

    /// Takes a waiting runner, or has one forked for this demand.
    async fn runner(&self, memory_bytes: u64) -> Result<Runner, LeaseError> {
        for _ in 0..ATTEMPTS_MAX {
            if memory_bytes == MEMORY_BYTES_DEFAULT
                && let Some(runner) = self.nursery.take()
            {
                return Ok(runner);
            }
            let (asker, answer) = oneshot::channel();
            let birth = ForkRequest { memory_bytes, destiny: Recipient::Lease(asker) };
            self.wishes.send(birth).await.map_err(|_| LeaseError::Closed)?;
            if let Ok(runner) = answer.await {
                return runner;
            }
            if self.shutdown.is_cancelled() {
                return Err(LeaseError::Closed);
            }
        }
        Err(LeaseError::Unavailable { reason: "the zygote keeps going away".to_owned() })
    }

    fn kept(&self) -> MutexGuard<'_, Vec<KeptRunner>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
