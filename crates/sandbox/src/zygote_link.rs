//! The server's side of one zygote: forwards fork requests, delivers runners, receives notifications of
//! ends.

use crate::error::LeaseError;
use crate::fork_request::{ForkRequest, Recipient, Runner, RunnerLife, RunnerOrigin};
use crate::oom_kills::OomKills;
use crate::spawn::SpawnedZygote;
use crate::warm_pool::WarmPool;
use crate::zygote::{
    ControlSocket, ForkOrder, ForkToken, ProcessEnd, ZygoteReport, ZygoteSocket, writable,
};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Capacity of the queue of fork requests to a zygote. When it is full, the supervisor waits, and so do its
/// callers.
pub(crate) const BIRTHS_MAX: usize = 256;

/// A zygote that has no work left exits immediately; one that does not is killed.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(2);

/// Owns a zygote until its last runner has ended.
pub(crate) struct ZygoteLink {
    child: Child,
    control: AsyncFd<ControlSocket>,
    generation: u64,
    nursery: Arc<WarmPool>,
    oom_kills: Arc<OomKills>,
    births: mpsc::Receiver<ForkRequest>,
    /// A request that did not fit into the control socket's buffer yet.
    unsent: Option<UnsentFork>,
    expected: HashMap<ForkToken, ExpectedFork>,
    alive: HashMap<ForkToken, Arc<RunnerLife>>,
    tokens: u64,
    is_retired: bool,
}

/// A request that was sent to the zygote.
struct ExpectedFork {
    birth: ForkRequest,
    link: ZygoteSocket,
}

struct UnsentFork {
    order: ForkOrder,
    runners_end: std::os::unix::net::UnixStream,
}

impl ZygoteLink {
    pub(crate) fn new(
        spawned: SpawnedZygote,
        generation: u64,
        nursery: Arc<WarmPool>,
        oom_kills: Arc<OomKills>,
        births: mpsc::Receiver<ForkRequest>,
    ) -> Self {
        Self {
            child: spawned.child,
            control: spawned.control,
            generation,
            nursery,
            oom_kills,
            births,
            unsent: None,
            expected: HashMap::new(),
            alive: HashMap::new(),
            tokens: 0,
            is_retired: false,
        }
    }

    /// Runs until the zygote has ended, or is retired without runners, or everything shuts down.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        while !self.is_done() {
            tokio::select! {
                () = shutdown.cancelled() => break,
                heard = next_report(&self.control) => match heard {
                    Ok(Some((report, passed))) => self.handle_report(report, passed),
                    Ok(None) | Err(_) => break,
                },
                birth = self.births.recv(), if self.unsent.is_none() && !self.is_retired => match birth {
                    Some(birth) => self.wish(birth),
                    None => self.is_retired = true,
                },
                room = writable(self.control.as_fd()), if self.unsent.is_some() => match room {
                    Ok(()) => self.send(),
                    Err(_) => break,
                },
            }
        }
        self.bury().await;
    }

    fn is_done(&self) -> bool {
        self.is_retired && self.expected.is_empty() && self.alive.is_empty()
    }

    fn wish(&mut self, birth: ForkRequest) {
        match ZygoteSocket::pair() {
            Ok((link, runners_end)) => {
                self.tokens += 1;
                let token = ForkToken(self.tokens);
                let will_wait = matches!(birth.destiny, Recipient::Waiting);
                let order = ForkOrder { token, memory_bytes: birth.memory_bytes, will_wait };
                self.expected.insert(token, ExpectedFork { birth, link });
                self.unsent = Some(UnsentFork { order, runners_end });
                self.send();
            }
            Err(error) => self.refuse(birth, &error),
        }
    }

    fn send(&mut self) {
        let Some(unsent) = self.unsent.take() else { return };
        match self.control.get_ref().order(unsent.order, unsent.runners_end.as_fd()) {
            Ok(()) => {}
            Err(full) if full.kind() == io::ErrorKind::WouldBlock => self.unsent = Some(unsent),
            // The zygote has ended, as its socket is about to report; the lease will try the next one.
            Err(gone) if is_gone(&gone) => {}
            Err(error) => self.not_born(unsent.order.token, &error),
        }
    }

    fn handle_report(&mut self, report: ZygoteReport, passed: Option<OwnedFd>) {
        match (report, passed) {
            (ZygoteReport::Born(token), Some(pidfd)) => self.born(token, pidfd),
            (ZygoteReport::Born(token), None) => {
                self.not_born(token, &io::ErrorKind::InvalidData.into())
            }
            (ZygoteReport::NotBorn { token, errno }, _) => {
                self.not_born(token, &io::Error::from_raw_os_error(errno));
            }
            (ZygoteReport::Ended { token, end }, _) => self.ended(token, end),
            (ZygoteReport::Ready(_) | ZygoteReport::Missing { .. }, _) => {}
        }
    }

    fn born(&mut self, token: ForkToken, pidfd: OwnedFd) {
        let Some(ExpectedFork { birth, link }) = self.expected.remove(&token) else { return };
        let life = Arc::new(RunnerLife::default());
        let origin = RunnerOrigin { generation: self.generation, memory_bytes: birth.memory_bytes };
        let runner = Runner::new(link, pidfd, origin, Arc::clone(&life));
        self.alive.insert(token, life);
        match birth.destiny {
            Recipient::Waiting => self.nursery.arrive(self.generation, Some(runner)),
            // A caller that no longer waits drops it, which kills it.
            Recipient::Lease(asker) => drop(asker.send(Ok(runner))),
        }
    }

    fn not_born(&mut self, token: ForkToken, error: &io::Error) {
        if let Some(ExpectedFork { birth, .. }) = self.expected.remove(&token) {
            self.refuse(birth, error);
        }
    }

    fn refuse(&self, birth: ForkRequest, error: &io::Error) {
        tracing::warn!(%error, "could not fork a runner");
        match birth.destiny {
            Recipient::Waiting => self.nursery.arrive(self.generation, None),
            Recipient::Lease(asker) => {
                drop(asker.send(Err(LeaseError::Unavailable { reason: error.to_string() })));
            }
        }
    }

    fn ended(&mut self, token: ForkToken, end: ProcessEnd) {
        let Some(life) = self.alive.remove(&token) else { return };
        if life.is_unexplained(end) {
            match self.oom_kills.claim() {
                true => life.note_oom_kill(),
                false => tracing::warn!("a runner was killed from outside"),
            }
        }
        life.close(Some(end));
        if end.is_crash() {
            tracing::warn!(?end, generation = self.generation, "a runner crashed");
            self.nursery.condemn(self.generation);
        }
    }

    /// Ends the zygote and with it every remaining runner, and reports that.
    async fn bury(mut self) {
        // Dropping these fails all requests to this zygote immediately, so that their leases try again.
        drop((self.control, self.births, self.expected));
        // It exits when the control socket closes, after its runners if it is their init.
        if tokio::time::timeout(LEAVE_TIME_MAX, self.child.wait()).await.is_err() {
            drop(self.child.kill().await);
        }
        for life in self.alive.into_values() {
            life.close(None);
        }
        self.nursery.gone(self.generation);
    }
}

/// Waits for the zygote's next report. `None` when it has ended.
pub(crate) async fn next_report(
    control: &AsyncFd<ControlSocket>,
) -> io::Result<Option<(ZygoteReport, Option<OwnedFd>)>> {
    loop {
        let mut ready = control.readable().await?;
        if let Ok(received) = ready.try_io(|control| control.get_ref().next_report()) {
            return received;
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
