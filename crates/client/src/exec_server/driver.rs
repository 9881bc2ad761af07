//! The task of a client: sends requests, receives messages, and reconnects when the connection breaks.

use super::ExecServerError;
use super::events::{ExecServerEvent, ReceivedOutput};
use super::link::{self, ExecServerLink};
use crate::ServerToken;
use protocols::exec_server::{
    AttachResponse, ExecClosedNotification, ExecExitedNotification, ExecOutputDeltaNotification,
    InitializeParams, InitializeResponse, ReadResponse,
};
use protocols::json_rpc::{self, RpcId, RpcMessage};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::Instant;

/// How long the client tries to resume its session: a little less than servers retain it, which codex 0.169 does for
/// about 80 seconds.
const RESUME_TIME_MAX: Duration = Duration::from_secs(75);

/// Delay between two attempts to resume.
const RESUME_EVERY: Duration = Duration::from_millis(100);

/// How a client got its connection, and whether it can be opened again.
#[derive(Debug, Clone)]
pub(super) enum ConnectionSource {
    /// It cannot be opened again.
    Once,
    /// A WebSocket at this URL.
    WebSocket { url: String, token: Option<ServerToken>, timeout: Duration },
}

/// A request to the driver.
pub(super) struct DriverRequest {
    pub(super) method: &'static str,
    pub(super) params: serde_json::Value,
    /// Whether it may be sent again when its outcome is unknown.
    pub(super) is_repeatable: bool,
    pub(super) answer: oneshot::Sender<Result<Box<RawValue>, ExecServerError>>,
}

/// A message from a client to its driver.
pub(super) enum DriverCommand {
    Ask(DriverRequest),
    /// Registers a receiver that must get every event.
    Listen(mpsc::Sender<ExecServerEvent>),
}

pub(super) struct ExecServerDriver {
    pub(super) link: ExecServerLink,
    pub(super) way: ConnectionSource,
    pub(super) hello: InitializeOptions,
    pub(super) session_id: Option<String>,
    pub(super) told: mpsc::Receiver<DriverCommand>,
    pub(super) broadcast: broadcast::Sender<ExecServerEvent>,
    pub(super) listeners: Vec<mpsc::Sender<ExecServerEvent>>,
    pub(super) heard: ReceivedOutput,
    pub(super) open: BTreeMap<i64, DriverRequest>,
    /// Reads that recover missed output, by the process that they are about.
    pub(super) catching_up: BTreeMap<i64, String>,
    pub(super) next_id: i64,
}

/// How a client introduces itself.
#[derive(Debug, Clone)]
pub(super) struct InitializeOptions {
    pub(super) client_name: String,
    pub(super) timeout: Duration,
}

impl ExecServerDriver {
    /// Runs until the client is dropped or the connection is lost permanently.
    pub(super) async fn run(mut self) {
        loop {
            let is_wanted = self.run_until_closed().await;
            if !is_wanted || !self.come_back().await {
                break;
            }
        }
        for (_, asked) in std::mem::take(&mut self.open) {
            let _ = asked.answer.send(Err(ExecServerError::Closed));
        }
    }

    /// Serves one connection; returns whether to open another.
    async fn run_until_closed(&mut self) -> bool {
        loop {
            tokio::select! {
                text = self.link.incoming.recv() => match text {
                    Some(text) => if self.handle_text(&text).await.is_err() { return true },
                    None => return true,
                },
                told = self.told.recv() => match told {
                    Some(DriverCommand::Ask(asked)) => if !self.send_request(asked).await { return true },
                    Some(DriverCommand::Listen(listener)) => self.listeners.push(listener),
                    None => return false,
                },
            }
        }
    }

    async fn send_request(&mut self, asked: DriverRequest) -> bool {
        if asked.method == "process/start"
            && let Some(id) = asked.params["processId"].as_str()
        {
            self.heard.begin_process(id);
        }
        let id = self.number();
        let text = json_rpc::request(&RpcId::Number(id), asked.method, &asked.params);
        self.open.insert(id, asked);
        self.link.outgoing.send(text).await.is_ok()
    }

    const fn number(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    async fn handle_text(&mut self, text: &str) -> Result<(), ExecServerError> {
        let message = json_rpc::read(text).map_err(ExecServerError::Protocol)?;
        match message {
            RpcMessage::Notification { method, params } => {
                if let Some(event) = event(&method, params)? {
                    let due = self.heard.handle_event(event);
                    self.publish(due).await;
                }
            }
            RpcMessage::Response { id: RpcId::Number(id), result } => {
                if let Some(process_id) = self.catching_up.remove(&id) {
                    if let Ok(raw) = result {
                        let read: ReadResponse = serde_json::from_str(raw.get())?;
                        let due = self.heard.catch_up(&process_id, read);
                        self.publish(due).await;
                    }
                } else if let Some(asked) = self.open.remove(&id) {
                    if let (true, Ok(raw)) = (asked.method == "process/attach", &result) {
                        let attached: AttachResponse = serde_json::from_str(raw.get())?;
                        self.heard.begin_after(&attached.process_id, attached.seq);
                    }
                    let result = result.map(ToOwned::to_owned).map_err(|error| {
                        ExecServerError::Server { code: error.code, message: error.message }
                    });
                    // The caller may have dropped its receiver.
                    let _ = asked.answer.send(result);
                }
            }
            // An error that belongs to no request.
            RpcMessage::Response { .. } => {}
            RpcMessage::Request { id, .. } => {
                let error = json_rpc::ErrorObject::new(
                    json_rpc::METHOD_NOT_FOUND,
                    "this client answers no requests",
                );
                let _ =
                    self.link.outgoing.send(json_rpc::response_line::<()>(&id, Err(&error))).await;
            }
        }
        Ok(())
    }

    /// Waits for the receivers that must get every event; the others may miss some.
    async fn publish(&mut self, events: Vec<ExecServerEvent>) {
        for event in events {
            for listener in &self.listeners {
                // A receiver that is gone is removed below.
                let _ = listener.send(event.clone()).await;
            }
            self.listeners.retain(|listener| !listener.is_closed());
            let _ = self.broadcast.send(event);
        }
    }

    /// Opens a new connection to the same session; returns whether that succeeded.
    async fn come_back(&mut self) -> bool {
        let (ConnectionSource::WebSocket { url, token, timeout }, Some(session)) =
            (self.way.clone(), self.session_id.clone())
        else {
            return false;
        };
        let give_up_at = Instant::now() + RESUME_TIME_MAX;
        loop {
            // Every clone of the client was dropped, or the server no longer retains the session.
            if self.told.is_closed() || Instant::now() > give_up_at {
                return false;
            }
            if let Ok(mut link) = link::web_socket(&url, token.as_ref(), timeout).await {
                match greet(&mut link, &self.hello, Some(session.clone())).await {
                    Ok(_) => {
                        self.link = link;
                        return self.recover().await;
                    }
                    // The server may not have noticed yet that the old connection broke.
                    Err(ExecServerError::Server { code, .. })
                        if code != protocols::exec_server::SESSION_ATTACHED =>
                    {
                        return false;
                    }
                    Err(_) => {}
                }
            }
            tokio::time::sleep(RESUME_EVERY).await;
        }
    }

    /// Reads missed output and repeats unanswered requests.
    async fn recover(&mut self) -> bool {
        self.catching_up.clear();
        for (process_id, last) in self.heard.open() {
            let id = self.number();
            let params = json!({"processId": process_id, "afterSeq": last, "waitMs": 0});
            self.catching_up.insert(id, process_id);
            let text = json_rpc::request(&RpcId::Number(id), "process/read", &params);
            if self.link.outgoing.send(text).await.is_err() {
                return true;
            }
        }
        for (_, asked) in std::mem::take(&mut self.open) {
            if !asked.is_repeatable {
                let _ = asked.answer.send(Err(ExecServerError::Closed));
            } else if !self.send_request(asked).await {
                return true;
            }
        }
        true
    }
}

fn event(
    method: &str,
    params: Option<&RawValue>,
) -> Result<Option<ExecServerEvent>, ExecServerError> {
    let text = params.map_or("null", RawValue::get);
    Ok(Some(match method {
        "process/output" => {
            ExecServerEvent::OutputDelta(serde_json::from_str::<ExecOutputDeltaNotification>(text)?)
        }
        "process/exited" => {
            ExecServerEvent::Exited(serde_json::from_str::<ExecExitedNotification>(text)?)
        }
        "process/closed" => {
            ExecServerEvent::Closed(serde_json::from_str::<ExecClosedNotification>(text)?)
        }
        // Servers may send messages that we do not know.
        _ => return Ok(None),
    }))
}

/// The handshake.
pub(super) async fn greet(
    link: &mut ExecServerLink,
    hello: &InitializeOptions,
    resume: Option<String>,
) -> Result<InitializeResponse, ExecServerError> {
    let late = |_| ExecServerError::InitializeTimedOut { timeout: hello.timeout };
    tokio::time::timeout(hello.timeout, shake_hands(link, hello, resume)).await.map_err(late)?
}

async fn shake_hands(
    link: &mut ExecServerLink,
    hello: &InitializeOptions,
    resume: Option<String>,
) -> Result<InitializeResponse, ExecServerError> {
    let params = InitializeParams {
        client_name: hello.client_name.clone(),
        resume_session_id: Some(resume),
    };
    // Below all request numbers.
    let id = RpcId::Number(0);
    let closed = |_| ExecServerError::Closed;
    link.outgoing.send(json_rpc::request(&id, "initialize", &params)).await.map_err(closed)?;
    loop {
        let text = link.incoming.recv().await.ok_or(ExecServerError::Closed)?;
        let message = json_rpc::read(&text).map_err(ExecServerError::Protocol)?;
        let RpcMessage::Response { id: answered, result } = message else { continue };
        if answered != id {
            continue;
        }
        let raw = result.map_err(|error| ExecServerError::Server {
            code: error.code,
            message: error.message,
        })?;
        let response = serde_json::from_str(raw.get())?;
        let ready = json_rpc::notification("initialized", &json!({}));
        link.outgoing.send(ready).await.map_err(closed)?;
        return Ok(response);
    }
}
