//! Messages between stdio and `/mcp`. rmcp has no such bridge and its HTTP client brings a second HTTP
//! stack; what is passed on here is bytes, so nothing that either side says is lost on the way. A
//! server that went away is looked for, or started again, before a message is given up.

use super::Link;
use client::{Error, McpClient, McpHead, McpSaid};
use lifecycle::Json;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, BufRead, Read as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{RwLock, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// Longest message from a client: as long as the server takes, and room for JSON around it.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// Requests under way at a time; the next is read when one is answered.
const IN_FLIGHT_MAX: usize = 64;

/// Lines that wait for a slow reader of stdout; then the server waits.
const LINES_WAITING_MAX: usize = 64;

/// How long answers may still come after stdin has ended.
const FAREWELL_MAX: Duration = Duration::from_secs(60);

/// JSON-RPC's code for what the server, not the client, got wrong.
const SERVER_ERROR: i64 = -32_000;

/// Both ends.
struct Bridge {
    link: Link,
    /// The server, and what was agreed upon with it.
    far: RwLock<Far>,
    /// Lines on their way to stdout.
    out: mpsc::Sender<String>,
    /// Requests under way by their id, so that a client can call one off.
    under_way: Mutex<HashMap<String, AbortHandle>>,
}

#[derive(Clone)]
struct Far {
    client: McpClient,
    head: McpHead,
    /// What opened the conversation: said again where a new server does not know it.
    hello: Option<Json>,
    /// How often it was looked for: who failed on an older one need not look again.
    generation: u64,
}

/// Passes messages on until stdin ends.
pub(super) async fn run(link: Link) -> Result<(), String> {
    let client = found(&link).await?;
    let far = Far { client, head: McpHead::default(), hello: None, generation: 0 };
    let (out, lines) = mpsc::channel(LINES_WAITING_MAX);
    let writing = std::thread::spawn(move || write(lines));
    let under_way = Mutex::default();
    let bridge = Arc::new(Bridge { link, far: RwLock::new(far), out, under_way });
    let mut read = stdin();
    let mut passing = JoinSet::new();
    while let Some(line) = read.recv().await {
        while passing.len() >= IN_FLIGHT_MAX {
            passing.join_next().await;
        }
        while passing.try_join_next().is_some() {}
        bridge.hear(&line?, &mut passing).await;
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
fn stdin() -> mpsc::Receiver<Result<String, String>> {
    let (lines, read) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Some(line) = next_line(&mut stdin).transpose() {
            let is_broken = line.is_err();
            if lines.blocking_send(line).is_err() || is_broken {
                break;
            }
        }
    });
    read
}

/// A line; none at the end. One that is too long ends the conversation: nobody could answer it.
fn next_line(from: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut line = String::new();
    let n_bytes = from.take(LINE_BYTES_MAX).read_line(&mut line).map_err(|e| e.to_string())?;
    match n_bytes as u64 {
        0 => Ok(None),
        LINE_BYTES_MAX if !line.ends_with('\n') => {
            Err(format!("a message has more than {LINE_BYTES_MAX} bytes"))
        }
        _ => Ok(Some(line)),
    }
}

/// One write per line. When nobody reads any more, the rest is dropped.
fn write(mut lines: mpsc::Receiver<String>) {
    let mut stdout = io::stdout().lock();
    while let Some(line) = lines.blocking_recv() {
        let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    }
}

async fn found(link: &Link) -> Result<McpClient, String> {
    let (query, link) = (link.query(), link.clone());
    let reaching = tokio::task::spawn_blocking(move || link.reach());
    let http = reaching.await.map_err(|panic| panic.to_string())??;
    Ok(McpClient::new(http, &query))
}

impl Bridge {
    async fn hear(self: &Arc<Self>, line: &str, under_way: &mut JoinSet<()>) {
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        let Ok(message) = Json::parse(line.to_owned()) else {
            self.say(&error(&Value::Null, -32_700, "this is not JSON")).await;
            return;
        };
        let looked_at: Value = serde_json::from_str(message.text()).unwrap_or_default();
        let id = looked_at["id"].clone();
        let method = looked_at["method"].as_str().unwrap_or_default().to_owned();
        if method == "notifications/cancelled" {
            self.call_off(&looked_at["params"]["requestId"]);
        }
        let passing = Arc::clone(self).pass(message, id.clone(), method.clone());
        if id.is_null() || method.is_empty() || method == "initialize" {
            // What follows may depend on it.
            passing.await;
        } else {
            let handle = under_way.spawn(passing);
            let mut calls = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
            calls.retain(|_, call| !call.is_finished());
            calls.insert(id.to_string(), handle);
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
    async fn pass(self: Arc<Self>, message: Json, id: Value, method: String) {
        let said = match self.sent(&message, &method).await {
            Ok(said) => said,
            Err(why) => {
                if !id.is_null() && !method.is_empty() {
                    self.say(&lost(&id, &method, &why)).await;
                }
                return;
            }
        };
        if let Err(why) = self.relay(said, &message, &id, &method).await {
            self.say(&lost(&id, &method, &why)).await;
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
            Err(error @ (Error::CannotConnect { .. } | Error::Unauthorised { .. })) => {
                error.to_string()
            }
            Err(error) => return Err(error.to_string()),
        };
        tracing::debug!(target: "mcp", why, "looking for the server");
        let far = self.renewed(far.generation).await?;
        let head = if method == "initialize" { McpHead::default() } else { far.head.clone() };
        far.client.post(message, &head).await.map_err(|error| error.to_string())
    }

    /// The server as it is now, introduced to if need be.
    async fn renewed(&self, failed: u64) -> Result<Far, String> {
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
    async fn relay(
        &self,
        mut said: McpSaid,
        message: &Json,
        id: &Value,
        method: &str,
    ) -> Result<(), String> {
        let mut is_answered = id.is_null() || method.is_empty();
        while let Some(text) = said.next().await? {
            let Ok(value) = serde_json::from_str::<Value>(&text) else {
                // A "no" that is no message: from the guard, or from something in between.
                return if is_answered { Ok(()) } else { Err(format!("{} {text}", said.status)) };
            };
            if value["jsonrpc"] != "2.0" {
                let why = value["message"].as_str().unwrap_or(&text).to_owned();
                return if is_answered { Ok(()) } else { Err(why) };
            }
            if method == "initialize" && value["result"].is_object() {
                let mut far = self.far.write().await;
                let version = value["result"]["protocolVersion"].as_str().map(str::to_owned);
                far.head = McpHead { session: said.session.clone(), version };
                far.hello = Some(message.clone());
            }
            is_answered |= value["id"] == *id && value["method"].is_null();
            // Outside of strings a line end is nothing, and inside there is none: the text is passed on as it is.
            self.say(&text).await;
        }
        if is_answered { Ok(()) } else { Err("the server ended the conversation".into()) }
    }

    async fn say(&self, line: &str) {
        let line = format!("{}\n", line.replace(['\n', '\r'], " "));
        // Nobody is there to hear that stdout is closed.
        let _ = self.out.send(line).await;
    }
}

fn error(id: &Value, code: i64, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}

/// What is said where the server went away. To a call of a tool a model must be able to react.
fn lost(id: &Value, method: &str, why: &str) -> String {
    if method != "tools/call" {
        return error(id, SERVER_ERROR, why);
    }
    let text = format!(
        "Error: the connection to the server broke ({why}). What was under way goes on there and is not lost: \
         resources/list names it, and so does `airlock executions`. Do not run the program again before you looked."
    );
    let structured = json!({ "status": "connection_lost", "recovery": "read_resources" });
    json!({ "jsonrpc": "2.0", "id": id, "result": {
        "content": [{ "type": "text", "text": text }], "structuredContent": structured, "isError": true,
    } })
    .to_string()
}
