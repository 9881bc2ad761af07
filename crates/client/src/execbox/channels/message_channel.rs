//! A channel over any two halves of a connection. It ends its runner by closing them.

use super::RunnerTransport;
use futures_util::future::BoxFuture;
use protocols::execbox::HOST_MESSAGE_BYTES_MAX;
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use transport::{LineReader, LineWriter, MessageReader, MessageWriter, lines};

/// How long the final flush may take; no answer to it is awaited.
const FAREWELL_TIME_MAX: Duration = Duration::from_millis(250);

/// A channel over two halves of a connection.
#[derive(Debug)]
pub struct MessageChannel<R, W> {
    /// None once closed.
    reader: Option<R>,
    writer: Option<W>,
}

/// One message per line over any pair of byte streams: a socket, the two pipes of a child, a duplex within this process.
pub type NdjsonChannel<R, W> = MessageChannel<LineReader<R>, LineWriter<W>>;

impl<R, W> NdjsonChannel<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Reads from one stream and writes to the other.
    pub fn new(reader: R, writer: W) -> Self {
        Self::from_halves(lines(reader, writer, HOST_MESSAGE_BYTES_MAX))
    }
}

impl<R, W> MessageChannel<R, W> {
    /// Over these halves.
    pub fn from_halves((reader, writer): (R, W)) -> Self {
        Self { reader: Some(reader), writer: Some(writer) }
    }

    /// Closes both halves immediately: the runner sees the end of its input.
    pub(super) fn hang_up(&mut self) {
        self.reader = None;
        self.writer = None;
    }
}

impl<R, W> RunnerTransport for MessageChannel<R, W>
where
    R: MessageReader + fmt::Debug + 'static,
    W: MessageWriter + fmt::Debug + 'static,
{
    fn halves(&mut self) -> (&mut dyn MessageReader, &mut dyn MessageWriter) {
        (&mut self.reader, &mut self.writer)
    }

    fn terminate(&mut self) -> BoxFuture<'_, ()> {
        self.hang_up();
        Box::pin(async {})
    }

    fn dispose(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.writer.enqueue_close(None);
            // Whether the runner receives it does not matter: the connection closes anyway.
            drop(timeout(FAREWELL_TIME_MAX, self.writer.flush()).await);
        })
    }
}
