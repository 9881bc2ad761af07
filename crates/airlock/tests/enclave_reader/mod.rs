//! Sessions of the enclave door as their readers see them: whole, or line by line as they arrive.

use crate::server_fixture::{Answer, Client, Served};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A server without enclave tools: callers run the tools that the catalogue lacks.
pub(crate) fn start() -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    (folder, served)
}

/// A server with the tools of `ADD`, `FAIL` and others under aliases, provided by programs.
pub(crate) fn start_with_tools() -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let add = script("add.sh", "echo '{\"sum\":42}'");
    let fail =
        script("fail.sh", "echo '{\"code\":\"E_CUSTOM\",\"message\":\"kaput\"}' >&2; exit 3");
    let file = folder.path().join("airlock.toml");
    let text = format!(
        "[enclave.tools]\nadd = 't.org.main.add'\nplus = 't.org.main.add'\nfail = 't.org.main.fail'\nlocked = 'l.org.main.add'\ngone = 't.org.main.gone'\nsleep = 'demo.sleep'\n\
         [sources.t.tools.add]\nargv = ['sh', '{add}']\nasks = false\n[sources.t.tools.fail]\nargv = ['sh', '{fail}']\nasks = false\n\
         [sources.l.tools.add]\nargv = ['sh', '{add}']\nasks = false\n[connections.l.main]\nenv = {{ KEY = 'env:NO_SUCH_VARIABLE_OF_A_TEST' }}\n"
    );
    std::fs::write(&file, text).unwrap();
    let served = Served::start(&folder.path().join("data"), &["--config", file.to_str().unwrap()]);
    (folder, served)
}

pub(crate) fn events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn run(client: &Client, body: Value) -> Vec<Value> {
    events(&client.post("/sessions", &body.to_string()))
}

pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

pub(crate) fn last(events: &[Value]) -> &Value {
    let last = events.last().unwrap();
    assert_eq!(last["type"], "final", "{events:#?}");
    let seqs: Vec<_> = events.iter().filter(|event| event["type"] != "heartbeat").collect();
    for (n, event) in (1..).zip(seqs) {
        assert_eq!(event["seq"], n, "{event}");
    }
    &last["payload"]
}

/// A stream that is read line by line as it arrives.
pub(crate) struct Lines(pub(crate) BufReader<TcpStream>);

impl Lines {
    pub(crate) fn open(client: &Client, method: &str, path: &str, body: &str) -> Self {
        let mut stream = TcpStream::connect(&client.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            client.address,
            client.secret,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn post(client: &Client, body: &Value) -> Self {
        Self::open(client, "POST", "/sessions", &body.to_string())
    }

    /// The next event; `None` if the stream has ended or broken.
    pub(crate) fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.starts_with('{') {
                return serde_json::from_str(&line).ok();
            }
        }
    }

    pub(crate) fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().unwrap_or_else(|| panic!("no {kind} came"));
            if event["type"] == kind {
                return event;
            }
        }
    }

    pub(crate) fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.next()).collect()
    }
}
