//! One session of a client: each event is delivered once, also across reconnections.

use super::body_source::BodySource;
use super::error::check_status;
use super::seal::SealedSessionKeys;
use super::{
    CallerTool, EnclaveClient, EnclaveError, EnclaveToolError, SessionRequest, ToolOutcome,
};
use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::FuturesUnordered;
use hyper::Method;
use protocols::enclave::EnclaveSessionId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use transport::{IncomingMessage, LineReader, MessageReader as _, ReceiveError};

/// Longest event that is read.
const LINE_BYTES_MAX: usize = 64 << 20;

/// How a session ended.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEnd {
    /// Whether the program completed.
    pub ok: bool,
    /// Its value, unless it is `undefined`.
    pub result: Option<Value>,
    /// The error of a failed program: `code` and `message`.
    pub error: Option<EnclaveToolError>,
    /// Its resource usage, by enclave's names.
    pub stats: Value,
}

/// One session of a client.
pub struct EnclaveSession {
    client: EnclaveClient,
    id: EnclaveSessionId,
    /// The request that starts it; `None` once it is known to have started.
    start: Option<Vec<u8>>,
    tools: BTreeMap<String, CallerTool>,
    running: FuturesUnordered<BoxFuture<'static, (String, ToolOutcome)>>,
    stream: Option<LineReader<BodySource>>,
    seal: Option<SealedSessionKeys>,
    last: u64,
    n_attempts: u32,
    over: bool,
}

impl EnclaveSession {
    pub(super) fn start(
        client: EnclaveClient,
        request: SessionRequest,
    ) -> Result<Self, EnclaveError> {
        let fresh = || format!("s_{}", uuid::Uuid::new_v4());
        let id = EnclaveSessionId::parse(&request.session_id.unwrap_or_else(fresh))
            .map_err(|bad| EnclaveError::Unusable(bad.to_string()))?;
        let seal = SealedSessionKeys::new(&client.options.encryption, &id)?;
        let mut body = json!({ "sessionId": id.as_str(), "code": request.code });
        if let Some(limits) = request.limits {
            body["limits"] = limits;
        }
        if !request.tools.is_empty() {
            // A server with tools of its own lets callers run only the tools that they name.
            body["tools"] = request.tools.keys().map(String::as_str).collect();
        }
        if let Some(filter) = &client.options.filter {
            body["filter"] = filter.clone();
        }
        if let Some(seal) = &seal {
            body["encryption"] = seal.wanted();
        }
        let mut session = Self::new(client, id, 0);
        session.start = Some(body.to_string().into_bytes());
        (session.tools, session.seal) = (request.tools, seal);
        Ok(session)
    }

    pub(super) fn attach(client: EnclaveClient, id: &str, from: u64) -> Result<Self, EnclaveError> {
        let id =
            EnclaveSessionId::parse(id).map_err(|bad| EnclaveError::Unusable(bad.to_string()))?;
        Ok(Self::new(client, id, from.saturating_sub(1)))
    }

    fn new(client: EnclaveClient, id: EnclaveSessionId, last: u64) -> Self {
        Self {
            client,
            id,
            start: None,
            tools: BTreeMap::new(),
            running: FuturesUnordered::new(),
            stream: None,
            seal: None,
            last,
            n_attempts: 0,
            over: false,
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// Ends the session; its stream then delivers the last event. In a sealed session the reason is sealed too.
    pub async fn cancel(&mut self, reason: Option<&str>) -> Result<(), EnclaveError> {
        let message = json!({ "type": "cancel", "payload": { "reason": reason } });
        let body = match &mut self.seal {
            Some(seal) if seal.is_open() => seal.seal_message(&message)?,
            Some(_) => Vec::new(), // nothing that must be sealed is sent before there are keys
            None => message.to_string().into_bytes(),
        };
        let path = format!("/sessions/{}/cancel", self.id);
        check_status(self.client.send(Method::POST, &path, body).await?).await.map(drop)
    }

    /// Reads to the end of the session and returns its outcome.
    pub async fn ended(mut self) -> Result<SessionEnd, EnclaveError> {
        while let Some(event) = self.next().await {
            let event = event?;
            if event["type"] == "final" {
                return Ok(ended(&event["payload"]));
            }
        }
        Err(EnclaveError::Nonsense("the stream ended without its end".into()))
    }

    /// Returns the next event, each once and in order; `None` after `final` or an error. Tools run while this is awaited.
    pub async fn next(&mut self) -> Option<Result<Value, EnclaveError>> {
        if self.over {
            return None;
        }
        let event = self.advance().await;
        self.over = match &event {
            Ok(event) => event["type"] == "final",
            Err(_) => true,
        };
        Some(event)
    }

    async fn advance(&mut self) -> Result<Value, EnclaveError> {
        loop {
            if self.stream.is_none() {
                self.connect().await?;
            }
            let Some(stream) = &mut self.stream else { continue };
            tokio::select! {
                Some((call, outcome)) = self.running.next() => self.report(&call, outcome).await?,
                line = line(stream) => match line {
                    Ok(line) => if let Some(event) = self.handle_line(&line)? {
                        return Ok(event);
                    },
                    Err(why) => {
                        self.stream = None;
                        self.wait(why).await?;
                    }
                },
            }
        }
    }

    /// Starts the session, or continues its stream after the last event.
    async fn connect(&mut self) -> Result<(), EnclaveError> {
        let answer = match self.start.clone() {
            Some(body) => self.client.send(Method::POST, "/sessions", body).await,
            None => self.client.send(Method::GET, &self.place(), Vec::new()).await,
        };
        let answer = match answer {
            Ok(answer) => check_status(answer).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => {
                self.start = None;
                if let Some(seal) = &mut self.seal {
                    seal.begin_stream();
                }
                let source = BodySource::new(answer.into_body());
                self.stream = Some(LineReader::new(source, LINE_BYTES_MAX));
                Ok(())
            }
            // The first attempt had arrived, but its answer was lost.
            Err(EnclaveError::Refused { status: 409, .. })
                if self.start.is_some() && self.n_attempts > 0 =>
            {
                self.start = None;
                Ok(())
            }
            // The server is stopping or too busy: it will be available again.
            Err(EnclaveError::Refused { status: 503, message, .. }) => self.wait(message).await,
            Err(EnclaveError::Broken(why)) => self.wait(why).await,
            Err(error) => Err(error),
        }
    }

    fn place(&self) -> String {
        let (id, from) = (&self.id, self.last + 1);
        // A sealed session's keys come with its first event.
        let from = if self.seal.as_ref().is_some_and(|_| self.last == 0) { 1 } else { from };
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("from", &from.to_string());
        if let Some(filter) = &self.client.options.filter {
            query.append_pair("filter", &filter.to_string());
        }
        format!("/sessions/{id}/stream?{}", query.finish())
    }

    async fn wait(&mut self, why: String) -> Result<(), EnclaveError> {
        let reconnection = self.client.options.reconnection;
        if !reconnection.enabled || self.n_attempts >= reconnection.attempts_max {
            return Err(EnclaveError::Broken(why));
        }
        tokio::time::sleep(reconnection.delay(self.n_attempts)).await;
        self.n_attempts += 1;
        Ok(())
    }

    /// Returns the event of a line, unless it was received before.
    fn handle_line(&mut self, line: &[u8]) -> Result<Option<Value>, EnclaveError> {
        let nonsense = |error: serde_json::Error| EnclaveError::Nonsense(error.to_string());
        let mut event: Value = serde_json::from_slice(line).map_err(nonsense)?;
        if let Some(seal) = &mut self.seal {
            event = seal.open(event)?;
        }
        self.n_attempts = 0;
        let Some(seq) = event["seq"].as_u64() else {
            return Err(EnclaveError::Nonsense("an event without a number".into()));
        };
        let is_numbered = event["type"] != "heartbeat" && event["type"] != "catalog_changed";
        if is_numbered && seq <= self.last {
            // A reader that starts beyond the last event receives the last event again.
            return Ok((event["type"] == "final" && !self.over).then_some(event));
        }
        self.last = self.last.max(seq);
        if event["type"] == "tool_call" {
            self.run(&event["payload"]);
        }
        Ok(Some(event))
    }

    /// Runs one of the caller's tools; others belong to the server.
    fn run(&mut self, call: &Value) {
        let name = call["toolName"].as_str().unwrap_or_default();
        let Some(tool) = self.tools.get(name) else { return };
        let running = tool(call["args"].clone());
        let id = call["callId"].as_str().unwrap_or_default().to_owned();
        self.running.push(running.map(move |outcome| (id, outcome)).boxed());
    }

    async fn report(&mut self, call: &str, outcome: ToolOutcome) -> Result<(), EnclaveError> {
        let message = match outcome {
            Ok(result) => json!({ "callId": call, "success": true, "result": result }),
            Err(EnclaveToolError { code, message }) => {
                let error = json!({ "code": code, "message": message });
                json!({ "callId": call, "success": false, "error": error })
            }
        };
        let path = format!("/sessions/{}/tool-result", self.id);
        loop {
            let body = match &mut self.seal {
                Some(seal) => seal.seal_message(&message)?,
                None => message.to_string().into_bytes(),
            };
            let answer = self.client.send(Method::POST, &path, body).await;
            let answer = match answer {
                Ok(answer) => check_status(answer).await.map(drop),
                Err(error) => Err(error),
            };
            match answer {
                Ok(()) => return Ok(()),
                // The result had arrived, or the call no longer waits: the stream reports which.
                Err(EnclaveError::Refused { status: 409, .. }) => return Ok(()),
                Err(EnclaveError::Broken(why)) => self.wait(why).await?,
                Err(EnclaveError::Refused { status: 503, message, .. }) => {
                    self.wait(message).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl std::fmt::Debug for EnclaveSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

/// Returns the next non-empty line, or why there is none. Cancel-safe.
async fn line(stream: &mut LineReader<BodySource>) -> Result<Vec<u8>, String> {
    match stream.receive().await {
        Ok(IncomingMessage::Whole(line)) => Ok(line.to_vec()),
        Ok(IncomingMessage::Oversized { size, .. }) => Err(size.to_string()),
        Ok(IncomingMessage::Pong(_)) | Err(ReceiveError::Closed(_)) => {
            Err("the stream ended before its end".into())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn ended(payload: &Value) -> SessionEnd {
    let text = |name: &str| payload["error"][name].as_str().unwrap_or_default().to_owned();
    let error = payload
        .get("error")
        .map(|_| EnclaveToolError { code: text("code"), message: text("message") });
    SessionEnd {
        ok: payload["ok"] == true,
        result: payload.get("result").cloned(),
        error,
        stats: payload["stats"].clone(),
    }
}
