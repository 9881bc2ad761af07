//! The socket to the engine: lines in, collected lines out.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use protocols::execbox::{FromRunner, HOST_MESSAGE_BYTES_MAX};
use protocols::ndjson::Lines;
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Collected output beyond this is written at once: the engine can begin on it while the guest goes on.
const COLLECTED_BYTES_MAX: usize = 32 << 10;

/// Collected output older than this is written at once: a person may be watching a busy program print.
const COLLECTED_AGE_MAX: Duration = Duration::from_millis(20);

/// How much is asked of the socket at once, at least: a hundred small inputs. More would cost a waiting runner pages that
/// it touches for the first time just when it is in a hurry; the buffer grows by itself for large messages.
const READ_BYTES: usize = 8 << 10;

/// How long we look again and again for the answer to something we said, instead of sleeping: waking up takes as long.
const ANSWER_LOOKING_MAX: Duration = Duration::from_micros(250);

/// The same for the next program: somebody has to hear of the last one first, and to think of another.
const ERRAND_LOOKING_MAX: Duration = Duration::from_micros(200);

/// Whether to look or to sleep.
#[derive(Clone, Copy)]
struct Habit {
    looking_max: Duration,
    /// Whether the last wait was hardly longer than we would look: then the next one is expected to be short, too.
    is_quick: bool,
}

impl Habit {
    const fn new(looking_max: Duration) -> Self {
        Self { looking_max, is_quick: false }
    }

    fn learn(&mut self, waited: Duration) {
        self.is_quick = waited < self.looking_max * 3 / 2;
    }
}

/// The receiving half.
pub(crate) struct Inbox {
    stream: Rc<UnixStream>,
    lines: Lines,
    answers: Habit,
    errands: Habit,
    /// For how long we have looked instead of slept, since somebody asked.
    looked: Duration,
}

impl Inbox {
    pub(crate) fn new(stream: Rc<UnixStream>) -> Self {
        Self {
            stream,
            // What comes from the server is bounded there: a host's messages are longer than the engine's.
            lines: Lines::new(HOST_MESSAGE_BYTES_MAX),
            answers: Habit::new(ANSWER_LOOKING_MAX),
            errands: Habit::new(ERRAND_LOOKING_MAX),
            looked: Duration::ZERO,
        }
    }

    /// The next line; `None` once the other side has closed. `before_waiting` runs if none is here yet.
    pub(crate) fn line(&mut self, before_waiting: impl FnOnce()) -> io::Result<Option<&[u8]>> {
        self.next(|inbox| &mut inbox.answers, before_waiting)
    }

    /// The same where nothing is under way.
    pub(crate) fn errand(&mut self) -> io::Result<Option<&[u8]>> {
        self.next(|inbox| &mut inbox.errands, || {})
    }

    /// The next errand is not looked for.
    pub(crate) fn make_room(&mut self) {
        self.errands.is_quick = false;
    }

    fn next(
        &mut self,
        habit: fn(&mut Self) -> &mut Habit,
        before_waiting: impl FnOnce(),
    ) -> io::Result<Option<&[u8]>> {
        let mut before_waiting = Some(before_waiting);
        // Twice `take`: the borrow checker does not see that a line returned from inside a loop ends the loop.
        while !self.lines.has_line().map_err(io::Error::other)? {
            if let Some(tell) = before_waiting.take() {
                tell();
            }
            if self.read(habit)? == 0 {
                return Ok(None);
            }
        }
        self.lines.take().map_err(io::Error::other)
    }

    /// For how long we have looked instead of slept since this was last asked: the guest did nothing meanwhile.
    pub(crate) fn looked(&mut self) -> Duration {
        std::mem::take(&mut self.looked)
    }

    /// A line that is here already.
    pub(crate) fn take(&mut self) -> Option<&[u8]> {
        self.lines.take().ok().flatten()
    }

    /// Reads what the socket has, without waiting. What is wrong with it, the next `line` says.
    pub(crate) fn read_now(&mut self) {
        let _ = self.look();
    }

    fn read(&mut self, habit: fn(&mut Self) -> &mut Habit) -> io::Result<usize> {
        let began = Instant::now();
        let Habit { looking_max, is_quick } = *habit(self);
        let mut looked = Duration::ZERO;
        while is_quick && looked < looking_max {
            let seen = self.look()?;
            looked = began.elapsed();
            if let Some(n) = seen {
                self.looked += looked;
                return Ok(n);
            }
            // Whoever we wait for may need this core.
            std::thread::yield_now();
        }
        self.looked += looked;
        let n = self.sleep()?;
        habit(self).learn(began.elapsed());
        Ok(n)
    }

    /// What is there now.
    fn look(&mut self) -> io::Result<Option<usize>> {
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

    /// What comes next. Whoever sleeps in a read is also woken when the other side takes what was sent to it; whoever
    /// polls is not.
    fn sleep(&mut self) -> io::Result<usize> {
        loop {
            let mut watched = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
            match poll(&mut watched, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let Some(n) = self.look()? {
                return Ok(n);
            }
        }
    }
}

/// The sending half. Shared with the host functions and the interrupt hook, which all write now and then.
pub(crate) struct Outbox {
    stream: RefCell<Option<Rc<UnixStream>>>,
    collected: RefCell<Vec<u8>>,
    /// Processor time when the first collected byte came: between two waits it passes like the wall's.
    since: Cell<Option<Duration>>,
    broken: Cell<bool>,
}

impl Outbox {
    /// An outbox without a socket: what is sent into it is lost, as while warming up.
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

    /// Lets go of the socket.
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

    /// Writes what has lain here for long; called from the interrupt hook with the processor time so far.
    pub(crate) fn flush_if_old(&self, now: Duration) {
        match self.since.get() {
            _ if self.collected.borrow().is_empty() => {}
            None => self.since.set(Some(now)),
            Some(since) if now.saturating_sub(since) < COLLECTED_AGE_MAX => {}
            Some(_) => self.flush(),
        }
    }

    /// Writes everything.
    pub(crate) fn flush(&self) {
        self.since.set(None);
        let mut collected = self.collected.borrow_mut();
        if let Some(stream) = &*self.stream.borrow()
            && !self.broken.get()
            && !collected.is_empty()
            && (&**stream).write_all(&collected).is_err()
        {
            // The engine is gone; the next read says so too, and ends the process.
            self.broken.set(true);
        }
        collected.clear();
    }
}
