//! `/enclave/ws`: several sessions on one socket, one JSON object per frame.

use super::reader::{Broken, Reader, Wish};
use super::refused::Refused;
use super::{end, find, opened, settle, start};
use crate::app::App;
use crate::auth::Caller;
use crate::error::Problem;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{BoxStream, SelectAll, SplitSink, SplitStream};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use lifecycle::ExecutionId;
use protocols::enclave::inbound::{self, Frame, ToolResult};
use protocols::enclave::sealing::Envelope;
use protocols::enclave::{Filter, SessionId};
use std::sync::Arc;
use std::time::Duration;

/// Sessions that one socket listens to.
const SESSIONS_MAX: usize = 64;

/// Largest frame: a tool's result in an envelope and in base64.
const FRAME_BYTES_MAX: usize = 24 << 20;

/// `GET /enclave/ws`.
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    caller: Caller,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Problem> {
    caller.may_run().map_err(|denied| Problem::denied(denied, ""))?;
    let token = app.tasks.token();
    let upgrade = upgrade.max_message_size(FRAME_BYTES_MAX).max_frame_size(FRAME_BYTES_MAX);
    Ok(upgrade.on_upgrade(async move |socket| {
        let ended = Arc::clone(&app).connection_end(caller.clone());
        let streams = SelectAll::new();
        tokio::select! {
            () = Conversation { app, caller, streams }.hold(socket) => {}
            () = ended => {}
        }
        drop(token);
    }))
}

/// How long the answer to a Close frame may take.
const CLOSE_MAX: Duration = Duration::from_secs(2);

/// The client closes: the answer, which the library has ready, is sent before the connection ends.
async fn answer_close(mut out: SplitSink<WebSocket, Message>, mut frames: SplitStream<WebSocket>) {
    let answered = async {
        let _ = out.flush().await;
        while let Some(Ok(_)) = frames.next().await {}
    };
    let _ = tokio::time::timeout(CLOSE_MAX, answered).await;
}

struct Conversation {
    app: Arc<App>,
    caller: Caller,
    streams: SelectAll<BoxStream<'static, Result<Bytes, Broken>>>,
}

impl Conversation {
    /// Until the client leaves or the server stops. Sessions go on for their grace.
    async fn hold(mut self, socket: WebSocket) {
        let (mut out, mut frames) = socket.split();
        loop {
            let said = tokio::select! {
                frame = frames.next() => match frame {
                    Some(Ok(Message::Text(text))) => self.hear(text.as_bytes()).await.into(),
                    Some(Ok(Message::Binary(bytes))) => self.hear(&bytes).await.into(),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_))) => return answer_close(out, frames).await,
                    Some(Err(_)) | None => return,
                },
                Some(batch) = self.streams.next() => match batch {
                    Ok(lines) => lines,
                    Err(Broken) => return,
                },
                () = self.app.stopping.cancelled() => return,
            };
            for line in said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let Ok(text) = std::str::from_utf8(line) else { continue };
                if out.feed(Message::Text(text.into())).await.is_err() {
                    return;
                }
            }
            if out.flush().await.is_err() {
                return;
            }
        }
    }

    /// Does what a frame asks for, and says what is to be said at once.
    async fn hear(&mut self, frame: &[u8]) -> Vec<u8> {
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

    async fn act(&mut self, frame: Frame) -> Result<Vec<u8>, Refused> {
        match frame {
            Frame::Execute(create) => {
                self.room()?;
                let filter = create.filter.clone();
                let execution = start(&self.app, &self.caller.name, *create).await?;
                self.listen(execution, Wish { from: 0, filter }).await?;
            }
            Frame::Attach { session, from, filter } => self.attach(&session, from, filter).await?,
            Frame::ToolResult(result) => self.settle(result).await?,
            Frame::Cancel { session, reason } => {
                let found = find(&self.app, &self.caller, session.as_str()).await?;
                if reason.is_some() && found.is_required() {
                    return Err(Refused::in_clear());
                }
                end(&self.app, &self.caller, &found, reason).await?;
            }
            Frame::Sealed(envelope) => self.open(&envelope).await?,
            Frame::Ping => {
                let now = self.app.clock.now().0;
                let pong = serde_json::json!({ "type": "pong", "timestamp": now });
                return Ok(pong.to_string().into_bytes());
            }
        }
        Ok(vec![])
    }

    async fn attach(
        &mut self,
        session: &SessionId,
        from: u64,
        filter: Option<Filter>,
    ) -> Result<(), Refused> {
        self.room()?;
        let found = find(&self.app, &self.caller, session.as_str()).await?;
        self.listen(found.execution, Wish { from, filter }).await
    }

    /// A result may name no session: its call does.
    async fn settle(&mut self, result: ToolResult) -> Result<(), Refused> {
        let found = find(&self.app, &self.caller, &result.execution.to_string()).await?;
        if found.is_required() {
            return Err(Refused::in_clear());
        }
        settle(&self.app, &self.caller, &found, result).await
    }

    /// What is in an envelope: a result or the wish to end.
    async fn open(&mut self, envelope: &Envelope) -> Result<(), Refused> {
        let found = find(&self.app, &self.caller, &envelope.session_id).await?;
        let body = serde_json::to_vec(envelope).unwrap_or_default();
        let opened = opened(&self.app, &found, &body)?.unwrap_or_default();
        match inbound::message(&opened)? {
            inbound::Message::ToolResult(result) => {
                settle(&self.app, &self.caller, &found, result).await
            }
            inbound::Message::Cancel { reason } => {
                end(&self.app, &self.caller, &found, reason).await
            }
        }
    }

    fn room(&self) -> Result<(), Refused> {
        if self.streams.len() < SESSIONS_MAX {
            return Ok(());
        }
        let message = format!("One socket listens to at most {SESSIONS_MAX} sessions.");
        Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_SESSIONS", message))
    }

    async fn listen(&mut self, execution: ExecutionId, wish: Wish) -> Result<(), Refused> {
        // The socket ends with its credential, and its readers with the socket.
        let ended = std::future::pending().boxed();
        let reader = Reader::open(&self.app, execution, wish, ended).await?;
        let reader = reader.ok_or_else(|| Refused::not_found(&execution.to_string()))?;
        self.streams.push(reader.batches().boxed());
        Ok(())
    }
}
