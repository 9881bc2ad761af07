//! A minimal client with a persistent connection.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for any answer: reached only by a server that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longest answer; ours are a few hundred bytes.
const BODY_BYTES_MAX: usize = 1 << 20;

/// One connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    head: String,
    body: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: &str, secret: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).context("connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let head = format!("HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {secret}\r\n");
        Ok(Self { stream: BufReader::new(stream), head, body: vec![] })
    }

    /// Requests a constant.
    pub(crate) fn healthz(&mut self) -> Result<()> {
        let request = format!("GET /healthz {}\r\n", self.head);
        ensure!(self.answer(&request)? == b"ok", "the server is not well");
        Ok(())
    }

    /// Runs a program to its end.
    pub(crate) fn execute(&mut self, code: &str) -> Result<Value> {
        let answer = self.post("/api/executions", &json!({ "code": code }))?;
        result(answer)
    }

    /// Runs a program to its question, and returns the question's id.
    pub(crate) fn ask(&mut self, code: &str) -> Result<String> {
        let answer = self.post("/api/executions", &json!({ "code": code }))?;
        let id = answer["structured"]["executionId"].as_str();
        id.map(str::to_owned).with_context(|| format!("nothing was asked: {answer}"))
    }

    /// Declines a question, and reads the program's result.
    pub(crate) fn decline(&mut self, question: &str) -> Result<Value> {
        let path = format!("/api/executions/{question}/resume");
        result(self.post(&path, &json!({ "action": "decline" }))?)
    }

    /// Requests the health route that both servers have.
    pub(crate) fn health(&mut self) -> Result<()> {
        let request = format!("GET /api/health {}\r\n", self.head);
        self.answer(&request).map(drop)
    }

    /// Requests the health route and accepts any answer, also a 404: the server that sent it is alive.
    pub(crate) fn sign_of_life(&mut self) -> Result<()> {
        let request = format!("GET /api/health {}\r\n", self.head);
        self.read_answer(&request).map(drop)
    }

    /// Accepts a question; returns the program's result.
    pub(crate) fn accept(&mut self, question: &str) -> Result<Value> {
        let path = format!("/api/executions/{question}/resume");
        result(self.post(&path, &json!({ "action": "accept" }))?)
    }

    /// The number of executions in the server's memory.
    pub(crate) fn n_live(&mut self) -> Result<u64> {
        let request = format!("GET /metrics {}\r\n", self.head);
        let text = String::from_utf8(self.answer(&request)?.to_vec())?;
        let n_live = text.lines().find_map(|line| line.strip_prefix("airlock_executions_live "));
        Ok(n_live.context("the metrics do not tell what is live")?.parse()?)
    }

    /// Sends a GET request and parses the JSON answer.
    pub(crate) fn get(&mut self, path: &str) -> Result<Value> {
        let request = format!("GET {path} {}\r\n", self.head);
        serde_json::from_slice(self.answer(&request)?).context("read an answer")
    }

    /// Sends JSON and parses the JSON answer.
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.post_with(path, "", body)
    }

    /// Like `post`, with additional headers.
    pub(crate) fn post_with(&mut self, path: &str, more: &str, body: &Value) -> Result<Value> {
        serde_json::from_slice(self.post_for_body(path, more, body)?).context("read an answer")
    }

    /// Sends JSON and reads a body of any type.
    pub(crate) fn post_for_body(&mut self, path: &str, more: &str, body: &Value) -> Result<&[u8]> {
        let (body, head) = (body.to_string(), &self.head);
        let length = body.len();
        let request = format!(
            "POST {path} {head}{more}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.answer(&request)
    }

    /// Sends a request and reads the body of its answer.
    fn answer(&mut self, request: &str) -> Result<&[u8]> {
        let status = self.read_answer(request)?;
        let is_good = status.starts_with("HTTP/1.1 2");
        ensure!(is_good, "{status}: {}", String::from_utf8_lossy(&self.body));
        Ok(&self.body)
    }

    /// Returns the status line; the body is in `body` afterwards.
    fn read_answer(&mut self, request: &str) -> Result<String> {
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        let mut length = None;
        let mut is_chunked = false;
        self.stream.read_line(&mut line)?;
        let status = line.trim().to_owned();
        while !line.trim().is_empty() {
            line.clear();
            self.stream.read_line(&mut line)?;
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse::<usize>()?);
            }
            is_chunked |= line.to_ascii_lowercase().starts_with("transfer-encoding: chunked");
        }
        if is_chunked {
            self.read_chunks()?;
            return Ok(status);
        }
        let length = length.with_context(|| format!("an answer without a length: {status:?}"))?;
        ensure!(length <= BODY_BYTES_MAX, "an answer of {length} bytes");
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body)?;
        Ok(status)
    }

    /// Reads a chunked body, such as a stream of events.
    fn read_chunks(&mut self) -> Result<()> {
        self.body.clear();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).context("the size of a chunk")?;
            let from = self.body.len();
            ensure!(from + length <= BODY_BYTES_MAX, "an answer of over {BODY_BYTES_MAX} bytes");
            self.body.resize(from + length, 0);
            self.stream.read_exact(&mut self.body[from..])?;
            self.stream.read_line(&mut line)?;
            if length == 0 {
                return Ok(());
            }
        }
    }
}

fn result(mut answer: Value) -> Result<Value> {
    ensure!(answer["structured"]["status"] == "completed", "not completed: {answer}");
    Ok(answer["structured"]["result"].take())
}

/// Runs `work` for 0 to `n` by all clients concurrently and returns the results, in no order.
pub(crate) fn share_out<C: Send, T: Send>(
    clients: &mut [C],
    n: usize,
    work: impl Fn(&mut C) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let (work, n_clients) = (&work, clients.len());
    std::thread::scope(|scope| {
        let workers: Vec<_> = clients
            .iter_mut()
            .enumerate()
            .map(|(first, client)| {
                let n_mine = (first..n).step_by(n_clients).len();
                scope.spawn(move || (0..n_mine).map(|_| work(client)).collect::<Result<Vec<T>>>())
            })
            .collect();
        let mut all = Vec::with_capacity(n);
        for worker in workers {
            all.extend(worker.join().ok().context("a client panicked")??);
        }
        Ok(all)
    })
}
