//! A simulated runner whose messages a test writes, and a channel that records how it was closed.

use client::execbox::{MessageReader, MessageWriter, NdjsonChannel, RunnerTransport};
use serde_json::{Value, json};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};

type Soon<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The runner's end of the channel.
pub(crate) struct Actor {
    lines: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

/// Counts how often a channel was terminated and disposed of.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    terminated: AtomicUsize,
    disposed: AtomicUsize,
}

impl Endings {
    pub(crate) fn terminated(&self) -> usize {
        self.terminated.load(Ordering::SeqCst)
    }

    pub(crate) fn disposed(&self) -> usize {
        self.disposed.load(Ordering::SeqCst)
    }
}

/// Creates a channel, the runner at its other end, and the channel's counters.
pub(crate) fn stage() -> (Box<dyn RunnerTransport>, Actor, Arc<Endings>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let endings = Arc::new(Endings::default());
    let channel =
        Watched { inner: Box::new(NdjsonChannel::new(reader, writer)), endings: endings.clone() };
    (Box::new(channel), Actor::new(theirs), endings)
}

impl Actor {
    pub(crate) fn new(stream: DuplexStream) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self { lines: BufReader::new(reader), writer }
    }

    /// Returns the next message, or `None` once the host has closed the channel.
    pub(crate) async fn hear_if_any(&mut self) -> Option<Value> {
        let mut line = String::new();
        let n_bytes = self.lines.read_line(&mut line).await.unwrap();
        (n_bytes > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    pub(crate) async fn hear(&mut self) -> Value {
        self.hear_if_any().await.expect("the host says something")
    }

    /// Receives the next message, which must be an `execute`, and returns its id.
    pub(crate) async fn hear_execute(&mut self) -> String {
        let message = self.hear().await;
        assert_eq!(message["type"], "execute", "{message}");
        message["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.say_line(&message.to_string()).await;
    }

    pub(crate) async fn say_line(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Ends the execution with a value.
    pub(crate) async fn done(&mut self, id: &str, result: Value) {
        let logs: [&str; 0] = [];
        let done = json!({"type": "done", "id": id, "ok": true, "durationMs": 3, "logs": logs, "result": result});
        self.say(&done).await;
    }

    /// Calls a tool of the namespace `tools`.
    pub(crate) async fn call(&mut self, call_id: &str, tool: &str, input: Value) {
        self.say(&json!({
            "type": "tool_call", "callId": call_id, "providerName": "tools", "safeToolName": tool, "input": input
        }))
        .await;
    }
}

/// A runner that answers every program with the program's text.
pub(crate) async fn parrot(stream: DuplexStream) {
    let mut actor = Actor::new(stream);
    while let Some(message) = actor.hear_if_any().await {
        if message["type"] == "execute" {
            actor.done(message["id"].as_str().unwrap(), message["code"].clone()).await;
        }
    }
}

#[derive(Debug)]
struct Watched {
    inner: Box<dyn RunnerTransport>,
    endings: Arc<Endings>,
}

impl RunnerTransport for Watched {
    fn halves(&mut self) -> (&mut dyn MessageReader, &mut dyn MessageWriter) {
        self.inner.halves()
    }

    fn terminate(&mut self) -> Soon<'_, ()> {
        self.endings.terminated.fetch_add(1, Ordering::SeqCst);
        self.inner.terminate()
    }

    fn dispose(self: Box<Self>) -> Soon<'static, ()> {
        self.endings.disposed.fetch_add(1, Ordering::SeqCst);
        self.inner.dispose()
    }
}
