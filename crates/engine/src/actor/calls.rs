//! Calls whose tools are at work. Small programs often make none: what calls need is made for the first one.

use crate::engine::EngineShared;
use crate::reports::ProgressReporter;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use lifecycle::{CallId, CallOutcome, ExecutionId, Timestamp};
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// None before the first call, and once the execution is over.
#[derive(Default)]
pub(super) struct DispatchedCalls(Option<Box<AtWork>>);

/// What the calls of one execution share.
pub(super) struct AtWork {
    outcomes: FuturesUnordered<BoxFuture<'static, (CallId, CallEnd)>>,
    /// Tells tools that nobody waits any more.
    pub(super) abandoned: CancellationToken,
    /// How far they say that they are.
    pub(super) reporter: ProgressReporter,
    /// Calls that have waited for their sources since they were last dispatched in earnest.
    pub(super) source_waits: BTreeMap<CallId, SourceWait>,
}

/// How long a call waits for its source, however often the source comes and goes meanwhile.
pub(super) struct SourceWait {
    pub(super) until: Timestamp,
    /// Why it could not be sent although its source was available, if it was tried.
    pub(super) unsent: Option<String>,
}

/// What ended the work or the wait of a call.
pub(super) enum CallEnd {
    /// Its tool is done.
    Returned(CallOutcome),
    /// Its source is available, or was waited for long enough.
    SourceAwaited,
}

impl DispatchedCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|at_work| at_work.outcomes.is_empty())
    }

    /// What a new call needs.
    pub(super) fn at_work(&mut self, execution: ExecutionId) -> &mut AtWork {
        self.0.get_or_insert_with(|| {
            let abandoned = CancellationToken::new();
            let reporter = ProgressReporter::new(execution, abandoned.clone());
            let (outcomes, source_waits) = (FuturesUnordered::new(), BTreeMap::new());
            Box::new(AtWork { outcomes, abandoned, reporter, source_waits })
        })
    }

    /// How the next of them ended; none where there is none.
    pub(super) async fn next(&mut self) -> Option<(CallId, CallEnd)> {
        self.0.as_mut()?.outcomes.next().await
    }

    /// How long a call waits for its source, if it does or did.
    pub(super) fn source_wait(&self, call: CallId) -> Option<&SourceWait> {
        self.0.as_ref()?.source_waits.get(&call)
    }

    /// What tools said is no longer news.
    pub(super) fn forget_reports(&self, shared: &EngineShared) {
        if let Some(at_work) = &self.0 {
            at_work.reporter.clear_reports(&shared.reports);
        }
    }

    /// Nobody waits any more, but their outcomes are still welcome.
    pub(super) fn abandon(&self) {
        if let Some(at_work) = &self.0 {
            at_work.abandoned.cancel();
        }
    }

    /// Ends all of them here.
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
