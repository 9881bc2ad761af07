//! An API that repeats everything it receives, in every encoding that it supports, and records it. With a list of valid
//! tokens it refuses all others.

use crate::server_fixture::{Client, good};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Decides by the text after `Bearer ` whether a request is accepted. Without a guard, every request is.
type Guard = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The scopes, separated by spaces, that a request needs if its token does not suffice.
type Wishes = Box<dyn Fn(&str, &str) -> Option<String> + Send + Sync>;

/// Creates a connection of the source `things`, which is this API.
pub(crate) fn connect(admin: &Client, body: Value) -> Value {
    let mut whole = json!({ "integration": "things", "owner": "org" });
    whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    good(admin.post("/api/connections", &whole.to_string()))
}

/// A running API. It ends with the process: it holds nothing but a port.
#[derive(Clone)]
pub(crate) struct Echo {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<String>>>,
    /// The authorization server that its metadata names.
    issuer: Arc<Mutex<Option<String>>>,
    /// Additional members of its description.
    security: Arc<Mutex<Value>>,
    wishes: Arc<Mutex<Option<Wishes>>>,
}

impl Echo {
    pub(crate) fn start() -> Self {
        Self::guarded(None)
    }

    /// An API that requires a token which `guard` accepts.
    pub(crate) fn guarded(guard: Option<Guard>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let echo = Self {
            url,
            heard: Arc::default(),
            issuer: Arc::default(),
            security: Arc::default(),
            wishes: Arc::default(),
        };
        let (serving, guard) = (echo.clone(), Arc::new(guard));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (echo, guard) = (serving.clone(), Arc::clone(&guard));
                thread::spawn(move || drop(echo.answer(stream, &guard)));
            }
        });
        echo
    }

    /// Sets the authorization server that its metadata names.
    pub(crate) fn names(&self, issuer: &str) {
        *self.issuer.lock().unwrap() = Some(issuer.to_owned());
    }

    /// Refuses tokens with too few scopes: `wishes` receives a request and its token, and returns the scopes that would
    /// suffice.
    pub(crate) fn wants(
        &self,
        wishes: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static,
    ) {
        *self.wishes.lock().unwrap() = Some(Box::new(wishes));
    }

    /// Adds a security scheme to the description.
    pub(crate) fn describes(&self, name: &str, scheme: Value) {
        self.security.lock().unwrap()[name] = scheme;
    }

    /// Everything that it received, line by line, with header names in lower case.
    pub(crate) fn heard(&self) -> String {
        self.heard.lock().unwrap().join("\n")
    }

    /// Its description: one operation that reads, one that changes, and a key in a header.
    pub(crate) fn description(&self) -> String {
        let operation = |id: &str| json!({ "operationId": id, "tags": ["t"], "responses": { "200": { "description": "ok" } } });
        let mut schemes = self.security.lock().unwrap().clone();
        schemes["key"] = json!({ "type": "apiKey", "in": "header", "name": "X-Key" });
        json!({
            "openapi": "3.1.0",
            "info": { "title": "Things", "version": "1" },
            "servers": [{ "url": self.url }],
            "components": { "securitySchemes": schemes },
            "paths": { "/things": { "get": operation("list"), "post": operation("change") },
                "/fail": { "get": operation("fail") } },
        })
        .to_string()
    }

    /// One tool over MCP, with the minimum that the protocol requires.
    fn speak(&self, stream: &mut TcpStream, body: &[u8]) -> std::io::Result<()> {
        let asked: Value = serde_json::from_slice(body).unwrap_or_default();
        let input = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        let result = match asked["method"].as_str().unwrap_or_default() {
            "initialize" => {
                json!({ "protocolVersion": asked["params"]["protocolVersion"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "echo", "version": "1" } })
            }
            "tools/list" => {
                json!({ "tools": [{ "name": "repeat", "inputSchema": input, "annotations": { "readOnlyHint": true } }] })
            }
            "tools/call" => {
                json!({ "content": [{ "type": "text", "text": asked["params"]["arguments"]["text"] }] })
            }
            _ => Value::Null,
        };
        let (status, body) = match result.is_null() {
            true if asked["method"].is_null() => ("405 Method Not Allowed", String::new()),
            true => ("202 Accepted", String::new()),
            false => (
                "200 OK",
                json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string(),
            ),
        };
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    }

    fn wanted(&self, said: &str, token: &str) -> Option<String> {
        self.wishes.lock().unwrap().as_ref().and_then(|wishes| wishes(said, token))
    }

    fn answer(&self, stream: TcpStream, guard: &Option<Guard>) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let header = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            lines
                .filter(|(found, _)| found.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.to_owned())
                .next()
        };
        let n_bytes = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; n_bytes];
        reader.read_exact(&mut body)?;
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let said = format!("{head}{}", String::from_utf8_lossy(&body));
        let small = |line: &str| match line.split_once(": ") {
            Some((name, value)) => format!("{}: {value}", name.to_ascii_lowercase()),
            None => line.to_owned(),
        };
        self.heard.lock().unwrap().extend(said.lines().map(small));
        let token = header("authorization")
            .and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned));
        let (status, more, body) = if path.starts_with("/.well-known/oauth-protected-resource") {
            match &*self.issuer.lock().unwrap() {
                Some(issuer) => {
                    let about = json!({ "resource": self.url, "authorization_servers": [issuer] });
                    ("200 OK", String::new(), about.to_string())
                }
                None => ("404 Not Found", String::new(), "{}".into()),
            }
        } else if guard.as_ref().is_some_and(|guard| !token.as_deref().is_some_and(guard)) {
            let more = format!(
                "WWW-Authenticate: Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource\"\r\n",
                self.url
            );
            ("401 Unauthorized", more, json!({ "message": "who are you?" }).to_string())
        } else if let Some(wanted) = self.wanted(&said, token.as_deref().unwrap_or_default()) {
            let more = format!(
                "WWW-Authenticate: Basic realm=\"no\", Bearer error=\"insufficient_scope\", scope=\"{wanted}\"\r\n"
            );
            ("403 Forbidden", more, json!({ "message": "you may not" }).to_string())
        } else if path == "/mcp" {
            return self.speak(reader.get_mut(), &body);
        } else {
            let encoded: String = said.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let hex: String = said.bytes().map(|byte| format!("{byte:02x}")).collect();
            let mild = said.replace('/', "%2F").replace('+', "%2B");
            let told = json!({ "plain": said, "base64": STANDARD.encode(&said), "shifted": STANDARD.encode(format!("x{said}")),
                "url_safe": URL_SAFE_NO_PAD.encode(format!("xx{said}")), "form": mild, "hex": hex, "n": encoded.len() });
            let (status, told) = match path.starts_with("/fail") {
                true => ("418 I'm a teapot", json!({ "message": said, "more": told })),
                false => ("200 OK", told),
            };
            // The received proof is repeated in response headers, too.
            let proof: String = head.lines().filter(|line| !line.contains("HTTP/1.1")).collect();
            let hex: String = proof.bytes().map(|byte| format!("{byte:02x}")).collect();
            (status, format!("X-Plain: {proof}\r\nX-Hex: {hex}\r\n"), told.to_string())
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let stream = reader.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())
    }
}
