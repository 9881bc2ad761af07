//! A client of the REPL that trusts no frame: it validates each against the published schemas.

use crate::server_fixture::Served;
use futures_util::{SinkExt as _, StreamExt as _};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// The longest wait for anything. Only a server that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn conformance(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/hotrepl").join(file)
}

pub(crate) fn repl_url(server: &Served) -> String {
    format!("{}/repl", server.url.replacen("http", "ws", 1))
}

pub(crate) fn token(server: &Served) -> String {
    let file = server.data_dir.join("tokens").join("run");
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

pub(crate) async fn spoken(server: &Served) -> Spoken {
    Spoken::connect(&repl_url(server), &token(server)).await
}

fn schemas() -> &'static HashMap<String, Validator> {
    static SCHEMAS: OnceLock<HashMap<String, Validator>> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        let mut schemas = HashMap::new();
        for entry in std::fs::read_dir(conformance("schemas")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                if schema.get("properties").is_some() {
                    schemas.insert(name, jsonschema::validator_for(&schema).unwrap());
                }
            }
        }
        schemas
    })
}

/// One connection to the REPL.
pub(crate) struct Spoken {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    n_asked: u64,
    /// The handshake that the server sent.
    pub(crate) handshake: Value,
    /// Frames that arrived while the client waited for others.
    unread: Vec<Value>,
}

impl Spoken {
    /// Connects with a token; the first frame must be a handshake.
    pub(crate) async fn connect(url: &str, token: &str) -> Self {
        let mut request = url.into_client_request().unwrap();
        let bearer = format!("Bearer {token}").parse().unwrap();
        request.headers_mut().insert("Authorization", bearer);
        let (socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        let mut spoken = Self { socket, n_asked: 0, handshake: Value::Null, unread: vec![] };
        spoken.handshake = spoken.next().await;
        assert_eq!(spoken.handshake["type"], "handshake");
        spoken
    }

    /// The next frame, validated.
    pub(crate) async fn next(&mut self) -> Value {
        if !self.unread.is_empty() {
            return self.unread.remove(0);
        }
        self.receive().await.expect("the connection is open")
    }

    /// The next frame from the socket; `None` if it is closed.
    pub(crate) async fn receive(&mut self) -> Option<Value> {
        loop {
            let heard = tokio::time::timeout(PATIENCE, self.socket.next()).await.unwrap();
            match heard {
                Some(Ok(Message::Text(text))) => return Some(checked(&text)),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Sends a request under a new id, and returns the id.
    pub(crate) async fn send(&mut self, mut request: Value) -> String {
        self.n_asked += 1;
        let id = format!("r{}", self.n_asked);
        request["id"] = json!(id);
        self.socket.send(Message::Text(request.to_string().into())).await.unwrap();
        id
    }

    /// The first frame with this id; others are queued.
    pub(crate) async fn answer(&mut self, id: &str) -> Value {
        if let Some(at) = self.unread.iter().position(|frame| frame["id"] == id) {
            return self.unread.remove(at);
        }
        loop {
            let frame = self.receive().await.expect("the connection is open");
            if frame["id"] == id {
                return frame;
            }
            self.unread.push(frame);
        }
    }

    pub(crate) async fn ask(&mut self, request: Value) -> Value {
        let id = self.send(request).await;
        self.answer(&id).await
    }

    pub(crate) async fn eval(&mut self, code: &str) -> Value {
        self.ask(json!({"type": "eval", "code": code})).await
    }

    /// The value of an eval that must succeed.
    pub(crate) async fn value(&mut self, code: &str) -> Value {
        let frame = self.eval(code).await;
        assert_eq!(frame["type"], "eval_result", "{code}: {frame}");
        frame["value"].as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
    }

    /// The next frame of this type, for any request.
    pub(crate) async fn of_type(&mut self, kind: &str) -> Value {
        if let Some(at) = self.unread.iter().position(|frame| frame["type"] == kind) {
            return self.unread.remove(at);
        }
        loop {
            let frame = self.receive().await.expect("the connection is open");
            if frame["type"] == kind {
                return frame;
            }
            self.unread.push(frame);
        }
    }
}

fn checked(text: &str) -> Value {
    let frame: Value = serde_json::from_str(text).unwrap();
    let kind = frame["type"].as_str().unwrap();
    let schema = schemas().get(kind).unwrap_or_else(|| panic!("no frame is called {kind}"));
    let problems: Vec<String> = schema.iter_errors(&frame).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{frame}: {problems:?}");
    frame
}
