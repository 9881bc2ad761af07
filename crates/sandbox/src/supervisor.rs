//! Maintains a zygote and enough waiting runners. The only task that starts and replaces zygotes.

use crate::config::{Config, MEMORY_BYTES_DEFAULT};
use crate::error::{LeaseError, SandboxStartError};
use crate::fork_request::{ForkRequest, Recipient};
use crate::oom_kills::OomKills;
use crate::spawn::{self, SpawnedZygote};
use crate::warm_pool::{WarmPool, ZygoteStatus};
use crate::zygote_link::{BIRTHS_MAX, ZygoteLink};
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The delay before a second attempt; it doubles with every further one.
const BACK_OFF_FIRST: Duration = Duration::from_millis(50);

/// The longest delay between two attempts. Waiting leases are notified after each.
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// A zygote that lasted this long did not fail at the start: the next one is started without delay.
const STEADY_TIME: Duration = Duration::from_secs(10);

/// Owns the present zygote and the next one.
pub(crate) struct ZygoteSupervisor {
    program: Arc<File>,
    config: Config,
    nursery: Arc<WarmPool>,
    oom_kills: Arc<OomKills>,
    wishes: mpsc::Receiver<ForkRequest>,
    /// Requests that arrived while there was no zygote.
    unmet: VecDeque<ForkRequest>,
    present: Option<PresentZygote>,
    next: Option<JoinHandle<Result<SpawnedZygote, SandboxStartError>>>,
    failures: u32,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

/// The zygote that receives the requests. Dropping it retires it: it ends after its last runner.
struct PresentZygote {
    births: mpsc::Sender<ForkRequest>,
    forks: u32,
    since: Instant,
}

impl ZygoteSupervisor {
    pub(crate) fn new(
        program: File,
        config: Config,
        (nursery, oom_kills): (Arc<WarmPool>, Arc<OomKills>),
        wishes: mpsc::Receiver<ForkRequest>,
        tasks: &TaskTracker,
    ) -> Self {
        Self {
            program: Arc::new(program),
            config,
            nursery,
            oom_kills,
            wishes,
            unmet: VecDeque::new(),
            present: None,
            next: None,
            failures: 0,
            tasks: tasks.clone(),
            shutdown: CancellationToken::new(),
        }
    }

    /// Installs the first zygote.
    pub(crate) fn install_first(mut self, first: SpawnedZygote) -> Self {
        self.install(first);
        self
    }

    /// Runs until `shutdown`, or until all handles that could send requests are dropped.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        // Keepers end when this task does, also when it is dropped with its runtime.
        let _end_keepers = self.shutdown.clone().drop_guard();
        loop {
            self.look_after();
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.supply() => {}
            }
            tokio::select! {
                () = shutdown.cancelled() => break,
                wish = self.wishes.recv() => match wish {
                    Some(birth) => self.unmet.push_back(birth),
                    None => break,
                },
                () = self.nursery.rung() => {}
                started = finished(&mut self.next) => self.started(started),
            }
        }
        if let Some(next) = self.next {
            next.abort();
        }
        self.nursery.clear();
    }

    /// Replaces a zygote that has ended, is condemned or is worn.
    fn look_after(&mut self) {
        match (self.nursery.standing(), &self.present) {
            (ZygoteStatus::Good, Some(present))
                if present.forks >= self.config.forks_per_zygote_max =>
            {
                // A worn zygote continues until the next is ready.
                self.start_next(Duration::ZERO);
            }
            (ZygoteStatus::Good, _) | (ZygoteStatus::Condemned | ZygoteStatus::Gone, None) => {}
            (ZygoteStatus::Condemned, Some(_)) => {
                self.present = None;
                self.start_next(Duration::ZERO);
            }
            (ZygoteStatus::Gone, Some(present)) => {
                tracing::warn!("a zygote went away");
                self.failures =
                    if present.since.elapsed() < STEADY_TIME { self.failures + 1 } else { 0 };
                self.present = None;
                self.start_next(back_off(self.failures));
            }
        }
    }

    fn start_next(&mut self, delay: Duration) {
        if self.next.is_none() {
            let program = Arc::clone(&self.program);
            self.next = Some(self.tasks.spawn(async move {
                tokio::time::sleep(delay).await;
                spawn::zygote(&program).await
            }));
        }
    }

    fn started(&mut self, started: Result<SpawnedZygote, SandboxStartError>) {
        match started {
            Ok(spawned) => self.install(spawned),
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "could not start a zygote"
                );
                self.failures += 1;
                self.disappoint(&error);
                if self.present.is_none() {
                    self.start_next(back_off(self.failures));
                }
            }
        }
    }

    fn install(&mut self, spawned: SpawnedZygote) {
        let generation = self.nursery.renew(spawned.tier, spawned.child.id());
        let (births, heard) = mpsc::channel(BIRTHS_MAX);
        let (nursery, oom_kills) = (Arc::clone(&self.nursery), Arc::clone(&self.oom_kills));
        let keeper = ZygoteLink::new(spawned, generation, nursery, oom_kills, heard);
        self.tasks.spawn(keeper.run(self.shutdown.clone()));
        self.present = Some(PresentZygote { births, forks: 0, since: Instant::now() });
    }

    /// Forwards requests and orders as many runners as the pool lacks.
    async fn supply(&mut self) {
        let Some(present) = &mut self.present else { return };
        let warm = self.nursery.order();
        let ready =
            || ForkRequest { memory_bytes: MEMORY_BYTES_DEFAULT, destiny: Recipient::Waiting };
        self.unmet.extend(std::iter::repeat_with(ready).take(warm));
        while let Some(birth) = self.unmet.pop_front() {
            present.forks = present.forks.saturating_add(1);
            if let Err(mpsc::error::SendError(birth)) = present.births.send(birth).await {
                // Its keeper has ended and the supervisor is about to be notified.
                if matches!(birth.destiny, Recipient::Lease(_)) {
                    self.unmet.push_front(birth);
                }
                return;
            }
        }
    }

    /// Fails the waiting requests.
    fn disappoint(&mut self, error: &SandboxStartError) {
        if self.present.is_some() {
            return;
        }
        for birth in self.unmet.drain(..) {
            if let Recipient::Lease(asker) = birth.destiny {
                drop(asker.send(Err(LeaseError::Unavailable { reason: error.to_string() })));
            }
        }
    }
}

fn back_off(failures: u32) -> Duration {
    match failures {
        0 | 1 => Duration::ZERO,
        n => BACK_OFF_FIRST.saturating_mul(1 << (n - 2).min(10)).min(BACK_OFF_MAX),
    }
}

/// Waits for the outcome of a start, if one is under way.
async fn finished(
    next: &mut Option<JoinHandle<Result<SpawnedZygote, SandboxStartError>>>,
) -> Result<SpawnedZygote, SandboxStartError> {
    let Some(task) = next else { return std::future::pending().await };
    let outcome = task.await;
    *next = None;
    outcome.unwrap_or_else(|broken| Err(SandboxStartError::Spawn(std::io::Error::other(broken))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_replacement_comes_at_once_and_later_ones_ever_later() {
        let waits: Vec<u128> = (0..12).map(|failures| back_off(failures).as_millis()).collect();
        assert_eq!(waits, [0, 0, 50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
    }
}
