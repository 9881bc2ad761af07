//! The HTTP service of the tools: one thread per connection, the same few bytes for every request.

use crate::durable::client::Client;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\n{\"id\":1}";

/// Longest body that is read: ours are a few bytes.
const BODY_BYTES_MAX: usize = 64 << 10;

/// A service that answers until this process ends.
pub(super) struct ToolServer {
    pub(super) address: SocketAddr,
}

impl ToolServer {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A broken connection ends only its thread.
                std::thread::spawn(move || drop(serve(stream)));
            }
        });
        Ok(Self { address })
    }

    /// Registers the service with a server of either kind, and connects it.
    pub(super) fn offer(&self, server: &mut Client) -> Result<()> {
        let spec = self.spec().to_string();
        let body = json!({ "spec": { "kind": "blob", "value": spec }, "slug": "bench" });
        server.post("/api/openapi/specs", &body).context("add the tools")?;
        let body = json!({
            "owner": "org", "name": "main", "integration": "bench",
            "template": "apikey-0", "value": "none",
        });
        server.post("/api/connections", &body).context("connect the tools")?;
        Ok(())
    }

    /// The description of the service: one operation that reads, and one that does not and so must be approved.
    fn spec(&self) -> Value {
        let ok = json!({ "200": { "description": "ok", "content": {
            "application/json": { "schema": { "type": "object" } } } } });
        json!({
            "openapi": "3.0.3",
            "info": { "title": "Bench", "version": "1.0.0" },
            "servers": [{ "url": format!("http://{}", self.address) }],
            "components": { "securitySchemes": {
                "key": { "type": "apiKey", "in": "header", "name": "x-key" } } },
            "security": [{ "key": [] }],
            "paths": { "/items": {
                "get": { "operationId": "getItem", "tags": ["items"], "responses": ok },
                "post": { "operationId": "addItem", "tags": ["items"], "responses": ok },
            } },
        })
    }
}

fn serve(stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        while !line.trim().is_empty() {
            line.clear();
            reader.read_line(&mut line)?;
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse::<usize>()?.min(BODY_BYTES_MAX);
            }
        }
        std::io::copy(&mut reader.by_ref().take(length as u64), &mut std::io::sink())?;
        reader.get_mut().write_all(ANSWER)?;
    }
}

/// A connection that calls the service itself.
pub(super) struct Direct(BufReader<TcpStream>);

impl Direct {
    pub(super) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).context("connect to the tools")?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    pub(super) fn call(&mut self) -> Result<()> {
        self.0.get_mut().write_all(b"GET /items HTTP/1.1\r\nHost: tools\r\n\r\n")?;
        let mut answer = vec![0; ANSWER.len()];
        self.0.read_exact(&mut answer).context("read a tool's answer")
    }
}
