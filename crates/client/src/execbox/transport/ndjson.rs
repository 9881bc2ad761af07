//! One message per line over any pair of byte streams.

use super::{Ended, Incoming, Outgoing, Transport};
use futures_util::future::BoxFuture;
use protocols::execbox::HOST_MESSAGE_BYTES_MAX;
use protocols::ndjson::Lines;
use std::time::Duration;
use std::{fmt, io};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

/// Room for one read: most messages fit, and an idle channel does not hold much.
const READ_BYTES: usize = 16 << 10;

/// How long a stream may take to close properly before it is dropped.
const FAREWELL_TIME_MAX: Duration = Duration::from_millis(250);

/// A channel over byte streams: a socket, the two pipes of a child, a duplex within this process.
/// It ends its runner by closing the streams.
pub struct Ndjson<R, W> {
    incoming: LinesIn<R>,
    outgoing: BytesOut<W>,
}

impl<R, W> Ndjson<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Reads from one stream and writes to the other.
    pub const fn new(reader: R, writer: W) -> Self {
        let incoming = LinesIn { reader: Some(reader), lines: Lines::new(HOST_MESSAGE_BYTES_MAX) };
        Self { incoming, outgoing: BytesOut { writer: Some(writer) } }
    }

    /// Closes both streams at once: the runner sees the end of its input.
    pub(super) fn hang_up(&mut self) {
        self.incoming.reader = None;
        self.outgoing.writer = None;
    }
}

impl<R, W> Transport for Ndjson<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn halves(&mut self) -> (&mut dyn Outgoing, &mut dyn Incoming) {
        (&mut self.outgoing, &mut self.incoming)
    }

    fn terminate(&mut self) -> BoxFuture<'_, ()> {
        self.hang_up();
        Box::pin(async {})
    }

    fn dispose(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Some(mut writer) = self.outgoing.writer.take() {
                // Whether the runner hears it does not matter: the streams close anyway.
                drop(timeout(FAREWELL_TIME_MAX, writer.shutdown()).await);
            }
        })
    }
}

impl<R, W> fmt::Debug for Ndjson<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ndjson").field("lines", &self.incoming.lines).finish_non_exhaustive()
    }
}

struct LinesIn<R> {
    /// `None` once closed.
    reader: Option<R>,
    lines: Lines,
}

impl<R: AsyncRead + Send + Unpin> LinesIn<R> {
    async fn fill_until_line(&mut self) -> Result<(), Ended> {
        while !self.lines.has_line().map_err(io::Error::other)? {
            let reader = self.reader.as_mut().ok_or(Ended::Closed)?;
            let n_bytes = reader.read(self.lines.room(READ_BYTES)).await?;
            if n_bytes == 0 {
                return Err(Ended::Closed);
            }
            self.lines.filled(n_bytes);
        }
        Ok(())
    }
}

impl<R: AsyncRead + Send + Unpin> Incoming for LinesIn<R> {
    fn receive(&mut self) -> BoxFuture<'_, Result<&[u8], Ended>> {
        Box::pin(async {
            self.fill_until_line().await?;
            let line = self.lines.take().map_err(io::Error::other)?;
            Ok(line.expect("a line was just seen"))
        })
    }
}

struct BytesOut<W> {
    /// `None` once closed.
    writer: Option<W>,
}

impl<W: AsyncWrite + Send + Unpin> Outgoing for BytesOut<W> {
    fn send<'a>(&'a mut self, line: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let writer = self.writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            writer.write_all(line).await?;
            writer.flush().await
        })
    }
}
