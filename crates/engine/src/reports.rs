//! How far tools say that they are. Not journalled: whoever asks after a restart hears the tool's next attempt.

use crate::engine::EngineShared;
use lifecycle::{ExecutionId, Json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;
use tools::ProgressHandle;

/// The newest word of each execution whose tool said one: as many at most as executions are under way.
#[derive(Default)]
pub(crate) struct ProgressReports(Mutex<HashMap<ExecutionId, Json>>);

impl ProgressReports {
    pub(crate) fn newest(&self, execution: ExecutionId) -> Option<Json> {
        self.lock().get(&execution).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutionId, Json>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the tools of one execution say.
#[derive(Clone)]
pub(crate) struct ProgressReporter {
    execution: ExecutionId,
    /// Given when nobody listens any more.
    over: CancellationToken,
    /// Most tools never say a word, and their executions then share no lock.
    has_spoken: Arc<AtomicBool>,
}

impl ProgressReporter {
    pub(crate) fn new(execution: ExecutionId, over: CancellationToken) -> Self {
        Self { execution, over, has_spoken: Arc::default() }
    }

    /// Those who watch a call, and who now hear numbers too.
    pub(crate) fn measured(
        &self,
        progress: ProgressHandle,
        shared: &Arc<EngineShared>,
    ) -> ProgressHandle {
        let (reporter, shared) = (self.clone(), Arc::clone(shared));
        progress.measured_by(move |said| {
            reporter.has_spoken.store(true, Ordering::SeqCst);
            let mut reports = shared.reports.lock();
            // Under the lock: what is heard after the end would never be forgotten.
            if !reporter.over.is_cancelled() {
                reports.insert(reporter.execution, said);
            }
        })
    }

    /// Forgets what was said: a call is over, or with `over` given everything.
    pub(crate) fn clear_reports(&self, reports: &ProgressReports) {
        if self.has_spoken.load(Ordering::SeqCst) {
            reports.lock().remove(&self.execution);
        }
    }
}
