//! Calls in progress. Small programs often make none, so the state is allocated for the first call.

use crate::engine::EngineShared;
use crate::reports::ProgressReporter;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use lifecycle::{CallId, CallOutcome, ExecutionId, Timestamp};
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// None before the first call, and after the execution has ended.
#[derive(Default)]
pub(super) struct DispatchedCalls(Option<Box<AtWork>>);

/// The state that the calls of one execution share.
pub(super) struct AtWork {
    outcomes: FuturesUnordered<BoxFuture<'static, (CallId, CallEnd)>>,
    /// Signals to tools that their result is no longer needed.
    pub(super) abandoned: CancellationToken,
    /// Receives the progress of tools.
    pub(super) reporter: ProgressReporter,
    /// Calls that have waited for their sources since their last actual dispatch.
    pub(super) source_waits: BTreeMap<CallId, SourceWait>,
}

/// How long a call has waited for its source, across all outages.
pub(super) struct SourceWait {
    pub(super) until: Timestamp,
    /// Why it could not be sent although its source was available, if that was tried.
    pub(super) unsent: Option<String>,
}

/// Why the work or the wait of a call ended.
pub(super) enum CallEnd {
    /// The tool returned.
    Returned(CallOutcome),
    /// The source is available, or the wait timed out.
    SourceAwaited,
}

impl DispatchedCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|at_work| at_work.outcomes.is_empty())
    }

    /// The state for a new call.
    pub(super) fn at_work(&mut self, execution: ExecutionId) -> &mut AtWork {
        self.0.get_or_insert_with(|| {
            let abandoned = CancellationToken::new();
            let reporter = ProgressReporter::new(execution, abandoned.clone());
            let (outcomes, source_waits) = (FuturesUnordered::new(), BTreeMap::new());
            Box::new(AtWork { outcomes, abandoned, reporter, source_waits })
        })
    }

    /// The end of the next call; none if there are no calls.
    pub(super) async fn next(&mut self) -> Option<(CallId, CallEnd)> {
        self.0.as_mut()?.outcomes.next().await
    }

    /// The wait of a call for its source, if there is or was one.
    pub(super) fn source_wait(&self, call: CallId) -> Option<&SourceWait> {
        self.0.as_ref()?.source_waits.get(&call)
    }

    /// Drops the recorded progress.
    pub(super) fn forget_reports(&self, shared: &EngineShared) {
        if let Some(at_work) = &self.0 {
            at_work.reporter.clear_reports(&shared.reports);
        }
    }

    /// Signals that results are no longer needed; those that arrive are still accepted.
    pub(super) fn abandon(&self) {
        if let Some(at_work) = &self.0 {
            at_work.abandoned.cancel();
        }
    }

    /// Stops all calls.
    pub(super) fn stop(&mut self, shared: &EngineShared) {
        self.abandon();
        self.forget_reports(shared);
        self.0 = None;
    }
}

impl AtWork {
    pub(super) fn push(&mut self, calling: BoxFuture<'static, (CallId, CallEnd)>) {
        self.outcomes.push(calling);
    }
}
