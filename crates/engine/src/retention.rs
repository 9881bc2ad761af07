//! Finished executions stay readable up to an age and a total size; then they are deleted, oldest first.

use crate::engine::EngineShared;
use lifecycle::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use store::{FinishedTimes, StoreError};

/// Maximum number of executions deleted in one sweep: others need to write too.
const FORGOTTEN_PER_SWEEP_MAX: usize = 200;

/// Executions per read.
const LOOKED_AT_MAX: usize = 200;

/// How often the size is checked, and the delay after an error of the store.
const LOOK_EVERY_MS: u64 = 60_000;

/// Clients that wait for an end have received it by then: younger executions are never deleted for their size.
const KEPT_MS_MIN: u64 = 10_000;

/// Pause between two sweeps that both reached their limit.
const BREATH: Duration = Duration::from_millis(20);

/// How long finished executions stay readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Maximum age since their end.
    pub age_ms_max: u64,
    /// Maximum size of the journal on its disk; beyond that the oldest executions are deleted early.
    pub bytes_max: u64,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self { age_ms_max: 30 * 24 * 3_600_000, bytes_max: 4 << 30 }
    }
}

/// When the next sweep is due.
enum SweepNext {
    /// Immediately: the limit of a sweep was reached.
    Now,
    /// Nothing is due before this time.
    At(Timestamp),
}

/// Runs until the engine stops. Sleeps until something is due; no request waits for it.
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
            // An end in the future was recorded before the clock was set back.
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
        // No execution ends before it began: the rest is younger than what may be deleted.
        let may_go = after.is_some_and(|last| last.created.after_ms(age_ms_max) <= now);
        if after.is_none() || !(may_go || is_too_large) {
            return Ok(SweepNext::At(next));
        }
    }
}
