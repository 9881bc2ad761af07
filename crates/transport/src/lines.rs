//! One message per line of a byte stream: stdio, Unix and TCP sockets, pipes within this process.

use crate::close::CloseReason;
use crate::message::{
    IncomingMessage, MessageReader, MessageTooLong, MessageWriter, ReceiveError, UnsentAmount,
};
use protocols::ndjson::LineBuffer;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Size of one read: the capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

/// Short lines are copied together up to this length, because one system call for each would cost more. A longer line
/// is written from its own buffer.
const WRITE_BYTES: usize = 16 << 10;

/// How much of the beginning of an oversized line is retained.
pub(crate) const HEAD_BYTES_MAX: usize = 4 << 10;

/// Both halves of a connection whose messages are lines of at most `bytes_max` bytes, the line break not counted.
pub fn lines<R, W>(reader: R, writer: W, bytes_max: usize) -> (LineReader<R>, LineWriter<W>) {
    (LineReader::new(reader, bytes_max), LineWriter::new(writer))
}

/// Reads messages as lines. Blank lines are ignored, and a carriage return before the line break is not part of the
/// line.
pub struct LineReader<R> {
    stream: R,
    lines: LineBuffer,
    bytes_max: usize,
    /// Whether an oversized line is skipped instead of ending the connection.
    skips: bool,
    /// The beginning of an oversized line, and its length once its end has arrived.
    oversized: Option<(Vec<u8>, Option<usize>)>,
    /// The beginning that was returned last.
    head: Vec<u8>,
}

impl<R> LineReader<R> {
    /// Creates a reader for which a line of more than `bytes_max` bytes ends the connection.
    pub const fn new(stream: R, bytes_max: usize) -> Self {
        // One more byte for a carriage return.
        let lines = LineBuffer::new(bytes_max.saturating_add(1));
        Self { stream, lines, bytes_max, skips: false, oversized: None, head: Vec::new() }
    }

    /// Like `new`, but an oversized line is skipped: its beginning is [`IncomingMessage::Oversized`].
    #[must_use]
    pub fn skipping_oversized(self) -> Self {
        Self { skips: true, ..self }
    }

    /// Whether a message is ready to be taken.
    fn has_arrival(&mut self) -> Result<bool, MessageTooLong> {
        loop {
            if let Some((_, length)) = &mut self.oversized {
                *length = length.or_else(|| self.lines.skip_line());
                return Ok(length.is_some());
            }
            let is_whole = self.lines.has_line();
            if is_whole == Ok(false) {
                return Ok(false);
            }
            let line = trimmed(self.lines.peek());
            if line.len() > self.bytes_max || is_whole.is_err() {
                if !self.skips {
                    let bytes = is_whole.is_ok().then_some(line.len());
                    return Err(MessageTooLong { bytes, bytes_max: self.bytes_max });
                }
                let head = line[..line.len().min(HEAD_BYTES_MAX)].to_vec();
                self.oversized = Some((head, None));
            } else if line.trim_ascii().is_empty() {
                self.lines.skip_line();
            } else {
                return Ok(true);
            }
        }
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

impl<R: AsyncRead + Unpin + Send> MessageReader for LineReader<R> {
    fn poll_arrival(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ReceiveError>> {
        while !self.has_arrival()? {
            let mut room = ReadBuf::new(self.lines.room(READ_BYTES));
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut room))?;
            let n = room.filled().len();
            if n == 0 {
                return Poll::Ready(Err(ReceiveError::Closed(None)));
            }
            self.lines.filled(n);
        }
        Poll::Ready(Ok(()))
    }

    fn take(&mut self) -> IncomingMessage<'_> {
        if let Some((head, bytes)) = self.oversized.take() {
            self.head = head;
            let size = MessageTooLong { bytes, bytes_max: self.bytes_max };
            return IncomingMessage::Oversized { head: &self.head, size };
        }
        let line = self.lines.take_mut().ok().flatten().unwrap_or_default();
        let length = trimmed(line).len();
        IncomingMessage::Whole(&mut line[..length])
    }
}

impl<R> fmt::Debug for LineReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineReader").field("bytes_max", &self.bytes_max).finish_non_exhaustive()
    }
}

/// Writes messages as lines.
pub struct LineWriter<W> {
    stream: W,
    /// Lines to be written; short ones are joined.
    chunks: VecDeque<LineChunk>,
    /// How much of the first chunk is written.
    written: usize,
    unsent: UnsentAmount,
    is_flushed: bool,
    closing: ClosingStep,
}

struct LineChunk {
    bytes: Vec<u8>,
    n_lines: usize,
}

/// The state of closing a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClosingStep {
    Open,
    Queued,
    Done,
}

impl<W> LineWriter<W> {
    /// Nothing is written before [`MessageWriter::poll_flush`].
    pub const fn new(stream: W) -> Self {
        Self {
            stream,
            chunks: VecDeque::new(),
            written: 0,
            unsent: UnsentAmount { messages: 0, bytes: 0 },
            is_flushed: true,
            closing: ClosingStep::Open,
        }
    }
}

impl<W: AsyncWrite + Unpin + Send> MessageWriter for LineWriter<W> {
    fn enqueue(&mut self, text: String) {
        if self.closing != ClosingStep::Open {
            return;
        }
        let mut line = text.into_bytes();
        line.push(b'\n');
        self.unsent.messages += 1;
        self.unsent.bytes += line.len();
        match self.chunks.back_mut() {
            Some(last) if last.bytes.len() + line.len() <= WRITE_BYTES => {
                last.bytes.extend_from_slice(&line);
                last.n_lines += 1;
            }
            Some(_) | None => self.chunks.push_back(LineChunk { bytes: line, n_lines: 1 }),
        }
    }

    fn enqueue_ping(&mut self, _number: u64) {}

    fn enqueue_close(&mut self, _reason: Option<CloseReason>) {
        if self.closing == ClosingStep::Open {
            self.closing = ClosingStep::Queued;
        }
    }

    fn unsent(&self) -> UnsentAmount {
        self.unsent
    }

    fn discard_unsent(&mut self) {
        // A partly written line must be completed.
        let n_begun = usize::from(self.written > 0);
        for chunk in self.chunks.drain(n_begun.min(self.chunks.len())..) {
            self.unsent.messages -= chunk.n_lines;
            self.unsent.bytes -= chunk.bytes.len();
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(chunk) = self.chunks.front() {
            let rest = &chunk.bytes[self.written..];
            let n = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.is_flushed = false;
            self.unsent.bytes -= n;
            self.written += n;
            if self.written == chunk.bytes.len() {
                self.unsent.messages -= chunk.n_lines;
                self.written = 0;
                self.chunks.pop_front();
            }
        }
        if !self.is_flushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.is_flushed = true;
        }
        if self.closing == ClosingStep::Queued {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.closing = ClosingStep::Done;
        }
        Poll::Ready(Ok(()))
    }

    fn has_control_frames(&self) -> bool {
        false
    }
}

impl<W> fmt::Debug for LineWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineWriter").field("unsent", &self.unsent).finish_non_exhaustive()
    }
}
