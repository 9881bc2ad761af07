//! Wraps rmcp's sessions, and answers streams that a restart interrupted.
//!
//! A client of a 2025 revision whose stream breaks requests the rest by the id of the last event that it received.
//! After a restart that stream is unknown, and without an answer the client would wait until its own timer expires.
//! Each event id therefore contains the request that its stream answers and the process that sent it. A client that
//! requests the rest of another process's stream receives an answer to that request, which explains what to do.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::{StreamExt as _, future, stream};
use rmcp::model::{
    CallToolResult, ClientJsonRpcMessage, ClientRequest, ContentBlock, ErrorCode, ErrorData,
    NumberOrString, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{
    EventStream, RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};
use serde_json::json;
use std::collections::HashSet;
use std::fmt;

/// JSON-RPC's code for errors of the server, not the client.
const SERVER_ERROR: ErrorCode = ErrorCode(-32_000);

/// The text that a model receives in place of a result that a restart lost.
const LOST_CALL: &str = "The server restarted while this call waited. What was under way goes on and is not lost: \
                         resources/list names the newest executions, and `wait` with such a name gives the result. Do \
                         not run the program again before you looked.";

/// rmcp's sessions, with streams that are answered across a restart.
pub(super) struct NativeSessions {
    local: LocalSessionManager,
    /// Distinguishes this process's streams from those of an earlier one.
    boot: String,
}

impl Default for NativeSessions {
    fn default() -> Self {
        let boot = uuid::Uuid::new_v4().simple().to_string();
        Self { local: LocalSessionManager::default(), boot }
    }
}

/// The request that a stream answers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StreamOrigin {
    boot: String,
    /// Whether the request is a tool call: then a model must be able to react.
    is_call: bool,
    request: NumberOrString,
}

impl fmt::Display for StreamOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = serde_json::to_vec(&self.request).map_err(|_| fmt::Error)?;
        let kind = if self.is_call { 'c' } else { 'r' };
        write!(f, "{}.{kind}.{}", self.boot, URL_SAFE_NO_PAD.encode(id))
    }
}

impl StreamOrigin {
    /// Splits an event id into rmcp's part and this server's. None for events of streams that answer no request.
    fn split(event: &str) -> Option<(String, Self)> {
        let mut parts = event.splitn(4, '.');
        let (inner, boot) = (parts.next()?, parts.next()?);
        let is_call = parts.next()? == "c";
        let id = URL_SAFE_NO_PAD.decode(parts.next()?).ok()?;
        let request = serde_json::from_slice(&id).ok()?;
        Some((inner.to_owned(), Self { boot: boot.to_owned(), is_call, request }))
    }

    /// Adds this origin to the ids of the stream's events.
    fn mark(
        self,
        events: impl stream::Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> EventStream {
        Box::pin(events.map(move |mut event| {
            event.event_id = event.event_id.map(|id| format!("{id}.{self}"));
            event
        }))
    }

    /// The answer to a request whose stream is gone.
    fn lost(self) -> EventStream {
        let event = format!("0.{self}");
        let answer = if self.is_call {
            let mut result =
                CallToolResult::error(vec![ContentBlock::text(format!("Error: {LOST_CALL}"))]);
            result.structured_content = Some(json!({
                "status": "connection_lost",
                "recovery": "read_resources",
                "message": LOST_CALL,
            }));
            let mut result = ServerResult::from(result);
            result.strip_result_type_for_legacy_peer();
            ServerJsonRpcMessage::response(result, self.request)
        } else {
            let message = "the server restarted before it answered; send the request again";
            let error = ErrorData::new(SERVER_ERROR, message, None);
            ServerJsonRpcMessage::error(error, Some(self.request))
        };
        Box::pin(stream::once(future::ready(ServerSseMessage::new(event, answer))))
    }
}

impl NativeSessions {
    /// How many sessions are in memory.
    pub(super) async fn n_open(&self) -> usize {
        self.local.sessions.read().await.len()
    }

    /// The sessions in memory.
    pub(super) async fn open(&self) -> HashSet<SessionId> {
        self.local.sessions.read().await.keys().cloned().collect()
    }

    fn origin(&self, message: &ClientJsonRpcMessage) -> Option<StreamOrigin> {
        let ClientJsonRpcMessage::Request(request) = message else { return None };
        let is_call = matches!(request.request, ClientRequest::CallToolRequest(_));
        Some(StreamOrigin { boot: self.boot.clone(), is_call, request: request.id.clone() })
    }
}

type LocalSessions = <LocalSessionManager as SessionManager>::Error;

#[expect(refining_impl_trait_internal, reason = "one type of stream for those of three kinds")]
impl SessionManager for NativeSessions {
    type Error = LocalSessions;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), LocalSessions> {
        self.local.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, LocalSessions> {
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, LocalSessions> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), LocalSessions> {
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<EventStream, LocalSessions> {
        let origin = self.origin(&message);
        let events = self.local.create_stream(id, message).await?;
        Ok(match origin {
            Some(origin) => origin.mark(events),
            None => Box::pin(events),
        })
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), LocalSessions> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(&self, id: &SessionId) -> Result<EventStream, LocalSessions> {
        Ok(Box::pin(self.local.create_standalone_stream(id).await?))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event: String,
    ) -> Result<EventStream, LocalSessions> {
        match StreamOrigin::split(&last_event) {
            Some((inner, origin)) if origin.boot == self.boot => {
                match self.local.resume(id, inner).await {
                    Ok(events) => Ok(origin.mark(events)),
                    // Its answer was retained for a limited time and is gone.
                    Err(_) => Ok(origin.lost()),
                }
            }
            Some((_, origin)) => Ok(origin.lost()),
            None => match self.local.resume(id, last_event).await {
                Ok(events) => Ok(Box::pin(events)),
                Err(_) => self.create_standalone_stream(id).await,
            },
        }
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, LocalSessions> {
        self.local.restore_session(id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_names_the_request_and_the_process_of_its_stream() {
        for request in [NumberOrString::Number(7), NumberOrString::String("a/b.c".into())] {
            let origin = StreamOrigin { boot: "b".into(), is_call: true, request };
            let event = format!("3/12.{origin}");
            assert_eq!(StreamOrigin::split(&event), Some(("3/12".to_owned(), origin)));
        }
        for other in ["0", "4/2", "a.b", "0.b.c.!", ""] {
            assert_eq!(StreamOrigin::split(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn the_rest_of_another_process_s_stream_is_an_answer_to_its_request() {
        let sessions = NativeSessions::default();
        for is_call in [true, false] {
            let request = NumberOrString::Number(7);
            let origin = StreamOrigin { boot: "earlier".into(), is_call, request };
            let events = sessions.resume(&"s".into(), format!("0/1.{origin}")).await.unwrap();
            let events: Vec<_> = events.collect().await;
            let answer = serde_json::to_value(events[0].message.as_deref()).unwrap();
            assert_eq!((events.len(), &answer["id"]), (1, &json!(7)));
            let told =
                if is_call { &answer["result"]["structuredContent"] } else { &answer["error"] };
            let message = told["message"].as_str().unwrap();
            assert!(message.contains("restarted"), "{answer}");
            assert_eq!(message.contains("Do not run the program again"), is_call);
        }
    }
}
