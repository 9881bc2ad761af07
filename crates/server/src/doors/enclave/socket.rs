//! `/enclave/ws`: several sessions on one socket, one JSON object per frame.

use super::EnclaveState;
use super::follow::{ReaderOptions, SessionReader, StreamBroken};
use super::inbound::{end_session, find, opened, settle_call, start};
use super::refusals::EnclaveRequestError;
use crate::auth::Caller;
use crate::error::RequestError;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{BoxStream, SelectAll};
use futures_util::{FutureExt as _, StreamExt as _};
use lifecycle::ExecutionId;
use protocols::enclave::inbound::{self, CallerToolResult, SocketFrame};
use protocols::enclave::sealing::SealedEnvelope;
use protocols::enclave::{EnclaveSessionId, EventFilter};
use std::sync::Arc;
use transport::{
    CLOSE_TIME_MAX, CloseReason, FrameBounds, IncomingMessage, MessageReader, MessageWriter,
    accept_upgrade,
};

/// Maximum number of sessions that one socket follows.
const SESSIONS_MAX: usize = 64;

/// Maximum size of a frame: a tool's result in an envelope and in base64.
const FRAME_BYTES_MAX: usize = 24 << 20;

/// Maximum number of bytes that a client has not read. Above this, neither it nor its sessions are read.
const UNSENT_BYTES_MAX: usize = 1 << 20;

/// `GET /enclave/ws`.
pub(crate) async fn open(
    State(door): State<EnclaveState>,
    caller: Caller,
    upgrade: WebSocketUpgrade,
) -> Result<Response, RequestError> {
    caller.may_run().map_err(|denied| RequestError::denied(denied, ""))?;
    let token = door.app.tasks.token();
    let bounds = FrameBounds::strict(FRAME_BYTES_MAX);
    Ok(accept_upgrade(upgrade, bounds, async move |reader, writer| {
        let (watching, owner) = (Arc::clone(&door.app), caller.clone());
        let ended = async move { watching.credential_end(&owner).await };
        let streams = SelectAll::new();
        tokio::select! {
            () = SocketConversation { door, caller, streams }.hold(reader, writer) => {}
            () = ended => {}
        }
        drop(token);
    }))
}

struct SocketConversation {
    door: EnclaveState,
    caller: Caller,
    streams: SelectAll<BoxStream<'static, Result<Bytes, StreamBroken>>>,
}

impl SocketConversation {
    /// Runs until the client leaves or the server stops. Its sessions continue for their grace period.
    async fn hold(mut self, mut reader: impl MessageReader, mut writer: impl MessageWriter) {
        loop {
            let unsent = writer.unsent().bytes;
            let is_full = unsent > UNSENT_BYTES_MAX;
            let said = tokio::select! {
                received = reader.receive(), if !is_full => match received {
                    Ok(IncomingMessage::Whole(frame)) => self.handle_frame(frame).await.into(),
                    Ok(IncomingMessage::Pong(_)) => continue,
                    Ok(IncomingMessage::Oversized { .. }) | Err(_) => return,
                },
                Some(batch) = self.streams.next(), if !is_full => match batch {
                    Ok(lines) => lines,
                    Err(StreamBroken) => return,
                },
                sent = writer.flush(), if unsent > 0 => match sent {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                () = self.door.app.stopping.cancelled() => break,
            };
            for line in said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                if let Ok(text) = String::from_utf8(line.to_vec()) {
                    writer.enqueue(text);
                }
            }
        }
        transport::close(&mut reader, &mut writer, Some(CloseReason::AWAY), CLOSE_TIME_MAX).await;
    }

    /// Performs the request in a frame, and returns what is to be sent immediately.
    async fn handle_frame(&mut self, frame: &[u8]) -> Vec<u8> {
        let done = match inbound::frame(frame) {
            Ok(frame) => self.act(frame).await,
            Err(refusal) => Err(refusal.into()),
        };
        done.unwrap_or_else(|refused| {
            let (code, message) = refused.words();
            serde_json::json!({ "type": "error", "code": code, "message": message })
                .to_string()
                .into_bytes()
        })
    }

    async fn act(&mut self, frame: SocketFrame) -> Result<Vec<u8>, EnclaveRequestError> {
        match frame {
            SocketFrame::Execute(create) => {
                self.room()?;
                let filter = create.filter.clone();
                let execution = start(&self.door, &self.caller.name, *create).await?;
                self.listen(execution, ReaderOptions { from: 0, filter }).await?;
            }
            SocketFrame::Attach { session, from, filter } => {
                self.attach(&session, from, filter).await?
            }
            SocketFrame::ToolResult(result) => self.settle_call(result).await?,
            SocketFrame::Cancel { session, reason } => {
                let found = find(&self.door, &self.caller, session.as_str()).await?;
                if reason.is_some() && found.is_required() {
                    return Err(EnclaveRequestError::in_clear());
                }
                end_session(&self.door, &self.caller, &found, reason).await?;
            }
            SocketFrame::Sealed(envelope) => self.open(&envelope).await?,
            SocketFrame::Ping => {
                let now = self.door.app.clock.now().0;
                let pong = serde_json::json!({ "type": "pong", "timestamp": now });
                return Ok(pong.to_string().into_bytes());
            }
        }
        Ok(vec![])
    }

    async fn attach(
        &mut self,
        session: &EnclaveSessionId,
        from: u64,
        filter: Option<EventFilter>,
    ) -> Result<(), EnclaveRequestError> {
        self.room()?;
        let found = find(&self.door, &self.caller, session.as_str()).await?;
        self.listen(found.execution, ReaderOptions { from, filter }).await
    }

    /// A result may name no session, because its call identifies it.
    async fn settle_call(&mut self, result: CallerToolResult) -> Result<(), EnclaveRequestError> {
        let found = find(&self.door, &self.caller, &result.execution.to_string()).await?;
        if found.is_required() {
            return Err(EnclaveRequestError::in_clear());
        }
        settle_call(&self.door, &self.caller, &found, result).await
    }

    /// Opens an envelope: a result or a request to cancel.
    async fn open(&mut self, envelope: &SealedEnvelope) -> Result<(), EnclaveRequestError> {
        let found = find(&self.door, &self.caller, &envelope.session_id).await?;
        let body = serde_json::to_vec(envelope).unwrap_or_default();
        let opened = opened(&self.door, &found, &body)?.unwrap_or_default();
        match inbound::message(&opened)? {
            inbound::SealedMessage::ToolResult(result) => {
                settle_call(&self.door, &self.caller, &found, result).await
            }
            inbound::SealedMessage::Cancel { reason } => {
                end_session(&self.door, &self.caller, &found, reason).await
            }
        }
    }

    fn room(&self) -> Result<(), EnclaveRequestError> {
        if self.streams.len() < SESSIONS_MAX {
            return Ok(());
        }
        let message = format!("One socket listens to at most {SESSIONS_MAX} sessions.");
        Err(EnclaveRequestError::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_SESSIONS", message))
    }

    async fn listen(
        &mut self,
        execution: ExecutionId,
        wish: ReaderOptions,
    ) -> Result<(), EnclaveRequestError> {
        // The socket ends with its credential, and its readers with the socket.
        let ended = std::future::pending().boxed();
        let reader = SessionReader::open(&self.door, execution, wish, ended).await?;
        let reader =
            reader.ok_or_else(|| EnclaveRequestError::not_found(&execution.to_string()))?;
        self.streams.push(reader.batches().boxed());
        Ok(())
    }
}
