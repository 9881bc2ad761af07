//! Waits for what a client must receive. A client that disconnects changes nothing.

use super::narration::{McpExecutionView, NarrationEnd};
use super::visit::McpRequestContext;
use crate::app::AppState;
use crate::error::RequestError;
use futures_util::{FutureExt as _, StreamExt as _};
use lifecycle::{ExecutionId, Seq};
use protocols::executor::WaitEnd;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long a call runs before its progress is reported. Shorter calls report none: a report costs more than it is
/// worth, because the answer must then be a stream.
const PROGRESS_AFTER: Duration = Duration::from_millis(100);

/// Minimum interval between progress reports to a client that requests them.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// Maximum interval between reports to such a client: its timer must not expire.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// What to wait for.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitRequest {
    pub(super) execution: ExecutionId,
    pub(super) until: NarrationEnd,
    /// Whether this waiter may count the end: it is counted once.
    pub(super) counts: bool,
}

/// Waits, and continues if the client disconnects so that the end is counted. None: the wait time has passed.
pub(super) async fn listen(
    visit: &McpRequestContext,
    wanted: WaitRequest,
    wait: Duration,
    progress: ProgressNotifier,
) -> Result<Option<McpExecutionView>, RequestError> {
    // An execution that is already over, as most small programs are, is answered without waiting.
    match wait_for_entries(&visit.app, wanted, None).now_or_never() {
        Some(heard) => heard.map(Some),
        None => Box::pin(listen_for_long(visit, wanted, wait, progress)).await,
    }
}

async fn listen_for_long(
    visit: &McpRequestContext,
    wanted: WaitRequest,
    wait: Duration,
    mut progress: ProgressNotifier,
) -> Result<Option<McpExecutionView>, RequestError> {
    let (steps, mut step) = watch::channel(String::new());
    let following = follow_execution(Arc::clone(&visit.app), wanted, steps);
    let mut following = visit.app.tasks.spawn(following);
    let deadline = tokio::time::sleep(wait);
    let ended = visit.app.credential_end(&visit.caller);
    tokio::pin!(deadline, ended);
    loop {
        tokio::select! {
            biased;
            told = &mut following => {
                return told.map_err(|panic| RequestError::broken(&panic))?.map(Some);
            }
            () = &mut deadline => return Ok(None),
            () = &mut ended => return Err(RequestError::unauthorized()),
            () = progress.notify_progress(&mut step) => {}
        }
    }
}

/// Follows the journal until there is a result for the client.
async fn follow_execution(
    app: Arc<AppState>,
    wanted: WaitRequest,
    steps: watch::Sender<String>,
) -> Result<McpExecutionView, RequestError> {
    tokio::select! {
        heard = wait_for_entries(&app, wanted, Some(&steps)) => heard,
        () = app.stopping.cancelled() => Err(RequestError::stopping()),
    }
}

async fn wait_for_entries(
    app: &AppState,
    wanted: WaitRequest,
    steps: Option<&watch::Sender<String>>,
) -> Result<McpExecutionView, RequestError> {
    let mut entries = app.engine.follow(wanted.execution, Seq(0));
    let mut narration = McpExecutionView::default();
    while let Some(entry) = entries.next().await {
        narration.handle_entry(&entry?);
        if let Some(told) = narration.wait_result(wanted.until) {
            if let WaitEnd::Over(outcome) = told
                && wanted.counts
            {
                app.metrics.count_end(outcome);
            }
            return Ok(narration);
        }
        if let Some(steps) = steps.filter(|steps| !steps.is_closed()) {
            steps.send_replace(narration.doing());
        }
    }
    Err(RequestError::no_execution(wanted.execution))
}

/// The current view of the execution.
pub(super) async fn caught_up(
    visit: &McpRequestContext,
    execution: ExecutionId,
) -> Result<Arc<McpExecutionView>, RequestError> {
    visit.state.narrations.read(&visit.app.engine, execution).await
}

/// Sends progress notifications to a client that requests them.
pub(super) struct ProgressNotifier(Option<(Peer<RoleServer>, ProgressToken)>, f64);

impl ProgressNotifier {
    /// Created according to the request.
    pub(super) fn wished(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        let wished = token.map(|token| (context.peer.clone(), token));
        Self(wished, 0.0)
    }

    /// Sends one report, after a pause. Never resolves for clients that request none.
    async fn notify_progress(&mut self, step: &mut watch::Receiver<String>) {
        let Some((peer, token)) = &self.0 else { return std::future::pending().await };
        let pause = if self.1 > 0.0 { PROGRESS_EVERY } else { PROGRESS_AFTER };
        tokio::time::sleep(pause).await;
        // A change and a timeout have the same effect; a closed channel ends the wait.
        let _ = tokio::time::timeout(SILENCE_MAX, step.changed()).await;
        self.1 += 1.0;
        let message = match step.borrow_and_update().as_str() {
            "" => "running".to_owned(),
            said => said.to_owned(),
        };
        let param = ProgressNotificationParam::new(token.clone(), self.1).with_message(message);
        if peer.notify_progress(param).await.is_err() {
            self.0 = None; // nobody is there to hear it
        }
    }
}
