//! A connection's socket, and its slot in the table: held until the socket is closed, also as a WebSocket.

use crate::edge::ConnectionGuard;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The socket of an accepted connection.
pub(crate) struct AcceptedSocket {
    stream: TcpStream,
    place: ConnectionGuard,
}

impl AcceptedSocket {
    pub(crate) fn new(stream: TcpStream, place: ConnectionGuard) -> io::Result<Self> {
        // An answer is one small write: Nagle's algorithm would only delay it.
        stream.set_nodelay(true)?;
        Ok(Self { stream, place })
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.get_mut().stream)
    }

    /// Records whether the client accepts what is sent.
    fn noted<T>(&self, written: Poll<T>) -> Poll<T> {
        self.place.0.set_blocked(written.is_pending());
        written
    }
}

impl AsyncRead for AcceptedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(refusal) = self.place.0.last_words() {
            // Nothing was sent on the socket, so its buffer has space for an answer. The connection then ends.
            let _ = self.stream.try_write(&refusal.bytes());
            return Poll::Ready(Ok(()));
        }
        self.stream().poll_read(cx, buf)
    }
}

impl AsyncWrite for AcceptedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.as_mut().stream().poll_write(cx, buf);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.as_mut().stream().poll_write_vectored(cx, bufs);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}
