//! Progress reports of tools in progress.

use super::ExecutionActor;
use super::lazy_channel::LazyChannel;
use futures_util::FutureExt;
use lifecycle::{CallId, Intent, Rejection};
use tools::ProgressHandle;

/// Receives the reports of tools.
#[derive(Default)]
pub(super) struct ProgressChannel(LazyChannel<(CallId, String)>);

impl ProgressChannel {
    /// The progress handle of `call`.
    pub(super) fn reporter(&mut self, call: CallId) -> ProgressHandle {
        let sender = self.0.sender();
        ProgressHandle::told_to(move |text| {
            let sender = sender.clone();
            // Dropped if the receiver is gone.
            async move { drop(sender.send((call, text)).await) }.boxed()
        })
    }

    /// The next report.
    pub(super) async fn next(&mut self) -> (CallId, String) {
        self.0.next().await
    }

    /// The next report, if it has arrived.
    fn try_next(&mut self) -> Option<(CallId, String)> {
        self.0.try_next()
    }
}

impl ExecutionActor {
    /// Records a progress report.
    pub(super) fn record_progress(&mut self, call: CallId, text: String) {
        match self.submit(Intent::Progress { call, text }) {
            // Reports of a call that was ended for its tool.
            Ok(_) | Err(Rejection::NotOutstanding(_) | Rejection::AlreadyFinished) => {}
            Err(rejection) => tracing::warn!(%rejection, %call, "a tool's progress was refused"),
        }
    }

    /// Records all reports that have arrived: the reports of a call precede its end.
    pub(super) fn catch_up_on_progress(&mut self) {
        while let Some((call, text)) = self.progress.try_next() {
            self.record_progress(call, text);
        }
    }
}
