//! Connections that are open when their token is removed: every WebSocket, event stream and waiting request ends.

use crate::server_fixture::{Client, Served, wait_for};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

const ASK: &str = "return await tools.demo.ask({ text: 'x' })";
const LONG: &str = "await new Promise((done) => setTimeout(done, 240000)); return 'after the end'";

const STREAM: [(&str, &str); 1] = [("Accept", "text/event-stream")];

const UPGRADE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// A connection that the client holds open.
struct Open {
    name: &'static str,
    stream: BufReader<TcpStream>,
}

impl Open {
    fn send(
        name: &'static str,
        client: &Client,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> Self {
        let mut stream = client.connect();
        let head = client.head(method, path, headers, body.len());
        stream.write_all((head + body).as_bytes()).unwrap();
        Self { name, stream: BufReader::new(stream) }
    }

    /// The same; returns once the server has begun to answer with this status.
    fn begun(mut self, status: &str) -> Self {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("HTTP/1.1 {status} ")), "{}: {line}", self.name);
        self
    }

    /// The data that arrives until the server ends the connection. A connection that stays open fails after a while.
    fn rest(mut self) -> String {
        let mut rest = vec![];
        if let Err(error) = self.stream.read_to_end(&mut rest) {
            let is_cut = error.kind() == std::io::ErrorKind::ConnectionReset;
            assert!(is_cut, "{} is still open: {error}", self.name);
        }
        String::from_utf8_lossy(&rest).into_owned()
    }
}

fn mint(served: &Served, name: &str, answers: &str) -> Client {
    let scopes = ["run", "answer", "process"];
    let body = json!({ "name": name, "scopes": scopes, "answers": answers }).to_string();
    let minted = served.client("admin").post("/api/tokens", &body);
    assert_eq!(minted.status, 201, "{minted:?}");
    served.client_with(minted.json()["secret"].as_str().unwrap())
}

/// The number of this caller's executions in this phase.
fn count(served: &Served, caller: &str, phase: &str) -> usize {
    let listed = served.client("admin").get("/api/executions").json();
    let listed = listed["executions"].as_array().unwrap().clone();
    let is_theirs = |one: &&Value| one["caller"] == caller && one["status"] == phase;
    listed.iter().filter(is_theirs).count()
}

/// Opens every kind of connection that a client can hold, and requests that wait for a program.
fn open_all(served: &Served, client: &Client) -> (Vec<Open>, Vec<Open>) {
    let mut streams: Vec<_> = ["/exec", "/execbox", "/repl", "/enclave/ws"]
        .map(|path| Open::send(path, client, ("GET", path), &UPGRADE, "").begun("101"))
        .into();
    let asked = client.execute(ASK);
    let events = format!("/api/executions/{}/events", asked.execution());
    for (name, path) in [("events", events.as_str()), ("questions", "/api/questions")] {
        streams.push(Open::send(name, client, ("GET", path), &STREAM, "").begun("200"));
    }
    let json = [("Content-Type", "application/json")];
    let session = json!({ "code": LONG, "sessionId": "s_open" }).to_string();
    let created = Open::send("sessions", client, ("POST", "/sessions"), &json, &session);
    streams.push(created.begun("200"));
    let read = Open::send("stream", client, ("GET", "/sessions/s_open/stream"), &[], "");
    streams.push(read.begun("200"));
    streams.push(mcp_stream(client));

    let mcp =
        [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let program = json!({ "code": LONG }).to_string();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": { "name": "execute", "arguments": { "code": LONG } } });
    let waiting = vec![
        Open::send("execute", client, ("POST", "/api/executions"), &json, &program),
        Open::send("mcp", client, ("POST", "/mcp"), &mcp, &call.to_string()),
    ];
    let name = client_name(client);
    wait_for(|| (count(served, &name, "running") == 3).then_some(()));
    (streams, waiting)
}

fn client_name(client: &Client) -> String {
    client.get("/api/session").json()["name"].as_str().unwrap().to_owned()
}

/// The stream on which an MCP session's client receives requests of the server.
fn mcp_stream(client: &Client) -> Open {
    let path = "/mcp?elicitation_mode=native";
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} },
                        "clientInfo": { "name": "test", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let kind = ("Content-Type", "application/json");
    let accept = ("Accept", "application/json, text/event-stream");
    let greeted = client.send("POST", path, &[kind, accept], &hello.to_string());
    let session = greeted.header("mcp-session-id").unwrap_or_else(|| panic!("{greeted:?}"));
    let named = ("Mcp-Session-Id", session);
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(client.send("POST", path, &[kind, accept, named], &ready).status, 202);
    Open::send("mcp stream", client, ("GET", path), &[STREAM[0], named], "").begun("200")
}

#[test]
fn every_open_connection_of_a_removed_token_ends_and_those_of_others_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--exec"]);
    let gone = mint(&served, "gone", "person");
    let (streams, waiting) = open_all(&served, &gone);
    let other = mint(&served, "other", "person");
    let kept = Open::send("kept", &other, ("GET", "/api/questions"), &STREAM, "").begun("200");

    let removed = served.client("admin").send("DELETE", "/api/tokens/gone", &[], "");
    assert_eq!(removed.status, 200, "{removed:?}");
    for stream in streams {
        stream.rest();
    }
    for waiting in waiting {
        let (name, rest) = (waiting.name, waiting.rest());
        assert!(rest.contains("Unauthorized"), "{name}: {rest}");
        assert!(!rest.contains("after the end"), "{name}: {rest}");
    }
    // A new question still reaches the stream of the other caller.
    assert_eq!(other.execute(ASK).json()["status"], "paused");
    let mut lines = kept.stream.lines();
    let told = lines.find(|line| line.as_ref().unwrap().contains("\"other\""));
    assert!(told.is_some());
}
