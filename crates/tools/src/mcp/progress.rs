//! Progress notifications of a server: each has a token, which identifies the call.

use super::session::McpClientService;
use crate::ProgressHandle;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest,
    ProgressNotificationParam, ProgressToken, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::task::TaskTracker;

/// Early notifications that are buffered: they arrived before their call's token was known.
const EARLY_MAX: usize = 16;

/// The listeners on one connection.
#[derive(Default)]
pub(super) struct ProgressListeners(Mutex<ListenerEntry>);

#[derive(Default)]
struct ListenerEntry {
    listening: HashMap<ProgressToken, ProgressHandle>,
    early: VecDeque<ProgressNotificationParam>,
}

/// Unsubscribes on drop.
struct ProgressSubscription<'a> {
    listeners: &'a ProgressListeners,
    token: ProgressToken,
}

impl ProgressListeners {
    /// Delivers a progress notification.
    pub(super) fn handle_notice(&self, notice: ProgressNotificationParam) {
        let mut known = self.lock();
        match known.listening.get(&notice.progress_token) {
            Some(progress) => measure(progress, &notice),
            None => {
                known.early.push_back(notice);
                if known.early.len() > EARLY_MAX {
                    known.early.pop_front();
                }
            }
        }
    }

    fn listen(&self, token: ProgressToken, progress: &ProgressHandle) -> ProgressSubscription<'_> {
        let mut known = self.lock();
        known.early.retain(|notice| {
            let is_its = notice.progress_token == token;
            if is_its {
                measure(progress, notice);
            }
            !is_its
        });
        known.listening.insert(token.clone(), progress.clone());
        ProgressSubscription { listeners: self, token }
    }

    fn lock(&self) -> MutexGuard<'_, ListenerEntry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ProgressSubscription<'_> {
    fn drop(&mut self) {
        self.listeners.lock().listening.remove(&self.token);
    }
}

fn measure(progress: &ProgressHandle, notice: &ProgressNotificationParam) {
    progress.measure(notice.progress, notice.total, notice.message.as_deref());
}

/// A request that is in progress. Dropping it cancels it at the server.
struct OutstandingRequest<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    tasks: &'a TaskTracker,
}

impl Drop for OutstandingRequest<'_> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            // A server that is gone needs no cancellation.
            self.tasks.spawn(async move { drop(handle.cancel(None).await) });
        }
    }
}

/// Calls a tool and forwards its progress.
pub(super) async fn call(
    service: &McpClientService,
    listeners: &ProgressListeners,
    tasks: &TaskTracker,
    params: CallToolRequestParams,
    progress: &ProgressHandle,
) -> Result<CallToolResult, ServiceError> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
    let options = PeerRequestOptions::no_options();
    let handle = service.peer().send_cancellable_request(request, options).await?;
    let _listening = listeners.listen(handle.progress_token.clone(), progress);
    let mut asked = OutstandingRequest { handle: Some(handle), tasks };
    let answered = match &mut asked.handle {
        Some(handle) => (&mut handle.rx).await,
        None => return Err(ServiceError::TransportClosed),
    };
    asked.handle = None;
    let answer = answered.map_err(|_| ServiceError::TransportClosed)??;
    if let ServerResult::CallToolResult(result) = answer {
        return Ok(result);
    }
    if matches!(answer, ServerResult::InputRequiredResult(_)) {
        // Nothing was done yet: the library sends the request again and handles the following rounds.
        return service.call_tool(params).await;
    }
    Err(ServiceError::UnexpectedResponse)
}
