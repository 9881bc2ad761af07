//! Forwards messages between stdio and `/mcp`. rmcp has no such bridge and its HTTP client brings a second HTTP stack; this
//! one forwards bytes, so no part of a message is lost. When the server is gone, the bridge locates it again, or starts
//! it, before it gives a message up.

mod lines;

use super::McpLinkArgs;
use client::{Error, McpClient, McpHead, McpSaid};
use lifecycle::Json;
use lines::{BridgeLine, BridgeMessage, MessageHead};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{RwLock, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// Requests in flight; the next is read when one is answered.
const IN_FLIGHT_MAX: usize = 64;

/// Lines that are buffered for a slow reader of stdout; then reading from the server pauses.
const LINES_WAITING_MAX: usize = 64;

/// How long answers may still arrive after stdin has ended.
const FAREWELL_MAX: Duration = Duration::from_secs(60);

/// JSON-RPC's code for an error of the server.
const SERVER_ERROR: i64 = -32_000;

/// The two ends of the bridge.
struct StdioBridge {
    link: McpLinkArgs,
    /// The server, and the negotiated protocol state.
    far: RwLock<BridgeServer>,
    /// The queue of lines for stdout.
    out: mpsc::Sender<String>,
    /// Requests in flight by their id, so that a client can cancel one.
    under_way: Mutex<HashMap<String, AbortHandle>>,
}

#[derive(Clone)]
struct BridgeServer {
    client: McpClient,
    head: McpHead,
    /// The client's `initialize` message: repeated when a new server does not know the session.
    hello: Option<Json>,
    /// Counts how often the server was located: a request that failed on an older generation need not locate it again.
    generation: u64,
}

/// Forwards messages until stdin ends.
pub(super) async fn run(link: McpLinkArgs) -> Result<(), String> {
    let client = found(&link).await?;
    let far = BridgeServer { client, head: McpHead::default(), hello: None, generation: 0 };
    let (out, lines) = mpsc::channel(LINES_WAITING_MAX);
    let writing = std::thread::spawn(move || write(lines));
    let under_way = Mutex::default();
    let bridge = Arc::new(StdioBridge { link, far: RwLock::new(far), out, under_way });
    let mut read = stdin();
    let mut passing = JoinSet::new();
    while let Some(line) = read.recv().await {
        while passing.len() >= IN_FLIGHT_MAX {
            passing.join_next().await;
        }
        while passing.try_join_next().is_some() {}
        bridge.handle_line(line, &mut passing).await;
    }
    // A client that has closed its output may still read answers.
    let all = async { while passing.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(FAREWELL_MAX, all).await;
    passing.shutdown().await;
    drop(bridge);
    // The thread ends when the last line is written.
    let _ = tokio::task::spawn_blocking(move || writing.join()).await;
    Ok(())
}

/// Lines from stdin, read in a thread: such a read cannot be cancelled.
fn stdin() -> mpsc::Receiver<BridgeLine> {
    let (heard, read) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        // A read error counts as the end of stdin: requests in flight are still answered.
        while let Ok(Some(line)) = lines::next_line(&mut stdin) {
            if heard.blocking_send(line).is_err() {
                break;
            }
        }
    });
    read
}

/// Writes each line with one write. When the reader is gone, the rest is dropped.
fn write(mut lines: mpsc::Receiver<String>) {
    let mut stdout = io::stdout().lock();
    while let Some(line) = lines.blocking_recv() {
        let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    }
}

async fn found(link: &McpLinkArgs) -> Result<McpClient, String> {
    let (query, link) = (link.query(), link.clone());
    let reaching = tokio::task::spawn_blocking(move || link.reach());
    let http = reaching.await.map_err(|panic| panic.to_string())??;
    Ok(McpClient::new(http, &query))
}

impl StdioBridge {
    async fn handle_line(self: &Arc<Self>, line: BridgeLine, under_way: &mut JoinSet<()>) {
        let message = match &line {
            BridgeLine::Whole(line) if line.trim().is_empty() => return,
            BridgeLine::Whole(line) => lines::read(line.trim()),
            BridgeLine::Odd(head, why) => Err(head.refusal_message(lines::NO_REQUEST, why)),
        };
        let message = match message {
            Ok(message) => message,
            Err(answer) => return self.write_line(&answer).await,
        };
        if let Some(id) = &message.called_off {
            self.call_off(id);
        }
        let head = message.head.clone();
        let passing = Arc::clone(self).pass(message);
        if !head.asks() || head.method == "initialize" {
            // Later messages may depend on it.
            passing.await;
        } else {
            let handle = under_way.spawn(passing);
            let mut calls = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
            calls.retain(|_, call| !call.is_finished());
            calls.insert(head.id.to_string(), handle);
        }
    }

    /// Drops a cancelled request. Its execution continues.
    fn call_off(&self, id: &Value) {
        let mut calls = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = calls.remove(&id.to_string()) {
            call.abort();
        }
    }

    /// Forwards one message, and its answers in return.
    async fn pass(self: Arc<Self>, message: BridgeMessage) {
        let relayed = match self.sent(&message.text, &message.head.method).await {
            Ok(said) => self.relay(said, &message).await,
            Err(why) => Err(ForwardError::Lost(why)),
        };
        if let Err(no) = relayed
            && message.head.asks()
        {
            self.write_line(&no.error_response(&message.head)).await;
        }
    }

    /// Sends a message, and locates the server once more where it is gone or has lost the session. A message that the
    /// server may have received is not sent twice.
    async fn sent(&self, message: &Json, method: &str) -> Result<McpSaid, String> {
        let far = self.far.read().await.clone();
        let head = if method == "initialize" { McpHead::default() } else { far.head.clone() };
        let said = far.client.post(message, &head).await;
        let why = match said {
            Ok(said) if said.status != 404 || head.session.is_none() => return Ok(said),
            Ok(_) => "the session is gone".to_owned(),
            Err(
                error @ (Error::CannotConnect { .. }
                | Error::Unproven { .. }
                | Error::Unauthorised { .. }),
            ) => error.to_string(),
            Err(error) => return Err(error.to_string()),
        };
        tracing::debug!(target: "mcp", why, "looking for the server");
        let far = self.renewed(far.generation).await?;
        let head = if method == "initialize" { McpHead::default() } else { far.head.clone() };
        far.client.post(message, &head).await.map_err(|error| error.to_string())
    }

    /// Returns the present server, after repeating the handshake if necessary.
    async fn renewed(&self, failed: u64) -> Result<BridgeServer, String> {
        let mut far = self.far.write().await;
        if far.generation > failed {
            return Ok(far.clone());
        }
        far.client = found(&self.link).await?;
        far.generation += 1;
        if let (Some(hello), Some(_)) = (far.hello.clone(), far.head.session.take()) {
            let said = far.client.post(&hello, &McpHead::default()).await;
            let mut said = said.map_err(|error| error.to_string())?;
            far.head.session = said.session.take();
            while said.next().await?.is_some() {} // the client already has this answer
            let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            let ready = Json::from_value(&ready).map_err(|error| error.to_string())?;
            far.client.post(&ready, &far.head).await.map_err(|error| error.to_string())?;
        }
        Ok(far.clone())
    }

    /// Forwards the server's messages one by one.
    async fn relay(&self, mut said: McpSaid, message: &BridgeMessage) -> Result<(), ForwardError> {
        let MessageHead { id, method } = &message.head;
        let mut is_answered = !message.head.asks();
        while let Some(text) = said.next().await.map_err(ForwardError::Lost)? {
            let value = lines::glance(&text);
            if value["jsonrpc"] != "2.0" {
                // A refusal that is not a JSON-RPC message: from the server's guard, or from a proxy.
                let why = value["message"].as_str().unwrap_or(&text).to_owned();
                return if is_answered {
                    Ok(())
                } else {
                    Err(ForwardError::from_status(said.status, why))
                };
            }
            if method == "initialize" && value["result"].is_object() {
                let mut far = self.far.write().await;
                let version = value["result"]["protocolVersion"].as_str().map(str::to_owned);
                far.head = McpHead { session: said.session.clone(), version };
                far.hello = Some(message.text.clone());
            }
            if !is_answered && value["id"].is_null() && value["error"].is_object() {
                // The server could not read the id of the request.
                let code = value["error"]["code"].as_i64().unwrap_or(SERVER_ERROR);
                let why = value["error"]["message"].as_str().unwrap_or_default();
                self.write_line(&lines::error(id, code, why)).await;
                return Ok(());
            }
            is_answered |= value["id"] == *id && value["method"].is_null();
            // JSON strings contain no raw line breaks, and elsewhere they have no meaning: the text is forwarded unchanged.
            self.write_line(&text).await;
        }
        let ended = || ForwardError::Lost("the server ended the conversation".into());
        if is_answered { Ok(()) } else { Err(ended()) }
    }

    async fn write_line(&self, line: &str) {
        let line = format!("{}\n", line.replace(['\n', '\r'], " "));
        // An error here means that stdout is closed, so it cannot be reported.
        let _ = self.out.send(line).await;
    }
}

/// Why the server gave no answer to a request.
enum ForwardError {
    /// The server rejected the request before it started anything.
    Refused { status: u16, why: String },
    /// The server may have received it.
    Lost(String),
}

impl ForwardError {
    /// An internal error may have happened after the request had started.
    fn from_status(status: u16, why: String) -> Self {
        match status {
            400..=499 | 503 => Self::Refused { status, why },
            _ => Self::Lost(format!("{status} {why}")),
        }
    }

    /// The message that replaces the answer. A failed tool call becomes a result, so that a model can react.
    fn error_response(&self, head: &MessageHead) -> String {
        let is_call = head.method == "tools/call";
        match self {
            Self::Refused { status: 503, why } if is_call => {
                let text = format!("Error: {why} Nothing was started. Try again in a moment.");
                lines::failed(&head.id, &text, "server_unavailable", "retry")
            }
            Self::Lost(why) if is_call => {
                let text = format!(
                    "Error: the connection to the server broke ({why}). What was under way goes on there and is not \
                     lost: resources/list names it, and so does `airlock executions`. Do not run the program again \
                     before you looked."
                );
                lines::failed(&head.id, &text, "connection_lost", "read_resources")
            }
            Self::Refused { status: 503, why } | Self::Lost(why) => {
                lines::error(&head.id, SERVER_ERROR, why)
            }
            Self::Refused { why, .. } => {
                let why = why.trim_end_matches('.');
                head.refusal_message(SERVER_ERROR, &format!("the server refused this: {why}"))
            }
        }
    }
}
