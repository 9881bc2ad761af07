//! Reads a program's output line by line, with a limit on the length of a line: the connection ends if it is exceeded.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Passes bytes on until a line is too long.
pub(super) struct BoundedLines<R> {
    from: R,
    line_bytes_max: usize,
    /// Length of the line that is being read.
    n_bytes: usize,
}

impl<R> BoundedLines<R> {
    pub(super) const fn new(from: R, line_bytes_max: usize) -> Self {
        Self { from, line_bytes_max, n_bytes: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.from).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        this.n_bytes = match read.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => read.len() - at - 1,
            None => this.n_bytes + read.len(),
        };
        if this.n_bytes > this.line_bytes_max {
            // A failed read must not return any bytes.
            buffer.set_filled(before);
            let why = format!("it sent a line of more than {} bytes", this.line_bytes_max);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn a_line_without_an_end_is_an_error_and_many_lines_are_not() {
        let mut text = String::new();
        let many = "12345678\n".repeat(1_000);
        BoundedLines::new(many.as_bytes(), 9).read_to_string(&mut text).await.unwrap();
        assert_eq!(text, many);
        let endless = tokio::io::repeat(b'x');
        let refused =
            BoundedLines::new(endless, 1 << 20).read_to_end(&mut vec![]).await.unwrap_err();
        assert_eq!(refused.to_string(), "it sent a line of more than 1048576 bytes");
    }
}
