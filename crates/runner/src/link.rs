//! The socket to the engine: lines in, collected lines out.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use protocols::execbox::{FromRunner, HOST_MESSAGE_BYTES_MAX};
use protocols::ndjson::LineBuffer;
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

/// Collected output beyond this is written immediately: the engine can process it while the guest
/// continues.
const COLLECTED_BYTES_MAX: usize = 32 << 10;

/// Collected output older than this is written immediately: a person may be watching a busy program print.
const COLLECTED_AGE_MAX: Duration = Duration::from_millis(20);

/// The smallest read from the socket: a hundred small inputs. A larger one would cost a waiting runner
/// pages that it touches for the first time just when latency matters; the buffer grows for large messages.
const READ_BYTES: usize = 8 << 10;

/// The receiving half.
pub(crate) struct LinkReader {
    stream: Rc<UnixStream>,
    lines: LineBuffer,
}

impl LinkReader {
    pub(crate) fn new(stream: Rc<UnixStream>) -> Self {
        Self {
            stream,
            // The server bounds its messages on its side: a host's messages are longer than the engine's.
            lines: LineBuffer::new(HOST_MESSAGE_BYTES_MAX),
        }
    }

    /// The next line; `None` once the other side has closed. `before_waiting` runs if no line has arrived
    /// yet.
    pub(crate) fn line(&mut self, before_waiting: impl FnOnce()) -> io::Result<Option<&[u8]>> {
        let mut before_waiting = Some(before_waiting);
        // Twice `take`: the borrow checker does not see that a line returned from inside a loop ends the loop.
        while !self.lines.has_line().map_err(io::Error::other)? {
            if let Some(tell) = before_waiting.take() {
                tell();
            }
            if self.read()? == 0 {
                return Ok(None);
            }
        }
        self.lines.take().map_err(io::Error::other)
    }

    /// The next line, if it has already arrived.
    pub(crate) fn take(&mut self) -> Option<&[u8]> {
        self.lines.take().ok().flatten()
    }

    /// Reads what the socket has, without waiting. The next `line` reports errors.
    pub(crate) fn read_now(&mut self) {
        let _ = self.try_read();
    }

    /// Reads what the socket has; `None` if there is nothing.
    fn try_read(&mut self) -> io::Result<Option<usize>> {
        let room = self.lines.room(READ_BYTES);
        match recv(self.stream.as_raw_fd(), room, MsgFlags::MSG_DONTWAIT) {
            Ok(n) => {
                self.lines.filled(n);
                Ok(Some(n))
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for input. A process that blocks in a read is also woken when the other side consumes what was
    /// sent to it; a process that polls is not.
    fn read(&mut self) -> io::Result<usize> {
        loop {
            let mut watched = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
            match poll(&mut watched, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let Some(n) = self.try_read()? {
                return Ok(n);
            }
        }
    }
}

/// The sending half. Shared with the host functions and the interrupt hook, which all write occasionally.
pub(crate) struct LinkWriter {
    stream: RefCell<Option<Rc<UnixStream>>>,
    collected: RefCell<Vec<u8>>,
    /// Processor time when the first collected byte arrived: between two waits it advances like wall-clock
    /// time.
    since: Cell<Option<Duration>>,
    broken: Cell<bool>,
}

impl LinkWriter {
    /// A writer without a socket: what is sent is discarded, as during the warm-up.
    pub(crate) fn unconnected() -> Self {
        Self {
            stream: RefCell::new(None),
            collected: RefCell::new(Vec::with_capacity(COLLECTED_BYTES_MAX)),
            since: Cell::new(None),
            broken: Cell::new(false),
        }
    }

    pub(crate) fn connect(&self, stream: Rc<UnixStream>) {
        self.collected.borrow_mut().clear();
        self.since.set(None);
        *self.stream.borrow_mut() = Some(stream);
    }

    /// Releases the socket.
    pub(crate) fn disconnect(&self) {
        self.stream.borrow_mut().take();
    }

    pub(crate) fn send(&self, message: &FromRunner<'_>) {
        self.send_with(|collected| message.encode(collected));
    }

    /// Sends what `encode` appends: whole lines.
    pub(crate) fn send_with(&self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut collected = self.collected.borrow_mut();
        encode(&mut collected);
        let full = collected.len() > COLLECTED_BYTES_MAX;
        drop(collected);
        if full {
            self.flush();
        }
    }

    /// Writes output that has been collected for too long; called from the interrupt hook with the
    /// processor time so far.
    pub(crate) fn flush_if_old(&self, now: Duration) {
        match self.since.get() {
            _ if self.collected.borrow().is_empty() => {}
            None => self.since.set(Some(now)),
            Some(since) if now.saturating_sub(since) < COLLECTED_AGE_MAX => {}
            Some(_) => self.flush(),
        }
    }

    /// Writes all collected output.
    pub(crate) fn flush(&self) {
        self.since.set(None);
        let mut collected = self.collected.borrow_mut();
        if let Some(stream) = &*self.stream.borrow()
            && !self.broken.get()
            && !collected.is_empty()
            && (&**stream).write_all(&collected).is_err()
        {
            // The engine has closed the link; the next read notices that too, and ends the process.
            self.broken.set(true);
        }
        collected.clear();
    }
}
