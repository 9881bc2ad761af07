//! One leased runner: lines in, lines out, and its end.

use crate::error::RunnerGone;
use crate::exit::RunnerExit;
use crate::fork_request::Runner;
use crate::sandbox::SandboxShared;
use crate::spin::{self, SpinWait};
use crate::zygote::PinnedProcess;
use protocols::execbox::MESSAGE_BYTES_MAX;
use protocols::ndjson::LineBuffer;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Limit of input that waits for a runner to read it. It is more than any execution may move in total.
const UNSENT_BYTES_MAX: usize = 128 << 20;

/// The first and the largest size of a read: most programs write little, and a socket holds no more.
const READ_BYTES_FIRST: usize = 1_000;
const READ_BYTES_MAX: usize = 64 << 10;

/// A leased runner. Dropping it kills the runner.
#[derive(Debug)]
pub struct Lease {
    runner: Runner,
    shared: Arc<SandboxShared>,
    caller: Option<String>,
    lines: LineBuffer,
    /// The size of the next read.
    read_bytes: usize,
    unsent: Vec<u8>,
    /// How much of `unsent` has been sent.
    sent: usize,
    /// The wait for the runner's answer; `None` if nothing was sent to it since its last message.
    spin: Option<SpinWait>,
    is_link_over: bool,
    exit: Option<RunnerExit>,
    /// When the first message was sent to it.
    began: Option<Instant>,
}

/// Reads the processor time of a leased runner. Does not keep the runner alive.
#[derive(Debug, Clone)]
pub struct CpuMeter(Arc<PinnedProcess>);

impl CpuMeter {
    /// Processor time that the runner's process has used in total; `None` once it has ended.
    pub fn total(&self) -> Option<Duration> {
        self.0.cpu_time()
    }
}

/// A message from a runner.
#[derive(Debug, PartialEq, Eq)]
pub enum LeaseMessage<'a> {
    /// One line without its line break. It is hostile input.
    Line(&'a [u8]),
    /// No message follows.
    Gone(RunnerExit),
}

impl Lease {
    pub(crate) fn new(runner: Runner, shared: Arc<SandboxShared>, caller: Option<String>) -> Self {
        Self {
            runner,
            shared,
            caller,
            lines: LineBuffer::new(MESSAGE_BYTES_MAX),
            read_bytes: READ_BYTES_FIRST,
            unsent: Vec::new(),
            sent: 0,
            spin: None,
            is_link_over: false,
            exit: None,
            began: None,
        }
    }

    /// Sends whole lines without waiting. [`Lease::receive`] later sends what the link does not accept now.
    pub fn push(&mut self, lines: &[u8]) -> Result<(), RunnerGone> {
        if self.exit.is_some() || self.is_link_over {
            return Err(RunnerGone);
        }
        if self.unsent.len() - self.sent + lines.len() > UNSENT_BYTES_MAX {
            self.expel();
            return Err(RunnerGone);
        }
        let now = Instant::now();
        self.began.get_or_insert(now);
        let runners = &self.shared.busy_runners;
        self.spin.get_or_insert_with(|| SpinWait::begin_spin(runners)).restart(now);
        self.unsent.extend_from_slice(lines);
        self.flush();
        if self.is_link_over { Err(RunnerGone) } else { Ok(()) }
    }

    /// Allows the runner to write lines of this length. The engine's own are bounded by the usual limit.
    pub const fn set_line_bytes_max(&mut self, line_bytes_max: usize) {
        self.lines.set_line_bytes_max(line_bytes_max);
    }

    /// Waits for the next line, or the end. Sends queued input meanwhile. Dropping the future loses
    /// nothing.
    pub async fn receive(&mut self) -> LeaseMessage<'_> {
        match self.fill().await {
            Ok(()) => LeaseMessage::Line(self.try_next().expect("a whole line is here")),
            Err(exit) => LeaseMessage::Gone(exit),
        }
    }

    /// A line that has already been read, without any input or output.
    pub fn try_next(&mut self) -> Option<&[u8]> {
        match self.lines.take() {
            Ok(line) => line,
            Err(_) => {
                expel(&self.runner, &mut self.exit);
                None
            }
        }
    }

    /// Processor time that the runner has used; `None` if it has ended.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.runner.process().cpu_time()
    }

    /// Returns a handle that reads the runner's processor time independently of the lease.
    pub fn cpu_meter(&self) -> CpuMeter {
        CpuMeter(Arc::clone(self.runner.process()))
    }

    /// Processor time that the process had certainly used before this lease first sent a message to it;
    /// `None` before that. For a reused runner, all later time may belong to this lease.
    pub fn cpu_time_before(&self) -> Option<Duration> {
        if !self.is_used() {
            return Some(Duration::ZERO);
        }
        Some(self.cpu_time()?.saturating_sub(self.began?.elapsed()))
    }

    /// Whether it has served before: its earlier use does not belong to this lease.
    pub const fn is_used(&self) -> bool {
        self.runner.is_used
    }

    /// The runner has been busy for long: lowers its priority from now on, and does not reuse it for another program.
    pub fn step_back(&mut self) {
        self.caller = None;
        self.runner.process().step_back();
    }

    /// The runner's process number, for people; `None` if /proc does not show it.
    pub fn pid(&self) -> Option<i32> {
        self.runner.process().pid()
    }

    /// Kills the runner. The lines that it wrote before can still be received, then its end.
    pub fn kill(&mut self) {
        self.runner.kill();
    }

    /// The execution is done: the runner is discarded, or reused for the same caller if that is configured.
    pub fn finish(self) {
        let is_at_rest = self.exit.is_none()
            && !self.is_link_over
            && self.sent == self.unsent.len()
            && self.lines.is_empty();
        let Self { mut runner, caller, shared, .. } = self;
        if let (true, Some(caller)) = (is_at_rest, caller) {
            runner.is_used = true;
            shared.retain_runner(caller, runner);
        }
    }

    /// Moves bytes both ways until a whole line has arrived. Waiting for both directions together prevents
    /// a deadlock with a runner that is itself writing.
    async fn fill(&mut self) -> Result<(), RunnerExit> {
        loop {
            if let Some(exit) = self.exit {
                return Err(exit);
            }
            match self.lines.has_line() {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(_) => return Err(self.expel()),
            }
            if self.is_link_over {
                let exit = self.runner.exit().await;
                return Err(*self.exit.insert(exit));
            }
            let has_unsent = self.sent < self.unsent.len();
            if !has_unsent && self.spin.as_mut().is_some_and(SpinWait::is_worthwhile) {
                self.poll_link();
                if self.spin.is_some() && !self.is_link_over {
                    spin::yield_now().await;
                }
                continue;
            }
            let link = &mut self.runner.link;
            let waited = match link.watch() {
                Ok(()) => tokio::select! {
                    come = link.readable() => come,
                    room = link.writable(), if has_unsent => room,
                },
                Err(error) => Err(error),
            };
            self.is_link_over = waited.is_err();
            self.flush();
            self.read();
        }
    }

    /// Reads available input without waiting for readiness first.
    fn poll_link(&mut self) {
        let read = self.runner.link.read_now(self.lines.room(self.read_bytes));
        self.has_read(read);
    }

    fn flush(&mut self) {
        while self.sent < self.unsent.len() {
            match self.runner.link.try_write(&self.unsent[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(full) if full.kind() == io::ErrorKind::WouldBlock => return,
                // The runner no longer reads; there may still be lines that it wrote before.
                Err(_) => break,
            }
        }
        self.unsent.clear();
        self.sent = 0;
    }

    fn read(&mut self) {
        let read = self.runner.link.try_read(self.lines.room(self.read_bytes));
        self.has_read(read);
    }

    fn has_read(&mut self, read: io::Result<usize>) {
        match read {
            Ok(0) => self.is_link_over = true,
            Ok(n) => {
                self.spin = None;
                self.lines.filled(n);
                if n >= self.read_bytes {
                    self.read_bytes = READ_BYTES_MAX.min(2 * n);
                }
            }
            Err(nothing) if nothing.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.is_link_over = true,
        }
    }

    fn expel(&mut self) -> RunnerExit {
        expel(&self.runner, &mut self.exit)
    }
}

/// Kills a runner that broke the rules of the link.
fn expel(runner: &Runner, exit: &mut Option<RunnerExit>) -> RunnerExit {
    runner.kill();
    *exit.insert(RunnerExit::Unruly)
}
