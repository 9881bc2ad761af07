//! The calls of one execution: resolved by name, run concurrently, answered as they settle.

use super::error::ExecboxFailure;
use super::provider::ResolvedProvider;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use lifecycle::Json;
use protocols::execbox::wire::ToolCall;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Calls of one guest that may be in flight; a loop without `await` makes no more.
pub(super) const CALLS_MAX: usize = 4_096;

/// The calls in flight. Dropping it drops them.
pub(super) struct PendingToolCalls<'p> {
    providers: &'p [Arc<ResolvedProvider>],
    signal: CancellationToken,
    outstanding: FuturesUnordered<BoxFuture<'static, ToolCallAnswer>>,
}

/// The outcome of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolCallAnswer {
    pub(super) call_id: String,
    pub(super) outcome: Result<Json, ExecboxFailure>,
}

impl<'p> PendingToolCalls<'p> {
    pub(super) fn new(providers: &'p [Arc<ResolvedProvider>]) -> Self {
        let signal = CancellationToken::new();
        Self { providers, signal, outstanding: FuturesUnordered::new() }
    }

    /// Begins a call. Every call gets an answer, also an invalid one: the guest waits for it.
    pub(super) fn begin_call(&mut self, call: &ToolCall<'_>) {
        let provider = self.providers.iter().find(|one| one.namespace() == call.provider_name);
        let has_room = self.outstanding.len() < CALLS_MAX;
        let provider = provider.cloned();
        let signal = self.signal.clone();
        let (namespace, safe_name) =
            (call.provider_name.to_string(), call.safe_tool_name.to_string());
        let (call_id, input) = (call.call_id.to_string(), call.input.to_json());
        self.outstanding.push(Box::pin(async move {
            // Checked when the call would start, not when it was read: nothing starts after the end of the run.
            let outcome = if signal.is_cancelled() {
                Err(ExecboxFailure::timeout())
            } else if !has_room {
                let limit = format!("more than {CALLS_MAX} tool calls are under way");
                Err(ExecboxFailure::internal(limit))
            } else {
                dispatch(provider, &namespace, &safe_name, (input, signal)).await
            };
            ToolCallAnswer { call_id, outcome }
        }));
    }

    /// Returns the next answer; `None` while no call is in flight. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<ToolCallAnswer> {
        self.outstanding.next().await
    }

    /// Signals all tools that their results are no longer needed.
    pub(super) fn abort(&self) {
        self.signal.cancel();
    }
}

async fn dispatch(
    provider: Option<Arc<ResolvedProvider>>,
    namespace: &str,
    safe_name: &str,
    (input, signal): (Json, CancellationToken),
) -> Result<Json, ExecboxFailure> {
    let called = match provider {
        Some(provider) => provider.call(safe_name, input, signal).await,
        None => None,
    };
    called.unwrap_or_else(|| {
        Err(ExecboxFailure::internal(format!("Unknown tool {namespace}.{safe_name}")))
    })
}
