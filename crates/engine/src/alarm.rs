//! Wakes executions without an actor when one of their timers or their total time is due.

use crate::actor::ActorRequest;
use crate::engine::EngineShared;
use lifecycle::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Delay before the store is queried again after an error.
const RETRY: Duration = Duration::from_secs(1);

/// Notifies the watcher that an execution has left its actor.
#[derive(Debug, Default)]
pub(crate) struct WakeAlarm(Notify);

impl WakeAlarm {
    pub(crate) fn reset(&self) {
        self.0.notify_one();
    }
}

/// Runs until the engine stops.
pub(crate) async fn watch(shared: Arc<EngineShared>) {
    loop {
        tokio::select! {
            () = shared.closing.cancelled() => return,
            () = wake_next(&shared) => {}
        }
    }
}

async fn wake_next(shared: &Arc<EngineShared>) {
    let next = match shared.config.journal.next_due().await {
        Ok(next) => next,
        Err(error) => {
            tracing::warn!(%error, "could not ask for what is due next");
            return tokio::time::sleep(RETRY).await;
        }
    };
    let clock = &shared.config.clock;
    let (due, execution) = match next {
        Some((due, execution)) => (due, Some(execution)),
        None => (Timestamp(i64::MAX), None),
    };
    tokio::select! {
        () = shared.alarm.0.notified() => return, // something may be due earlier
        () = clock.wait_until(due) => {}
    }
    if clock.now() >= due
        && let Some(execution) = execution
        && let Err(error) = shared.submit_request(execution, ActorRequest::Wake).await
    {
        tracing::warn!(%execution, %error, "could not wake what is due");
        tokio::time::sleep(RETRY).await;
    }
}
