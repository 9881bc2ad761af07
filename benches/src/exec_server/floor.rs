//! The least that could do the job: fork, exec and a read in a bare loop, a terminal without an emulator, and
//! messages that are echoed.
#![expect(unsafe_code, reason = "a terminal has no safe interface")]

use super::peer::{Transport, connect};
use crate::apart::Apart;
use crate::floor_process::Helper;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};
use tokio_tungstenite::tungstenite::{self, Message};

/// The capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

/// A program that runs, over a pipe.
pub(super) struct Bare(Child);

impl Bare {
    #[expect(clippy::disallowed_methods, reason = "whoever starts it hears it to its end")]
    pub(super) fn start(argv: &[&str]) -> Result<Self> {
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Self(command.spawn()?))
    }

    /// Starts it and reads its output to the end, on two cores: a program and a server that reads it run in parallel.
    /// On one core they would take turns over the contents of its cache, which is twice as fast, but only the scheduler
    /// could choose it.
    pub(super) fn heard_apart(argv: &[&str]) -> Result<usize> {
        let started = {
            let _apart = Apart::answering()?;
            Self::start(argv)?
        };
        let _apart = Apart::asking()?;
        started.finish()
    }

    /// Reads its output to the end; returns the number of bytes.
    pub(super) fn finish(mut self) -> Result<usize> {
        let mut n_bytes = 0;
        let (stdout, stderr) = (self.0.stdout.take(), self.0.stderr.take());
        n_bytes += drain(&mut stdout.context("its output is a pipe")?)?;
        n_bytes += drain(&mut stderr.context("so are its errors")?)?;
        ensure!(self.0.wait()?.success(), "the program failed");
        Ok(n_bytes)
    }
}

fn drain(from: &mut impl io::Read) -> Result<usize> {
    let (mut room, mut n_bytes) = (vec![0; READ_BYTES], 0);
    loop {
        match from.read(&mut room) {
            Ok(0) => return Ok(n_bytes),
            Ok(n) => n_bytes += n,
            // The kernel reports this when every process has closed the terminal.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => return Ok(n_bytes),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The kernel's processing of a program's output to a terminal.
#[expect(clippy::disallowed_methods, reason = "it is awaited here")]
pub(super) fn through_terminal(argv: &[&str]) -> Result<usize> {
    let (mut ours, theirs) = terminal()?;
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::from(theirs)).spawn()?;
    // The command holds the other end, too.
    drop(command);
    let n_bytes = drain(&mut ours)?;
    ensure!(child.wait()?.success(), "the program failed");
    Ok(n_bytes)
}

fn terminal() -> Result<(File, OwnedFd)> {
    let (mut ours, mut theirs) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: the kernel makes two descriptors and writes their numbers where they belong; names, settings and size
    // are not asked for.
    let made =
        unsafe { libc::openpty(&raw mut ours, &raw mut theirs, none, none.cast(), none.cast()) };
    if made < 0 {
        return Err(io::Error::last_os_error().into());
    }
    // SAFETY: both were just made for us, and no other code knows their numbers.
    let both = unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
    for descriptor in [ours, theirs] {
        // SAFETY: the call changes a flag of a descriptor that is ours. A child must not hold our end open.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(both)
}

/// The round trip of a message: from another process over a pipe, or from a thread over a WebSocket.
pub(super) enum RoundTrip {
    Lines(Box<Helper>),
    Frames(Box<tungstenite::WebSocket<std::net::TcpStream>>),
}

/// About the size of the smallest request.
const MESSAGE: &str =
    r#"{"id":17,"method":"process/write","params":{"processId":"p1","chunk":"eA=="}}"#;

impl RoundTrip {
    pub(super) fn new(transport: Transport) -> Result<Self> {
        match transport {
            Transport::Stdio => {
                Ok(Self::Lines(Box::new(Helper::echo(MESSAGE.as_bytes(), MESSAGE.as_bytes())?)))
            }
            Transport::WebSocket => {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                let address = listener.local_addr()?;
                std::thread::spawn(move || echo(&listener));
                Ok(Self::Frames(Box::new(connect(&format!("ws://{address}"))?)))
            }
        }
    }

    pub(super) fn go(&mut self) -> Result<()> {
        match self {
            Self::Lines(helper) => helper.ask(MESSAGE.as_bytes()),
            Self::Frames(socket) => {
                socket.send(Message::text(MESSAGE))?;
                ensure!(socket.read()?.is_text(), "another message came back");
                Ok(())
            }
        }
    }
}

/// Echoes messages until the client leaves, from another core: a server is not a thread of its client.
fn echo(listener: &TcpListener) -> Result<()> {
    let _apart = Apart::answering()?;
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut socket = tungstenite::accept(stream).map_err(|error| anyhow::anyhow!("{error}"))?;
    loop {
        let message = socket.read()?;
        if message.is_text() {
            socket.send(message)?;
        }
    }
}
