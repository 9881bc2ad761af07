//! Spinning for a runner's answer.
//!
//! A wake-up takes tens of microseconds, as long as a small program. A lease therefore polls its link for up to [`SPIN_MAX`]
//! before it blocks, while there are two processors for each busy runner: one for the runner and one for the lease. It
//! yields to other tasks and processes after each poll.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a lease spins before it blocks: most programs end sooner, also in a runner that has just been forked.
const SPIN_MAX: Duration = Duration::from_micros(500);

/// Counts the runners that received a message and have not answered yet.
#[derive(Debug)]
pub(crate) struct BusyRunners {
    n: AtomicUsize,
    n_cores: usize,
}

impl BusyRunners {
    pub(crate) fn new() -> Arc<Self> {
        let n_cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Arc::new(Self { n: AtomicUsize::new(0), n_cores })
    }
}

/// The wait of one lease for an answer. Its runner counts as busy until this is dropped.
#[derive(Debug)]
pub(crate) struct SpinWait {
    runners: Arc<BusyRunners>,
    /// `None` once the lease should block.
    until: Option<Instant>,
}

impl SpinWait {
    pub(crate) fn begin_spin(runners: &Arc<BusyRunners>) -> Self {
        runners.n.fetch_add(1, Ordering::Relaxed);
        Self { runners: Arc::clone(runners), until: None }
    }

    /// Allows another [`SPIN_MAX`]: a message was sent to the runner at `now`.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.until = Some(now + SPIN_MAX);
    }

    /// Whether to poll once more. Once this is false it stays false until [`Self::restart`].
    pub(crate) fn is_worthwhile(&mut self) -> bool {
        let Some(until) = self.until else { return false };
        let has_cores = 2 * self.runners.n.load(Ordering::Relaxed) <= self.runners.n_cores;
        if !has_cores || Instant::now() >= until {
            self.until = None;
        }
        self.until.is_some()
    }
}

impl Drop for SpinWait {
    fn drop(&mut self) {
        self.runners.n.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets other processes, and other tasks of this thread, run between two polls.
pub(crate) async fn yield_now() {
    std::thread::yield_now();
    tokio::task::yield_now().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_spins_for_a_while_where_there_are_two_processors_for_each_busy_runner() {
        let runners = Arc::new(BusyRunners { n: AtomicUsize::new(0), n_cores: 3 });
        let mut first = SpinWait::begin_spin(&runners);
        assert!(!first.is_worthwhile(), "it was told nothing");
        let now = Instant::now();
        first.restart(now + Duration::from_secs(3_600));
        assert!(first.is_worthwhile());
        let second = SpinWait::begin_spin(&runners);
        assert!(!first.is_worthwhile());
        drop(second);
        assert!(!first.is_worthwhile(), "it has decided to block");
        first.restart(now.checked_sub(2 * SPIN_MAX).unwrap());
        assert!(!first.is_worthwhile());
    }
}
