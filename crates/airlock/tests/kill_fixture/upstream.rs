//! The API that the programs call. It logs every request with its id, and handles one connection after the other: a
//! query about a request is answered after every earlier request is in the log.

use super::PATIENCE;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) struct Upstream {
    pub(crate) address: String,
    requests: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Upstream {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(BTreeMap::new()));
        let (log, url) = (Arc::clone(&requests), format!("http://{address}"));
        // It ends with the process: it holds nothing but a port.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A server that was killed meanwhile receives no answer.
                let _ = answer(stream, &url, &log);
            }
        });
        Self { address, requests }
    }

    /// The configuration of a server whose tools are this API. `write` needs no approval, `send` does.
    pub(crate) fn config(&self) -> String {
        let address = &self.address;
        format!(
            "[sources.up]\nkind = 'openapi'\nurl = 'http://{address}/openapi.json'\n\
             [[policies]]\npattern = 'up.org.main.t.write'\naction = 'approve'\n"
        )
    }

    /// Whether the request with this id has arrived.
    pub(crate) fn has(&self, id: &str) -> bool {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET /has/{id} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.ends_with("true")
    }

    /// The number of times that each request arrived.
    pub(crate) fn requests(&self) -> BTreeMap<String, u32> {
        // This query returns after every earlier request is in the log.
        self.has("nothing");
        self.requests.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    url: &str,
    log: &Mutex<BTreeMap<String, u32>>,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    request.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    while !line.trim().is_empty() {
        line.clear();
        request.read_line(&mut line)?;
    }
    let body = match path.trim_start_matches('/').split_once('/') {
        Some(("has", id)) => log.lock().unwrap().contains_key(id).to_string(),
        Some((_, id)) => {
            *log.lock().unwrap().entry(id.to_owned()).or_insert(0) += 1;
            json!({ "id": id }).to_string()
        }
        None => description(url).to_string(),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

fn description(url: &str) -> Value {
    let id =
        json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } });
    let operation = |name: &str| {
        json!({ "operationId": name, "tags": ["t"], "parameters": [id],
            "responses": { "200": { "description": "ok" } } })
    };
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Upstream", "version": "1" },
        "servers": [{ "url": url }],
        "paths": {
            "/read/{id}": { "get": operation("read") },
            "/write/{id}": { "post": operation("write") },
            "/send/{id}": { "post": operation("send") },
        },
    })
}
