//! The server's ends of a process's streams: pipes or a terminal, read and written without waiting.
#![expect(unsafe_code, reason = "terminals and the watching of descriptors have no safe interface")]

use crate::output::{CHUNK_BYTES_MAX, OutputStream};
use crate::spec::{PipeInput, ProcessStreams, PtySize};
use bytes::Bytes;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::stat::Mode;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

/// The server's ends.
pub(crate) struct ParentEnds {
    pub(crate) sources: Vec<OutputSource>,
    pub(crate) input: Option<InputSink>,
    pub(crate) terminal: Option<PtyHandle>,
}

/// The program's ends: input, output, errors.
pub(crate) type ChildStreams = [OwnedFd; 3];

/// Creates both ends.
pub(crate) fn open_streams(streams: ProcessStreams) -> io::Result<(ParentEnds, ChildStreams)> {
    match streams {
        ProcessStreams::Pipes(input) => pipes(input),
        ProcessStreams::Terminal(size) => terminal(size),
    }
}

fn pipes(input: PipeInput) -> io::Result<(ParentEnds, ChildStreams)> {
    let (stdout, their_stdout) = io::pipe()?;
    let (stderr, their_stderr) = io::pipe()?;
    let (input, stdin) = match input {
        PipeInput::Null => (None, OwnedFd::from(File::open("/dev/null")?)),
        PipeInput::Pipe => {
            let (theirs, ours) = io::pipe()?;
            (Some(InputSink(Arc::new(watched(ours.into())?))), theirs.into())
        }
    };
    let source = |stream, end: io::PipeReader| {
        let end = Arc::new(watched(end.into())?);
        Ok::<_, io::Error>(OutputSource { stream, end, is_usual_pipe: true, retry_at: None })
    };
    let sources =
        vec![source(OutputStream::Stdout, stdout)?, source(OutputStream::Stderr, stderr)?];
    let ends = ParentEnds { sources, input, terminal: None };
    Ok((ends, [stdin, their_stdout.into(), their_stderr.into()]))
}

fn terminal(size: PtySize) -> io::Result<(ParentEnds, ChildStreams)> {
    let ours = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let theirs = open(ptsname_r(&ours)?.as_str(), flags, Mode::empty())?;
    // SAFETY: its owner released the number in the same statement.
    let ours = unsafe { OwnedFd::from_raw_fd(ours.into_raw_fd()) };
    let end = Arc::new(watched(ours)?);
    let terminal = PtyHandle(Arc::downgrade(&end));
    terminal.resize(size)?;
    let source = OutputSource {
        stream: OutputStream::Terminal,
        end: Arc::clone(&end),
        is_usual_pipe: false,
        retry_at: None,
    };
    let ends =
        ParentEnds { sources: vec![source], input: Some(InputSink(end)), terminal: Some(terminal) };
    Ok((ends, [theirs.try_clone()?, theirs.try_clone()?, theirs]))
}

type StreamEnd = AsyncFd<File>;

fn watched(descriptor: OwnedFd) -> io::Result<StreamEnd> {
    fcntl(&descriptor, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    // SAFETY: a `File` owns its descriptor until it is dropped, which is after the registration ends.
    Ok(unsafe { AsyncFd::register(File::from(descriptor)) }?)
}

/// How long to wait before another attempt on a stream that the runtime reports as hung up and that would block
/// nevertheless. Tokio never clears the closed state of a descriptor, so that waiting for readiness returns immediately
/// from then on. A terminal is in that state after its last program has closed it, with input that was not read; it
/// leaves the state when a program opens it again.
const HUNG_UP_RETRY_TIME: Duration = Duration::from_millis(50);

/// The result of a read.
pub(crate) enum StreamRead {
    Bytes(Bytes),
    /// Nothing is available yet.
    Nothing,
    /// The end of the stream.
    End,
}

/// One stream of a program's output.
#[derive(Debug)]
pub(crate) struct OutputSource {
    pub(crate) stream: OutputStream,
    end: Arc<StreamEnd>,
    /// Whether it is a pipe of the default size.
    is_usual_pipe: bool,
    /// When to read again from a stream that is hung up and would block: its readiness is meaningless.
    retry_at: Option<Instant>,
}

/// The size of a pipe whose writer had to wait: large enough that both sides seldom wait for each other.
/// Others retain the default size: the memory of a user's pipes is limited.
const LARGE_PIPE_BYTES: libc::c_int = 512 << 10;

thread_local! {
    /// The buffer of one read. Small pieces are copied out at their size, because most are small and many
    /// processes are idle; a large one takes the buffer with it.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(vec![]) };
}

/// Pieces of at least this size take the buffer instead of being copied.
const LARGE_PIECE_BYTES: usize = CHUNK_BYTES_MAX / 2;

impl OutputSource {
    /// Waits until there is something to read.
    pub(crate) async fn ready(&self) {
        if let Some(retry_at) = self.retry_at {
            return tokio::time::sleep_until(retry_at).await;
        }
        // The only error is a runtime that is shutting down, which the next read reports.
        if let Ok(guard) = self.end.readable().await {
            // Reading clears it.
            drop(guard);
        }
    }

    /// Reads available input as one piece after a readiness event. If there is none, the next event is
    /// awaited; one that arrives during the read is not lost.
    pub(crate) fn read_announced(&mut self) -> StreamRead {
        let heard = self.piece(|room| {
            self.end.try_io(tokio::io::Interest::READABLE, |mut file| file.read(room))
        });
        let is_stuck = matches!(heard, StreamRead::Nothing) && self.is_hung_up();
        self.retry_at = is_stuck.then(|| Instant::now() + HUNG_UP_RETRY_TIME);
        if matches!(&heard, StreamRead::Bytes(bytes) if bytes.len() == CHUNK_BYTES_MAX)
            && std::mem::take(&mut self.is_usual_pipe)
        {
            // If that is refused, the size stays as it is.
            let _ = fcntl(self.end.get_ref(), FcntlArg::F_SETPIPE_SZ(LARGE_PIPE_BYTES));
        }
        heard
    }

    /// Whether the runtime reports the stream as closed by the other side, which it then does for ever.
    fn is_hung_up(&self) -> bool {
        let readable = pin!(self.end.readable());
        match readable.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(guard)) => guard.ready().is_read_closed(),
            Poll::Ready(Err(_)) | Poll::Pending => false,
        }
    }

    /// Reads available input as one piece, without waiting for readiness.
    pub(crate) fn hear_now(&self) -> StreamRead {
        self.piece(|room| self.end.get_ref().read(room))
    }

    fn piece(&self, read: impl FnMut(&mut [u8]) -> io::Result<usize>) -> StreamRead {
        ROOM.with_borrow_mut(|room| {
            room.resize(CHUNK_BYTES_MAX, 0);
            match self.fill(room, read) {
                Ok(0) => StreamRead::End,
                Ok(n) if n < LARGE_PIECE_BYTES => {
                    StreamRead::Bytes(Bytes::copy_from_slice(&room[..n]))
                }
                Ok(n) => {
                    room.truncate(n);
                    StreamRead::Bytes(std::mem::take(room).into())
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => StreamRead::Nothing,
                // A terminal that all programs have closed returns EIO.
                Err(_) => StreamRead::End,
            }
        })
    }

    /// A terminal returns 4 kB at a time; all available output becomes one piece.
    fn fill(
        &self,
        room: &mut [u8],
        mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut n = 0;
        loop {
            match read(&mut room[n..]) {
                Ok(0) => return Ok(n),
                Ok(more) => {
                    n += more;
                    if n == room.len() || self.stream != OutputStream::Terminal {
                        return Ok(n);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The next read encounters the end again.
                Err(_) if n > 0 => return Ok(n),
                Err(error) => return Err(error),
            }
        }
    }
}

/// The input of a program.
#[derive(Debug)]
pub(crate) struct InputSink(Arc<StreamEnd>);

impl InputSink {
    /// Writes as much as fits now, after waiting until anything fits. After an error no more can be written.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let mut guard = self.0.writable().await?;
            let is_hung_up = guard.ready().is_write_closed();
            match guard.try_io(|end| end.get_ref().write(bytes)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(answer) => return answer,
                // Its readiness is never cleared: without a pause this loop would occupy the thread for ever.
                Err(_would_block) if is_hung_up => {
                    tokio::time::sleep(HUNG_UP_RETRY_TIME).await;
                }
                Err(_would_block) => {}
            }
        }
    }
}

/// Sets the size of a terminal. The handle does not hold the terminal of an ended process open.
#[derive(Debug, Clone)]
pub(crate) struct PtyHandle(Weak<StreamEnd>);

impl PtyHandle {
    /// Changes the size; the kernel signals the programs.
    pub(crate) fn resize(&self, size: PtySize) -> io::Result<()> {
        let end = self.0.upgrade().ok_or(io::ErrorKind::NotConnected)?;
        let size =
            libc::winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the kernel reads one winsize, which is what is there.
        let answer =
            unsafe { libc::ioctl(end.get_ref().as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
