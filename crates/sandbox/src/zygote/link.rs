//! The server's end of a runner's link. It is registered for readability only.
//!
//! A socket that is also registered for writability wakes its task each time the other side has read: two
//! wake-ups for every message, one of which is useless. The socket nearly always has buffer space, so
//! writability is only awaited after a write has found none.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// One end of a link. Its reads and writes never block.
#[derive(Debug)]
pub(crate) struct ZygoteSocket {
    stream: Arc<UnixStream>,
    /// Its registration with the runtime; `None` before a lease first blocks. Most answers come while the
    /// lease still spins.
    watched: Option<AsyncFd<Arc<UnixStream>>>,
}

impl ZygoteSocket {
    /// Creates both ends: ours and the runner's.
    pub(crate) fn pair() -> io::Result<(Self, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((Self { stream: Arc::new(ours), watched: None }, theirs))
    }

    /// Reads what has arrived; `WouldBlock` if nothing has.
    pub(crate) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        match &self.watched {
            Some(watched) => watched.try_io(Interest::READABLE, |stream| (&**stream).read(into)),
            None => self.read_now(into),
        }
    }

    /// As `try_read`, without waiting for readiness first.
    pub(crate) fn read_now(&self, into: &mut [u8]) -> io::Result<usize> {
        (&*self.stream).read(into)
    }

    /// Writes as much as fits into the socket's buffer; `WouldBlock` if nothing fits.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.stream).write(bytes)
    }

    /// Registers it with the runtime, once.
    pub(crate) fn watch(&mut self) -> io::Result<()> {
        if self.watched.is_none() {
            self.watched = Some(listening(Arc::clone(&self.stream))?);
        }
        Ok(())
    }

    /// Waits until input may have arrived, or the other side has closed; for ever if the link is not
    /// registered.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        match &self.watched {
            Some(watched) => watched.readable().await.map(|mut ready| ready.retain_ready()),
            None => std::future::pending().await,
        }
    }

    /// Waits until the socket may have buffer space.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        writable(self.stream.as_fd()).await
    }
}

/// Registers a socket with the runtime for readability.
pub(super) fn listening<S: AsFd + std::os::fd::AsRawFd>(socket: S) -> io::Result<AsyncFd<S>> {
    // SAFETY: the kinds of socket given here own their descriptor, or share in it, and never replace or close it while
    // they live.
    unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }.map_err(io::Error::from)
}

/// Waits until a socket may have buffer space. Uses a second descriptor, so that the registration of the
/// first is not disturbed.
pub(crate) async fn writable(socket: BorrowedFd<'_>) -> io::Result<()> {
    let second: OwnedFd = socket.try_clone_to_owned()?;
    // SAFETY: the descriptor was just created, and is owned by the registered value.
    let watched = unsafe { AsyncFd::register_with_interest(second, Interest::WRITABLE) };
    watched.map_err(io::Error::from)?.writable().await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(link: &ZygoteSocket) -> usize {
        let mut n = 0;
        loop {
            match link.try_write(&[7; 4_096]) {
                Ok(written) => n += written,
                Err(full) => {
                    assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
                    return n;
                }
            }
        }
    }

    #[tokio::test]
    async fn whoever_finds_no_room_is_told_when_there_is() {
        let (link, mut theirs) = ZygoteSocket::pair().unwrap();
        let n = fill(&link);
        let reader = std::thread::spawn(move || {
            let mut read = vec![0; n];
            theirs.read_exact(&mut read).map(|()| theirs)
        });
        link.writable().await.unwrap();
        let _theirs = reader.join().unwrap().unwrap();
        assert_eq!(link.try_write(&[1, 2, 3]).unwrap(), 3);
    }

    #[tokio::test]
    async fn what_comes_is_heard_and_so_is_the_end() {
        let (mut link, mut theirs) = ZygoteSocket::pair().unwrap();
        link.watch().unwrap();
        let mut into = [0; 8];
        assert_eq!(link.try_read(&mut into).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        theirs.write_all(b"abc").unwrap();
        link.readable().await.unwrap();
        assert_eq!(link.try_read(&mut into).unwrap(), 3);
        drop(theirs);
        loop {
            link.readable().await.unwrap();
            match link.try_read(&mut into) {
                Ok(n) => break assert_eq!(n, 0),
                Err(nothing) => assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock),
            }
        }
    }
}
