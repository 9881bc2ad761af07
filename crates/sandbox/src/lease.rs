//! One runner in one hand: lines in, lines out, and its end.

use crate::birth::Runner;
use crate::error::RunnerGone;
use crate::exit::RunnerExit;
use crate::sandbox::SandboxShared;
use crate::spin::{self, SpinWait};
use crate::zygote::PinnedProcess;
use protocols::execbox::MESSAGE_BYTES_MAX;
use protocols::ndjson::LineBuffer;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Input that waits for a runner to read it. More than any execution may move in all.
const UNSENT_BYTES_MAX: usize = 128 << 20;

/// How much is read at once, at first and at most: most programs say little, and a socket holds no more.
const READ_BYTES_FIRST: usize = 1_000;
const READ_BYTES_MAX: usize = 64 << 10;

/// A leased runner. Dropping it kills the runner.
#[derive(Debug)]
pub struct Lease {
    runner: Runner,
    shared: Arc<SandboxShared>,
    caller: Option<String>,
    lines: LineBuffer,
    /// How much the next read asks for.
    read_bytes: usize,
    unsent: Vec<u8>,
    /// How much of `unsent` is sent after all.
    sent: usize,
    /// The wait for the runner's answer; none where it was told nothing since it spoke last.
    spin: Option<SpinWait>,
    is_link_over: bool,
    exit: Option<RunnerExit>,
    /// When it was first told something.
    began: Option<Instant>,
}

/// Reads the processor time of a leased runner from elsewhere. Does not keep the runner alive.
#[derive(Debug, Clone)]
pub struct CpuMeter(Arc<PinnedProcess>);

impl CpuMeter {
    /// Processor time that the runner's process has used in all; none once it is gone.
    pub fn total(&self) -> Option<Duration> {
        self.0.cpu_time()
    }
}

/// What comes from a runner.
#[derive(Debug, PartialEq, Eq)]
pub enum LeaseMessage<'a> {
    /// One line without its line break. It is hostile input.
    Line(&'a [u8]),
    /// Nothing more will come.
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

    /// Sends whole lines without waiting. What the link does not take now, [`Lease::receive`] sends later.
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

    /// From now on the runner may write lines of this length. The engine's own are bounded by the usual one.
    pub const fn set_line_bytes_max(&mut self, line_bytes_max: usize) {
        self.lines.set_line_bytes_max(line_bytes_max);
    }

    /// The next line, or the end. Sends what waits meanwhile. Dropping the future loses nothing.
    pub async fn receive(&mut self) -> LeaseMessage<'_> {
        match self.fill().await {
            Ok(()) => LeaseMessage::Line(self.try_next().expect("a whole line is here")),
            Err(exit) => LeaseMessage::Gone(exit),
        }
    }

    /// A line that has already arrived, without any input or output.
    pub fn try_next(&mut self) -> Option<&[u8]> {
        match self.lines.take() {
            Ok(line) => line,
            Err(_) => {
                expel(&self.runner, &mut self.exit);
                None
            }
        }
    }

    /// Processor time the runner has used; none when it is gone.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.runner.process().cpu_time()
    }

    /// Reads the runner's processor time while others hold the lease.
    pub fn cpu_meter(&self) -> CpuMeter {
        CpuMeter(Arc::clone(self.runner.process()))
    }

    /// Processor time that the process had certainly used before this lease told it anything; none before it was told
    /// something. Of a runner that has served before, all time since may have been this lease's.
    pub fn cpu_time_before(&self) -> Option<Duration> {
        if !self.is_used() {
            return Some(Duration::ZERO);
        }
        Some(self.cpu_time()?.saturating_sub(self.began?.elapsed()))
    }

    /// Whether it has served before: what it used then is not this one's.
    pub const fn is_used(&self) -> bool {
        self.runner.is_used
    }

    /// The runner has been busy for long: from now on it lets others go first, and it is not kept for another program.
    pub fn step_back(&mut self) {
        self.caller = None;
        self.runner.process().step_back();
    }

    /// The runner's process number, for people; where /proc shows it.
    pub fn pid(&self) -> Option<i32> {
        self.runner.process().pid()
    }

    /// Kills the runner. What it wrote before can still be received, then its end.
    pub fn kill(&mut self) {
        self.runner.kill();
    }

    /// The execution is done: the runner is thrown away, or kept for the same caller where that is wanted.
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

    /// Moves bytes both ways until a whole line is here. Waiting for both at once is what keeps a runner that
    /// is itself writing from waiting for us for ever.
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

    /// Reads what has come, without being told before that something has.
    fn poll_link(&mut self) {
        let read = self.runner.link.read_now(self.lines.room(self.read_bytes));
        self.has_read(read);
    }

    fn flush(&mut self) {
        while self.sent < self.unsent.len() {
            match self.runner.link.try_write(&self.unsent[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(full) if full.kind() == io::ErrorKind::WouldBlock => return,
                // The runner no longer reads; what it wrote before may still be there to be read.
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

/// Ends a runner that broke the rules of the link.
fn expel(runner: &Runner, exit: &mut Option<RunnerExit>) -> RunnerExit {
    runner.kill();
    *exit.insert(RunnerExit::Unruly)
}
