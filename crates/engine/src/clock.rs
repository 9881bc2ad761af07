//! The only place that knows the time. Stories wind it by hand.

use lifecycle::Timestamp;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Longest single wait: a timer wheel has an end, and a clock that was set is noticed this late at most.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// Where time comes from.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's, never going back while the process lives.
    System(Started),
    /// A clock wound by hand.
    Manual(ManualClock),
}

/// When the process began to count.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    wall: Timestamp,
    at: Instant,
}

/// A clock that stands still until somebody moves it.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<watch::Sender<Timestamp>>);

impl Clock {
    /// The machine's clock.
    #[expect(clippy::disallowed_methods, reason = "this is engine::clock")]
    pub fn system() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall = Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        Self::System(Started { wall, at: Instant::now() })
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System(started) => {
                let ms = u64::try_from(started.at.elapsed().as_millis()).unwrap_or(u64::MAX);
                started.wall.after_ms(ms)
            }
            Self::Manual(clock) => *clock.0.borrow(),
        }
    }

    /// Waits until `due`, or a little less: callers look at the clock again.
    pub async fn wait_until(&self, due: Timestamp) {
        match self {
            Self::System(_) => {
                let wait = Duration::from_millis(due.ms_since(self.now()));
                tokio::time::sleep(wait.min(WAIT_MAX)).await;
            }
            Self::Manual(clock) => {
                let mut time = clock.0.subscribe();
                // The clock outlives this wait: we hold one end of it ourselves.
                let _ = time.wait_for(|now| *now >= due).await;
            }
        }
    }
}

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(watch::Sender::new(now)))
    }

    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.0.send_modify(|now| *now = now.after_ms(ms));
    }
}
