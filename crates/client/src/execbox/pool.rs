//! A pool of runners that run several programs in turn.

use super::channels::{ConnectRunner, RunnerTransport};
use super::error::ExecboxFailure;
use super::execution::{ExecboxProgram, ExecuteResult};
use super::options::Options;
use super::session::HostSession;
use futures_util::FutureExt as _;
use futures_util::future::{join_all, try_join_all};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{self, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use transport::MessageReader;

/// Messages that a runner may have sent between two programs before it is considered faulty.
const STRAY_LINES_MAX: usize = 64;

/// The size of a pool and the lifetime of its idle runners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSize {
    /// The largest number of concurrent programs; others wait in FIFO order.
    pub max_size: usize,
    /// The number of runners that are retained however long they are idle.
    pub min_size: usize,
    /// An idle runner beyond `min_size` is released after this time.
    pub idle_timeout: Duration,
}

impl Default for PoolSize {
    /// One for each core, at most four; an idle runner is released after 30 s.
    fn default() -> Self {
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { max_size: n_cores.min(4), min_size: 0, idle_timeout: Duration::from_secs(30) }
    }
}

/// Runs programs on a pool of runners. A runner that was cut off or broke does not return to the pool.
pub struct PooledRunners {
    pool: Arc<RunnerPool>,
    options: Options,
    /// Releases runners that have been idle for long; ends with the executor.
    _sweeper: JoinSet<()>,
}

impl PooledRunners {
    /// Opens channels with `connect`, when they are needed. Must be called within a tokio runtime.
    pub fn new(connect: impl ConnectRunner, size: PoolSize) -> Self {
        // A pool of size zero could never run a program.
        let size = PoolSize { max_size: size.max_size.clamp(1, Semaphore::MAX_PERMITS), ..size };
        let pool = Arc::new(RunnerPool {
            connect: Box::new(connect),
            size,
            places: Arc::new(Semaphore::new(size.max_size)),
            warming: sync::Mutex::new(()),
            idle: Mutex::new(vec![]),
            returned: Notify::new(),
        });
        let mut sweeper = JoinSet::new();
        sweeper.spawn(sweep(pool.clone()));
        Self { pool, options: Options::default(), _sweeper: sweeper }
    }

    /// Sets the limits for programs that bring none.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Runs a program. Waiting for a runner is not part of its time. Dropping the future ends the runner.
    pub async fn execute(&self, execution: ExecboxProgram) -> ExecuteResult {
        let execution = ExecboxProgram { options: execution.options.or(self.options), ..execution };
        let failed = |failure| ExecuteResult::failed(failure, 0);
        if execution.cancel.is_cancelled() {
            return failed(ExecboxFailure::timeout());
        }
        let lease = tokio::select! { biased;
            () = execution.cancel.cancelled() => return failed(ExecboxFailure::timeout()),
            lease = RunnerLease::take(&self.pool) => lease,
        };
        match lease {
            Ok(lease) => {
                let (result, lease) = lease.run(&execution).await;
                lease.finish(&result).await;
                result
            }
            Err(failure) => failed(failure),
        }
    }

    /// Starts up to `n` runners and has each run an empty program, so that the first real one finds it warm.
    pub async fn prewarm(&self, n: usize) -> Result<(), ExecboxFailure> {
        let n = n.min(self.pool.size.max_size);
        let warm_up = ExecboxProgram::new("undefined").options(self.options);
        let _alone = self.pool.warming.lock().await;
        // All are held until all are taken: otherwise one would be warmed n times.
        let leases = try_join_all((0..n).map(|_| RunnerLease::take(&self.pool))).await?;
        let warmed = join_all(leases.into_iter().map(|lease| lease.run(&warm_up))).await;
        let mut outcome = Ok(());
        for (result, lease) in warmed {
            lease.finish(&result).await;
            outcome = outcome.and(result.outcome.map(drop));
        }
        outcome
    }

    /// Releases all runners; programs that wait for one, and later ones, are refused.
    pub async fn dispose(&self) {
        self.pool.places.close();
        let idle = std::mem::take(&mut *self.pool.idle());
        join_all(idle.into_iter().map(|one| one.transport.dispose())).await;
    }
}

impl Drop for PooledRunners {
    fn drop(&mut self) {
        // The sweeper may hold the pool a little longer; its runners end now.
        self.pool.idle().clear();
    }
}

impl fmt::Debug for PooledRunners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pooled").field("size", &self.pool.size).finish_non_exhaustive()
    }
}

struct RunnerPool {
    connect: Box<dyn ConnectRunner>,
    size: PoolSize,
    /// Hands places out in FIFO order.
    places: Arc<Semaphore>,
    /// The runner that returned last is at the end, and is taken first: it is the warmest.
    idle: Mutex<Vec<IdleRunner>>,
    returned: Notify,
    /// Two concurrent warm-ups could each hold places that the other waits for.
    warming: sync::Mutex<()>,
}

struct IdleRunner {
    transport: Box<dyn RunnerTransport>,
    since: Instant,
}

impl RunnerPool {
    fn idle(&self) -> MutexGuard<'_, Vec<IdleRunner>> {
        // No panic under the lock can leave the list inconsistent.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the runner that returned last, unless it has died since, or sends messages while idle.
    async fn take_warmest(&self) -> Option<Box<dyn RunnerTransport>> {
        loop {
            let IdleRunner { mut transport, .. } = self.idle().pop()?;
            if is_quiet(&mut *transport) {
                return Some(transport);
            }
            transport.dispose().await;
        }
    }

    fn return_idle(&self, transport: Box<dyn RunnerTransport>) {
        self.idle().push(IdleRunner { transport, since: Instant::now() });
        self.returned.notify_one();
    }

    /// Removes the runners that have been idle for too long, and returns when to check again.
    fn expired(&self) -> (Vec<Box<dyn RunnerTransport>>, Option<Instant>) {
        let mut idle = self.idle();
        let now = Instant::now();
        let n_spare = idle.len().saturating_sub(self.size.min_size);
        let is_due = |one: &&IdleRunner| one.since + self.size.idle_timeout <= now;
        // The list is ordered by the time of return, oldest first.
        let n_due = idle.iter().take(n_spare).take_while(is_due).count();
        let due = idle.drain(..n_due).map(|one| one.transport).collect();
        let next = idle.first().filter(|_| n_spare > n_due);
        (due, next.map(|one| one.since + self.size.idle_timeout))
    }
}

async fn sweep(pool: Arc<RunnerPool>) {
    loop {
        let (due, next) = pool.expired();
        join_all(due.into_iter().map(|transport| transport.dispose())).await;
        match next {
            Some(next) => sleep_until(next).await,
            None => pool.returned.notified().await,
        }
    }
}

/// A runner in use. Dropping it ends the runner; only [`RunnerLease::finish`] can return it to the pool.
struct RunnerLease {
    pool: Arc<RunnerPool>,
    transport: Box<dyn RunnerTransport>,
    place: OwnedSemaphorePermit,
}

impl RunnerLease {
    async fn take(pool: &Arc<RunnerPool>) -> Result<Self, ExecboxFailure> {
        let place = pool.places.clone().acquire_owned().await;
        let place =
            place.map_err(|_| ExecboxFailure::internal("the executor has been disposed of"))?;
        let transport = match pool.take_warmest().await {
            Some(transport) => transport,
            None => {
                let fresh = pool.connect.connect().await;
                fresh.map_err(|error| ExecboxFailure::internal(error.to_string()))?
            }
        };
        Ok(Self { pool: pool.clone(), transport, place })
    }

    async fn run(mut self, execution: &ExecboxProgram) -> (ExecuteResult, Self) {
        let result = HostSession::new(&mut *self.transport).run(execution).await;
        (result, self)
    }

    async fn finish(self, result: &ExecuteResult) {
        let Self { pool, transport, place } = self;
        if result.leaves_runner_fit() && !pool.places.is_closed() {
            pool.return_idle(transport);
        } else {
            transport.dispose().await;
        }
        // Only now: the next waiter must find the runner, or its place empty.
        drop(place);
    }
}

/// Whether an idle runner is alive and silent. A few late messages are discarded: a call among them would be taken for one
/// of the next program.
fn is_quiet(transport: &mut dyn RunnerTransport) -> bool {
    let (mut reader, _) = transport.halves();
    for _ in 0..STRAY_LINES_MAX {
        match MessageReader::receive(&mut reader).now_or_never() {
            None => return true,
            Some(Ok(_)) => {}
            Some(Err(_)) => return false,
        }
    }
    false
}
