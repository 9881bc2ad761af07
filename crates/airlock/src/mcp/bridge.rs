//! Messages between stdio and `/mcp`. rmcp has no such bridge and its HTTP client brings a second HTTP
//! stack; what is passed on here is bytes, so nothing that either side says is lost on the way. A
//! server that went away is looked for, or started again, before a message is given up.

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

/// Requests under way at a time; the next is read when one is answered.
const IN_FLIGHT_MAX: usize = 64;

/// Lines that wait for a slow reader of stdout; then the server waits.
const LINES_WAITING_MAX: usize = 64;

/// How long answers may still come after stdin has ended.
const FAREWELL_MAX: Duration = Duration::from_secs(60);

/// JSON-RPC's code for what the server, not the client, got wrong.
const SERVER_ERROR: i64 = -32_000;

/// Both ends.
struct StdioBridge {
    link: McpLinkArgs,
    /// The server, and what was agreed upon with it.
    far: RwLock<BridgeServer>,
    /// Lines on their way to stdout.
    out: mpsc::Sender<String>,
    /// Requests under way by their id, so that a client can call one off.
    under_way: Mutex<HashMap<String, AbortHandle>>,
}

#[derive(Clone)]
struct BridgeServer {
    client: McpClient,
    head: McpHead,
    /// What opened the conversation: said again where a new server does not know it.
    hello: Option<Json>,
    /// How often it was looked for: who failed on an older one need not look again.
    generation: u64,
}

/// Passes messages on until stdin ends.
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
    // A client that wrote all it had to say may still read.
    let all = async { while passing.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(FAREWELL_MAX, all).await;
    passing.shutdown().await;
    drop(bridge);
    // It ends when the last line is written.
    let _ = tokio::task::spawn_blocking(move || writing.join()).await;
    Ok(())
}

/// Lines from stdin, read in a thread: such a read cannot be called off.
fn stdin() -> mpsc::Receiver<BridgeLine> {
    let (heard, read) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        // A stdin that breaks has ended: what is under way is answered all the same.
        while let Ok(Some(line)) = lines::next_line(&mut stdin) {
            if heard.blocking_send(line).is_err() {
                break;
            }
        }
    });
    read
}

/// One write per line. When nobody reads any more, the rest is dropped.
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
            // What follows may depend on it.
            passing.await;
        } else {
            let handle = under_way.spawn(passing);
            let mut calls = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
            calls.retain(|_, call| !call.is_finished());
            calls.insert(head.id.to_string(), handle);
        }
    }

    /// Nobody waits for this answer any more. The execution goes on.
    fn call_off(&self, id: &Value) {
        let mut calls = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = calls.remove(&id.to_string()) {
            call.abort();
        }
    }

    /// Passes one message on, and back what is said to it.
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

    /// Sends, and looks for the server once more where it is gone or has forgotten us. What it may have
    /// heard already is not sent twice.
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

    /// The server as it is now, introduced to if need be.
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
            while said.next().await?.is_some() {} // the client has heard it before
            let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            let ready = Json::from_value(&ready).map_err(|error| error.to_string())?;
            far.client.post(&ready, &far.head).await.map_err(|error| error.to_string())?;
        }
        Ok(far.clone())
    }

    /// What the server says, message by message.
    async fn relay(&self, mut said: McpSaid, message: &BridgeMessage) -> Result<(), ForwardError> {
        let MessageHead { id, method } = &message.head;
        let mut is_answered = !message.head.asks();
        while let Some(text) = said.next().await.map_err(ForwardError::Lost)? {
            let value = lines::glance(&text);
            if value["jsonrpc"] != "2.0" {
                // A "no" that is no message: from the guard, or from something in between.
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
                // It could not read whom it answers.
                let code = value["error"]["code"].as_i64().unwrap_or(SERVER_ERROR);
                let why = value["error"]["message"].as_str().unwrap_or_default();
                self.write_line(&lines::error(id, code, why)).await;
                return Ok(());
            }
            is_answered |= value["id"] == *id && value["method"].is_null();
            // Outside of strings a line end is nothing, and inside there is none: the text is passed on as it is.
            self.write_line(&text).await;
        }
        let ended = || ForwardError::Lost("the server ended the conversation".into());
        if is_answered { Ok(()) } else { Err(ended()) }
    }

    async fn write_line(&self, line: &str) {
        let line = format!("{}\n", line.replace(['\n', '\r'], " "));
        // Nobody is there to hear that stdout is closed.
        let _ = self.out.send(line).await;
    }
}

/// Why a request has no answer of the server's own.
enum ForwardError {
    /// The server took it for nothing: nothing was begun.
    Refused { status: u16, why: String },
    /// It may have been heard.
    Lost(String),
}

impl ForwardError {
    /// Whoever breaks may have begun.
    fn from_status(status: u16, why: String) -> Self {
        match status {
            400..=499 | 503 => Self::Refused { status, why },
            _ => Self::Lost(format!("{status} {why}")),
        }
    }

    /// What is said instead of an answer. To a call of a tool a model must be able to react.
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
