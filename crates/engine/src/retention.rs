//! Finished executions stay readable for a while and within a size; then they are forgotten, oldest first.

use crate::engine::EngineShared;
use lifecycle::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use store::{FinishedTimes, StoreError};

/// Executions forgotten in one go: others want to write too.
const FORGOTTEN_PER_SWEEP_MAX: usize = 200;

/// Executions looked at in one read.
const LOOKED_AT_MAX: usize = 200;

/// How often the size is looked at, and how long to wait after the store failed.
const LOOK_EVERY_MS: u64 = 60_000;

/// Whoever waits for an end has heard it by then: younger ones are kept whatever their size.
const KEPT_MS_MIN: u64 = 10_000;

/// Between two sweeps that both found more to do than they may.
const BREATH: Duration = Duration::from_millis(20);

/// How long finished executions stay readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Since their end.
    pub age_ms_max: u64,
    /// What the journal may take on its disk; beyond that the oldest ones go before their time.
    pub bytes_max: u64,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self { age_ms_max: 30 * 24 * 3_600_000, bytes_max: 4 << 30 }
    }
}

/// What a sweep leaves to do.
enum SweepNext {
    /// There was more than it may do.
    Now,
    /// Nothing is to be done before.
    At(Timestamp),
}

/// Runs until the engine stops. Sleeps until something is due; no request ever waits for it.
pub(crate) async fn watch(shared: Arc<EngineShared>) {
    loop {
        let clock = &shared.config.clock;
        let next = sweep(&shared).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not forget what is old");
            SweepNext::At(clock.now().after_ms(LOOK_EVERY_MS))
        });
        let wait = async {
            match next {
                SweepNext::Now => tokio::time::sleep(BREATH).await,
                SweepNext::At(due) => clock.wait_until(due).await,
            }
        };
        tokio::select! {
            () = shared.closing.cancelled() => return,
            () = wait => {}
        }
    }
}

async fn sweep(shared: &EngineShared) -> Result<SweepNext, StoreError> {
    let RetentionPolicy { age_ms_max, bytes_max } = shared.config.retention;
    let (journal, now) = (&shared.config.journal, shared.config.clock.now());
    if let Some(until) = shared.clock_keeper.retention_held_until() {
        return Ok(SweepNext::At(until));
    }
    let mut next = now.after_ms(LOOK_EVERY_MS);
    let mut n_forgotten = 0;
    let mut after: Option<FinishedTimes> = None;
    let mut is_too_large = journal.bytes_used().await? > bytes_max;
    loop {
        let page = journal.finished(after.as_ref(), LOOKED_AT_MAX).await?;
        for finished in &page {
            let due = finished.ended.after_ms(age_ms_max);
            // What ended later than now ended before the clock was set back.
            let is_heard = finished.ended.after_ms(KEPT_MS_MIN) <= now || finished.ended > now;
            if due <= now || (is_too_large && is_heard) {
                journal.delete_execution(finished.execution).await?;
                n_forgotten += 1;
            } else {
                next = next.min(due);
            }
            if n_forgotten >= FORGOTTEN_PER_SWEEP_MAX {
                return Ok(SweepNext::Now);
            }
        }
        is_too_large = is_too_large && journal.bytes_used().await? > bytes_max;
        after = page.last().copied();
        // Nothing ends before it began: the rest is younger than what may go.
        let may_go = after.is_some_and(|last| last.created.after_ms(age_ms_max) <= now);
        if after.is_none() || !(may_go || is_too_large) {
            return Ok(SweepNext::At(next));
        }
    }
}
