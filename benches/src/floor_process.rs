//! Processes that serve as floors: this binary again, under a hidden verb, with a socket as its standard input.
#![expect(unsafe_code, reason = "fork and waitpid have no safe interface")]

use crate::apart::Apart;
use crate::mcp::echo as mcp_echo;
use crate::runner as runner_bench;
use anyhow::{Context, Result, bail, ensure};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitCode, Stdio};

/// The verb of a helper that answers every request with the same bytes.
const ECHO: &str = "__echo";
/// The verb of a helper that forks a warmed-up process for every request.
const FORK: &str = "__fork";

/// The verb of a process that connects to the address after it, reports that and exits.
pub(crate) const CONNECT: &str = "__connect";

/// Longest request or answer of a helper: a few lines of the link.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The environment in which sandboxes start their zygotes; the same image needs the same environment.
const ENVIRONMENT: [(&str, &str); 2] =
    [("TZ", "UTC"), ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-FMA,-AVX2")];

/// Call early in `main`: if this process was started as a helper, runs it and returns its exit code.
pub(crate) fn enter_if_asked() -> Option<ExitCode> {
    let verb = std::env::args_os().nth(1)?;
    let served = match verb.to_str()? {
        runner_bench::NULL => runner_bench::null(),
        mcp_echo::VERB => mcp_echo::serve(),
        CONNECT => connect(),
        ECHO => with_link(echo),
        FORK => with_link(fork_on_request),
        _ => return None,
    };
    Some(if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn connect() -> Result<()> {
    TcpStream::connect(std::env::args().nth(2).unwrap_or_default())?;
    Ok(io::stdout().write_all(b"connected\n")?)
}

fn with_link(serve: fn(&mut UnixStream) -> Result<()>) -> Result<()> {
    let link = io::stdin().as_fd().try_clone_to_owned()?;
    serve(&mut UnixStream::from(link))
}

/// A helper process. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Helper {
    child: Child,
    link: UnixStream,
    answer: Vec<u8>,
}

impl Helper {
    /// Starts a helper that reads as many bytes as `request` has and writes `answer`, repeatedly.
    pub(crate) fn echo(request: &[u8], answer: &[u8]) -> Result<Self> {
        ensure!(request.len().max(answer.len()) <= MESSAGE_BYTES_MAX, "too long for a helper");
        let mut helper = Self::start(ECHO)?;
        helper.answer = answer.to_vec();
        helper.send(request)?;
        helper.send(answer)?;
        Ok(helper)
    }

    /// Starts a helper that warms up and then, for each byte, forks, has the copy run the `execute` line, kills it
    /// and reaps it.
    pub(crate) fn fork(execute: &[u8]) -> Result<Self> {
        ensure!(execute.len() <= MESSAGE_BYTES_MAX, "too long for a helper");
        let mut helper = Self::start(FORK)?;
        helper.answer = vec![1];
        helper.send(execute)?;
        Ok(helper)
    }

    /// Sends a request and reads the answer.
    pub(crate) fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.link.write_all(request)?;
        self.link.read_exact(&mut self.answer).context("the helper is gone")
    }

    #[expect(clippy::disallowed_methods, reason = "a floor is a process that no room owns")]
    fn start(verb: &str) -> Result<Self> {
        let (link, theirs) = UnixStream::pair()?;
        let child = Command::new(std::env::current_exe()?)
            .arg(verb)
            .env_clear()
            .envs(ENVIRONMENT)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()
            .context("start a helper")?;
        Ok(Self { child, link, answer: vec![] })
    }

    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.link.write_all(&(message.len() as u64).to_ne_bytes())?;
        Ok(self.link.write_all(message)?)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // Its next read returns the end, and it exits.
        drop(self.link.shutdown(Shutdown::Both));
        drop(self.child.wait());
    }
}

fn receive(link: &mut UnixStream) -> Result<Vec<u8>> {
    let mut length = [0; 8];
    link.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_ne_bytes(length))?;
    ensure!(length <= MESSAGE_BYTES_MAX, "too long for a helper");
    let mut message = vec![0; length];
    link.read_exact(&mut message)?;
    Ok(message)
}

fn echo(link: &mut UnixStream) -> Result<()> {
    let _apart = Apart::answering()?;
    let (mut request, answer) = (receive(link)?, receive(link)?);
    while link.read_exact(&mut request).is_ok() {
        link.write_all(&answer)?;
    }
    Ok(())
}

fn fork_on_request(link: &mut UnixStream) -> Result<()> {
    let execute = receive(link)?;
    let world = runner::GuestWorld::warm();
    let (mut request, mut said) = ([0], vec![0; MESSAGE_BYTES_MAX]);
    while link.read_exact(&mut request).is_ok() {
        let (mut ours, theirs) = UnixStream::pair()?;
        ours.write_all(&execute)?;
        // SAFETY: this process has never started a thread, so the copy finds every lock free.
        match unsafe { libc::fork() } {
            0 => {
                drop(ours);
                let code = world.serve(theirs);
                // SAFETY: _exit takes a number and does not return. Nothing of the parent's may run twice.
                unsafe { libc::_exit(code) }
            }
            -1 => return Err(io::Error::last_os_error().into()),
            child => {
                drop(theirs);
                read_until_done(&mut ours, &mut said)?;
                end(child)?;
            }
        }
        link.write_all(&[1])?;
    }
    Ok(())
}

/// `started` and `done` are two lines; a program without calls or output sends nothing else.
fn read_until_done(link: &mut UnixStream, said: &mut [u8]) -> Result<()> {
    let mut n_lines = 0;
    while n_lines < 2 {
        match link.read(said)? {
            0 => bail!("the copy ended early"),
            n => n_lines += said[..n].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
    Ok(())
}

/// Ends a copy as a sandbox ends its runners: with a kill, because its remaining work does not matter.
fn end(child: libc::pid_t) -> Result<()> {
    let mut status = 0;
    // SAFETY: the child is ours and not yet reaped, so the number is no other process's; the kernel writes one status, which
    // is what is there.
    let reaped = unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, &raw mut status, 0)
    };
    ensure!(reaped == child, "the copy could not be reaped");
    let is_killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
    ensure!(is_killed, "the copy ended by itself");
    Ok(())
}
