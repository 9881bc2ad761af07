//! The events that a reader of enclave's stream receives for a plot. They include the events that the door adds to
//! those of the journal: heartbeats, news of the tools, and envelopes.

use super::enclave::line;
use super::plot::Caller;
use super::{Plot, Server};
use engine::Clock;
use lifecycle::{Json, ToolPath};
use protocols::enclave::EnclaveSessionId;
use protocols::enclave::sealing::{ClientHello, DirectionKeys, StreamOpener, StreamSealer};
use serde_json::{Value, json};
use server::AuthMode;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tools::Tool;
use tools::function::FunctionSource;

const SECRET: [u8; 32] = [3; 32];

/// Plays the plot and returns the transcript.
pub(crate) async fn tell(plot: &Plot) -> String {
    let folder = tempfile::tempdir().unwrap();
    let house = Server::start(plot, 1, folder.path(), Clock::system()).await;
    let config = server::Config {
        auth: AuthMode::Off,
        ..server::Config::new(house.engine.clone(), house.store.clone())
    };
    let server = server::RunningServer::start(config).await.unwrap();
    let mut reader = Reader {
        address: server.local_addr(),
        house: &house,
        plot,
        seal: None,
        waits: None,
        said: String::new(),
    };
    reader.live().await;
    let said = reader.said;
    server.shutdown().await;
    house.stop().await;
    said
}

struct Reader<'p> {
    address: SocketAddr,
    house: &'p Server,
    plot: &'p Plot,
    /// The keys, once both sides have agreed on them.
    seal: Option<(StreamOpener, StreamSealer)>,
    /// The answer to a call that waits, and the event for which it waits.
    waits: Option<(&'static str, Value)>,
    said: String,
}

impl Reader<'_> {
    async fn live(&mut self) {
        let mut body = self.plot.session.clone();
        body["code"] = self.plot.program.source.clone().into();
        body["sessionId"] = "s_story".into();
        if body.get("encryption").is_some() {
            body["encryption"]["clientHello"] = json!(ClientHello::new(&SECRET).unwrap());
        }
        let mut lines = self.open("POST /sessions", &body).await;
        while let Some(event) = next(&mut lines).await {
            self.hear(event).await;
        }
    }

    /// Records an event and performs the plot's reaction to it.
    async fn hear(&mut self, event: Value) {
        let event = self.opened(event);
        let kind = event["type"].as_str().unwrap();
        let kind = kind.strip_prefix("enc: ").unwrap_or(kind).to_owned();
        match &self.waits {
            // The number of heartbeats depends on timing.
            None if kind == "heartbeat" => return,
            Some((awaited, _)) if kind == "heartbeat" && *awaited != kind => return,
            Some(_) | None => {}
        }
        self.said.push_str(&line(event.clone()));
        if let Some((awaited, result)) = self.waits.take() {
            match awaited == kind {
                true => self.send("tool-result", &result).await,
                false => self.waits = Some((awaited, result)),
            }
        }
        if kind == "tool_call" {
            self.call(&event["payload"]).await;
        }
    }

    async fn call(&mut self, payload: &Value) {
        let result = |value: Value| json!({ "callId": payload["callId"], "result": value });
        match self.plot.callers.get(payload["toolName"].as_str().unwrap()) {
            None => {}
            Some(Caller::Returns(value)) => {
                let value = serde_json::from_str(value).unwrap();
                self.send("tool-result", &result(value)).await;
            }
            Some(Caller::WaitsForLife) => self.waits = Some(("heartbeat", result(json!("alive")))),
            Some(Caller::Adds(path)) => {
                self.waits = Some(("catalog_changed", result(json!("told"))));
                let tool = Tool::new(ToolPath::parse(path).unwrap());
                let source = FunctionSource::new("later");
                let source = source.calling(tool, |_| async { Ok(None::<Json>) });
                self.house.engine.catalogue().add(Arc::new(source)).unwrap();
            }
            Some(Caller::Cancels(reason)) => {
                let body = json!({ "type": "cancel", "payload": { "reason": reason } });
                self.send("cancel", &body).await;
            }
            Some(Caller::Fails { .. } | Caller::Leaves) => panic!("told by the journal"),
        }
    }

    /// An event before it was sealed; the first one brings the keys.
    fn opened(&mut self, mut event: Value) -> Value {
        if event["type"] == "enc" {
            let (opener, _) = self.seal.as_mut().expect("the keys come first");
            let envelope = serde_json::from_value(event).unwrap();
            let mut opened: Value =
                serde_json::from_slice(&opener.open(&envelope).unwrap()).unwrap();
            opened["type"] = format!("enc: {}", opened["type"].as_str().unwrap()).into();
            return opened;
        }
        let hello = event["payload"]["encryption"]["serverHello"].clone();
        if let Some(key) = hello["serverEphemeralPubKeyB64"].as_str() {
            let session = EnclaveSessionId::parse("s_story").unwrap();
            let keys = DirectionKeys::agree(&SECRET, key, &session).unwrap();
            let id = hello["keyId"].as_str().unwrap();
            let opener = StreamOpener::streams(&keys.s2c, id, &session);
            self.seal = Some((opener, StreamSealer::new(&keys.c2s, [1; 8], id, &session)));
            event["payload"]["encryption"]["serverHello"] = "…".into();
            event["payload"]["encryption"]["keyId"] = "…".into();
        }
        event
    }

    /// Sends a request about the session, sealed if the session has keys.
    async fn send(&mut self, what: &str, body: &Value) {
        let body = match &mut self.seal {
            None => body.to_string(),
            Some((_, sealer)) => {
                let sealed = sealer.seal(1, body.to_string().as_bytes()).unwrap();
                serde_json::to_string(&sealed).unwrap()
            }
        };
        let answer = self.ask(&format!("POST /sessions/s_story/{what}"), &body).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    async fn open(&self, request: &str, body: &Value) -> BufReader<TcpStream> {
        BufReader::new(self.connect(request, &body.to_string()).await)
    }

    async fn ask(&self, request: &str, body: &str) -> String {
        let mut answer = String::new();
        self.connect(request, body).await.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn connect(&self, request: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "{request} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}

/// The next event of a stream; the sizes of chunks are on separate lines.
async fn next(lines: &mut BufReader<TcpStream>) -> Option<Value> {
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).await.unwrap() == 0 {
            return None;
        }
        if line.starts_with('{') {
            return Some(serde_json::from_str(&line).unwrap());
        }
    }
}
