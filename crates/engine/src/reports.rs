//! The progress of tools. Not journalled: after a restart, the tool's next attempt reports again.

use crate::engine::EngineShared;
use lifecycle::{ExecutionId, Json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;
use tools::ProgressHandle;

/// The newest report of each execution; bounded by the number of executions in progress.
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

/// The reports of the tools of one execution.
#[derive(Clone)]
pub(crate) struct ProgressReporter {
    execution: ExecutionId,
    /// Cancelled when the reports are no longer needed.
    over: CancellationToken,
    /// Most tools report nothing, and their executions then share no lock.
    has_spoken: Arc<AtomicBool>,
}

impl ProgressReporter {
    pub(crate) fn new(execution: ExecutionId, over: CancellationToken) -> Self {
        Self { execution, over, has_spoken: Arc::default() }
    }

    /// The progress handle of a call, extended to receive numbers.
    pub(crate) fn measured(
        &self,
        progress: ProgressHandle,
        shared: &Arc<EngineShared>,
    ) -> ProgressHandle {
        let (reporter, shared) = (self.clone(), Arc::clone(shared));
        progress.measured_by(move |said| {
            reporter.has_spoken.store(true, Ordering::SeqCst);
            let mut reports = shared.reports.lock();
            // Under the lock: a report after the end would never be removed.
            if !reporter.over.is_cancelled() {
                reports.insert(reporter.execution, said);
            }
        })
    }

    /// Removes the report: a call has ended, or with `over` the execution.
    pub(crate) fn clear_reports(&self, reports: &ProgressReports) {
        if self.has_spoken.load(Ordering::SeqCst) {
            reports.lock().remove(&self.execution);
        }
    }
}
