//! A runner that is a future of this process: for tests, and for hosts that link one.

use super::{ConnectRunner, NdjsonChannel, RunnerTransport};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::{fmt, io};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinSet;
use transport::{MessageReader, MessageWriter};

/// Bytes that are buffered between host and runner, as in a pipe.
const BUFFER_BYTES: usize = 64 << 10;

/// A runner that is a future of this process, given its end of the channel.
#[derive(Clone)]
pub struct InProcess {
    run: Arc<dyn Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync>,
}

impl InProcess {
    /// `run` is called for each channel; its future ends with the channel.
    pub fn new<F>(run: impl Fn(DuplexStream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self { run: Arc::new(move |stream| Box::pin(run(stream))) }
    }

    fn start(&self) -> InProcessChannel {
        let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
        let mut runner = JoinSet::new();
        runner.spawn((self.run)(theirs));
        let (reader, writer) = tokio::io::split(ours);
        InProcessChannel { lines: NdjsonChannel::new(reader, writer), runner }
    }
}

impl ConnectRunner for InProcess {
    fn connect(&self) -> BoxFuture<'_, io::Result<Box<dyn RunnerTransport>>> {
        let channel = self.start();
        Box::pin(async { Ok(Box::new(channel) as Box<dyn RunnerTransport>) })
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcess")
    }
}

#[derive(Debug)]
struct InProcessChannel {
    lines: NdjsonChannel<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>,
    /// Aborts the runner when dropped.
    runner: JoinSet<()>,
}

impl RunnerTransport for InProcessChannel {
    fn halves(&mut self) -> (&mut dyn MessageReader, &mut dyn MessageWriter) {
        self.lines.halves()
    }

    fn terminate(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.lines.hang_up();
            self.runner.shutdown().await;
        })
    }

    fn dispose(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.terminate().await })
    }
}
