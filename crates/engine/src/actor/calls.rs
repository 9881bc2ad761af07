//! Calls whose tools are at work. Small programs often make none: what calls need is made for the first one.

use crate::engine::Shared;
use crate::reports::Reporter;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use lifecycle::{CallId, CallOutcome, ExecutionId};
use tokio_util::sync::CancellationToken;

/// None before the first call, and once the execution is over.
#[derive(Default)]
pub(super) struct Calls(Option<Box<AtWork>>);

/// What the calls of one execution share.
pub(super) struct AtWork {
    outcomes: FuturesUnordered<BoxFuture<'static, (CallId, CallOutcome)>>,
    /// Tells tools that nobody waits any more.
    pub(super) abandoned: CancellationToken,
    /// How far they say that they are.
    pub(super) reporter: Reporter,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|at_work| at_work.outcomes.is_empty())
    }

    /// What a new call needs.
    pub(super) fn at_work(&mut self, execution: ExecutionId) -> &mut AtWork {
        self.0.get_or_insert_with(|| {
            let abandoned = CancellationToken::new();
            let reporter = Reporter::new(execution, abandoned.clone());
            Box::new(AtWork { outcomes: FuturesUnordered::new(), abandoned, reporter })
        })
    }

    /// How the next of them ended; none where there is none.
    pub(super) async fn next(&mut self) -> Option<(CallId, CallOutcome)> {
        self.0.as_mut()?.outcomes.next().await
    }

    /// What tools said is no longer news.
    pub(super) fn forget_reports(&self, shared: &Shared) {
        if let Some(at_work) = &self.0 {
            at_work.reporter.forget(&shared.reports);
        }
    }

    /// Nobody waits any more, but their outcomes are still welcome.
    pub(super) fn abandon(&self) {
        if let Some(at_work) = &self.0 {
            at_work.abandoned.cancel();
        }
    }

    /// Ends all of them here.
    pub(super) fn stop(&mut self, shared: &Shared) {
        self.abandon();
        self.forget_reports(shared);
        self.0 = None;
    }
}

impl AtWork {
    pub(super) fn push(&mut self, calling: BoxFuture<'static, (CallId, CallOutcome)>) {
        self.outcomes.push(calling);
    }
}
