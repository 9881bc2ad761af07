//! The body of an HTTP response as a stream of bytes.

use hyper::body::{Body as _, Bytes, Incoming};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// The body of an HTTP response as a stream of bytes.
#[derive(Debug)]
pub(super) struct BodySource {
    body: Incoming,
    /// Bytes that have arrived and are not read yet.
    rest: Bytes,
}

impl BodySource {
    pub(super) const fn new(body: Incoming) -> Self {
        Self { body, rest: Bytes::new() }
    }
}

impl AsyncRead for BodySource {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
                return Poll::Ready(Ok(()));
            };
            if let Ok(data) = frame.map_err(io::Error::other)?.into_data() {
                self.rest = data;
            }
        }
        let n = self.rest.len().min(room.remaining());
        room.put_slice(&self.rest.split_to(n));
        Poll::Ready(Ok(()))
    }
}
