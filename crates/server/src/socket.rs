//! A connection's socket, and its place among all connections: kept until the socket is gone, also as a WebSocket.

use crate::lanes::Seat;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

/// What a connection holds for as long as it is open.
pub(crate) struct Place {
    pub(crate) _among_all: OwnedSemaphorePermit,
    pub(crate) _in_lane: Seat,
}

/// The socket of an accepted connection.
pub(crate) struct Socket {
    stream: TcpStream,
    _place: Place,
}

impl Socket {
    /// In the runtime of its lane.
    pub(crate) fn new(stream: std::net::TcpStream, place: Place) -> io::Result<Self> {
        // An answer is one small write: waiting for more to send would only delay it.
        stream.set_nodelay(true)?;
        Ok(Self { stream: TcpStream::from_std(stream)?, _place: place })
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, bufs)
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
