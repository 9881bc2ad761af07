//! The driver of a runner: it owns the lease, decodes the runner's messages, manages timers that no journal
//! records, and gives up a runner that does not stop. The engine, the execbox door and the sessions of the
//! REPL each drive their runners with it; no other code decodes a runner's messages.

mod decode;
mod loss;
mod message;
mod timers;

pub use loss::{LossMeaning, RunnerLoss};
pub use message::{ProgramFailure, RunnerMessage, SessionMessage, TaskFailure, TaskResult};

use crate::error::LeaseError;
use crate::lease::{CpuMeter, Lease, LeaseMessage};
use crate::sandbox::{LeaseDemand, Sandbox};
use decode::SessionLine;
use lifecycle::Timestamp;
use protocols::execbox::session::{
    FireTimer, GuestTime, InterruptTask, OpenSession, ToSession, encode,
};
use protocols::execbox::wire::{Cancel, Execute, Sync, TimerFired};
use protocols::execbox::{HOST_MESSAGE_BYTES_MAX, ToRunner};
use std::fmt;
use std::pin::Pin;
use std::time::Duration;
use timers::RunnerTimers;
use tokio::time::Instant;

/// How long a session's guest may take to stop after it was interrupted. Only native code, or another
/// task's turn, takes longer.
const STOP_GRACE: Duration = Duration::from_millis(250);

/// A runner that was requested and is not available yet. Dropping this leaves the queue.
pub struct LeaseRequest(Pin<Box<dyn Future<Output = Result<Lease, LeaseError>> + Send>>);

impl fmt::Debug for LeaseRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseRequest")
    }
}

impl Future for LeaseRequest {
    type Output = Result<Lease, LeaseError>;

    fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl Sandbox {
    /// Requests a runner without waiting for it.
    pub fn request_lease(&self, demand: LeaseDemand) -> LeaseRequest {
        let sandbox = self.clone();
        LeaseRequest(Box::pin(async move { sandbox.lease(demand).await }))
    }
}

/// A runner and its work. Dropping this kills the runner.
#[derive(Debug)]
pub struct RunnerDriver {
    link: RunnerLink,
    work: RunnerWork,
    timers: RunnerTimers,
    stop: Option<StopDeadline>,
    /// Processor time that the runner had used when this work began; for a runner that has served before,
    /// `None` until it is first needed.
    cpu_before: Option<Duration>,
    has_stepped_back: bool,
}

#[derive(Debug)]
enum RunnerLink {
    /// The runner is not available yet; these lines will be sent to it.
    Leasing(LeaseRequest, Vec<u8>),
    /// The runner is available, and has not received these lines yet.
    Leased(Box<Lease>, Vec<u8>),
    Linked(Box<Lease>),
    /// No runner could be leased.
    Failed,
}

/// The work of the runner, which determines the messages on the link.
#[derive(Debug)]
enum RunnerWork {
    /// A program of the engine, whose calls and timers are in the journal.
    Program,
    /// A program of an execbox host, under this id.
    Hosted { id: String },
    /// A session: many tasks in one world.
    Session {
        lines_sent: u64,
        /// Since when it has been busy.
        busy_since: Option<Instant>,
    },
}

/// When a runner that was ordered to stop is given up.
#[derive(Debug)]
struct StopDeadline {
    at: Instant,
    /// All tasks were interrupted, not only one.
    is_last: bool,
}

impl RunnerDriver {
    /// Gives a program of the engine to a runner.
    pub fn start_program(lease: Lease, execute: Execute<'_>) -> Self {
        let cpu_before = if lease.is_used() { None } else { Some(Duration::ZERO) };
        let link = RunnerLink::Linked(Box::new(lease));
        let mut driver = Self { cpu_before, ..Self::new(link, RunnerWork::Program) };
        driver.send(&ToRunner::Execute(execute));
        driver
    }

    /// Starts the program `id` of a host on the requested runner. `order` is its `execute` with the line
    /// break.
    pub const fn start_hosted(request: LeaseRequest, id: String, order: Vec<u8>) -> Self {
        Self::new(RunnerLink::Leasing(request, order), RunnerWork::Hosted { id })
    }

    /// Opens a session on the requested runner.
    pub fn open_session(request: LeaseRequest, open: OpenSession) -> Self {
        let mut order = vec![];
        ToRunner::Session(open).encode(&mut order);
        let work = RunnerWork::Session { lines_sent: 0, busy_since: None };
        Self::new(RunnerLink::Leasing(request, order), work)
    }

    const fn new(link: RunnerLink, work: RunnerWork) -> Self {
        Self {
            link,
            work,
            timers: RunnerTimers::new(),
            stop: None,
            cpu_before: None,
            has_stepped_back: false,
        }
    }

    // ---- Messages to the runner ----

    /// Uses this runner instead of the requested one. Returns it if there is a runner already.
    pub fn use_lease(&mut self, lease: Lease) -> Option<Lease> {
        match &mut self.link {
            RunnerLink::Leasing(_, lines) => {
                let lines = std::mem::take(lines);
                self.link_to(lease, lines);
                None
            }
            RunnerLink::Leased(..) | RunnerLink::Linked(_) | RunnerLink::Failed => Some(lease),
        }
    }

    /// Sends a message. The end of a runner is reported by [`Self::next`].
    pub fn send(&mut self, message: &ToRunner<'_>) {
        let mut line = Vec::with_capacity(256);
        message.encode(&mut line);
        self.send_lines(&line);
    }

    /// Sends whole lines, each with its line break.
    pub fn send_lines(&mut self, lines: &[u8]) {
        self.send_waiting();
        match &mut self.link {
            RunnerLink::Leasing(_, waiting) | RunnerLink::Leased(_, waiting) => {
                waiting.extend_from_slice(lines);
            }
            // As in `send`.
            RunnerLink::Linked(lease) => drop(lease.push(lines)),
            RunnerLink::Failed => {}
        }
    }

    /// Sends a message to a session.
    pub fn send_to_session(&mut self, message: &ToSession<'_>) {
        if let RunnerWork::Session { lines_sent, busy_since } = &mut self.work {
            *lines_sent += 1;
            busy_since.get_or_insert_with(Instant::now);
        }
        let mut line = Vec::with_capacity(256);
        encode(message, &mut line);
        self.send_lines(&line);
    }

    /// Requests [`RunnerMessage::Synced`] once all that was sent so far has been processed.
    pub fn sync(&mut self) {
        self.send(&ToRunner::Sync(Sync { n: 1 }));
    }

    /// Orders a host's program to stop. After `grace` the runner is given up.
    pub fn cancel(&mut self, grace: Duration) {
        let RunnerWork::Hosted { id } = &self.work else { return };
        let mut line = Vec::new();
        ToRunner::Cancel(Cancel { id: id.as_str().into() }).encode(&mut line);
        self.send_lines(&line);
        let at = Instant::now() + grace;
        let at = self.stop.as_ref().map_or(at, |before| before.at.min(at));
        self.stop = Some(StopDeadline { at, is_last: true });
    }

    /// Orders a session to stop a task; 0 stops all tasks. A runner that does not stop is given up.
    pub fn interrupt(&mut self, task: u64) {
        self.send_to_session(&ToSession::Interrupt(InterruptTask { task }));
        let is_last = task == 0;
        self.stop.get_or_insert(StopDeadline { at: Instant::now() + STOP_GRACE, is_last });
    }

    /// Removes all timers: the program receives no further ones.
    pub fn forget_timers(&mut self) {
        self.timers = RunnerTimers::new();
    }

    // ---- Deadlines ----

    /// When [`Self::look_after`] must be called next.
    pub fn alarm(&self) -> Option<Instant> {
        self.timers.next().into_iter().chain(self.stop.as_ref().map(|stop| stop.at)).min()
    }

    /// Fires the timers that are due, at `guest_time`, and reports a runner that did not stop in time.
    pub fn look_after(&mut self, now: Instant, guest_time: GuestTime) -> Option<RunnerLoss> {
        self.fire_timers(now, guest_time);
        let is_leasing = self.is_leasing();
        let stop = self.stop.as_mut().filter(|stop| stop.at <= now)?;
        if is_leasing {
            // Work that has not begun cannot stop.
            stop.at = now + STOP_GRACE;
            return None;
        }
        if stop.is_last {
            return Some(RunnerLoss::Unresponsive);
        }
        // It may be another task's turn: then that one must stop, too.
        *stop = StopDeadline { at: now + STOP_GRACE, is_last: true };
        self.send_to_session(&ToSession::Interrupt(InterruptTask { task: 0 }));
        None
    }

    fn fire_timers(&mut self, now: Instant, guest_time: GuestTime) {
        while let Some(timer) = self.timers.take_due(now) {
            match &self.work {
                RunnerWork::Session { .. } => {
                    let fire = FireTimer { timer: timer.0, now: guest_time };
                    self.send_to_session(&ToSession::Fire(fire));
                }
                // The runner itself determines the time for a host's program.
                RunnerWork::Hosted { .. } => {
                    self.send(&ToRunner::TimerFired(TimerFired { timer, at: Timestamp(0) }));
                }
                RunnerWork::Program => {}
            }
        }
    }

    // ---- Messages from the runner ----

    /// Waits for the next message. Dropping the future loses nothing.
    pub async fn next(&mut self) -> RunnerMessage {
        loop {
            self.send_waiting();
            let received = match &mut self.link {
                RunnerLink::Leasing(request, lines) => match request.await {
                    Ok(lease) => {
                        let lines = std::mem::take(lines);
                        self.link_to(lease, lines);
                        return RunnerMessage::Leased;
                    }
                    Err(error) => {
                        self.link = RunnerLink::Failed;
                        return RunnerMessage::Lost(RunnerLoss::NotLeased(error));
                    }
                },
                RunnerLink::Linked(lease) => lease.receive().await,
                RunnerLink::Leased(..) | RunnerLink::Failed => return std::future::pending().await,
            };
            let message = match received {
                LeaseMessage::Line(line) => {
                    decode_line(&mut self.work, &mut self.timers, &mut self.stop, line)
                }
                LeaseMessage::Gone(exit) => Some(RunnerMessage::Lost(RunnerLoss::Exited(exit))),
            };
            if let Some(message) = message {
                return message;
            }
        }
    }

    /// A message that has already arrived, and the length of its line in bytes.
    pub fn try_next(&mut self) -> Option<(RunnerMessage, usize)> {
        let RunnerLink::Linked(lease) = &mut self.link else { return None };
        loop {
            let line = lease.try_next()?;
            let n_bytes = line.len() + 1;
            let message = decode_line(&mut self.work, &mut self.timers, &mut self.stop, line);
            if let Some(message) = message {
                return Some((message, n_bytes));
            }
        }
    }

    // ---- State ----

    /// Whether it waits for its runner.
    pub const fn is_leasing(&self) -> bool {
        matches!(self.link, RunnerLink::Leasing(..))
    }

    /// Whether its runner is available.
    pub const fn has_runner(&self) -> bool {
        matches!(self.link, RunnerLink::Leased(..) | RunnerLink::Linked(_))
    }

    /// Whether the runner was ordered to stop and has not stopped yet.
    pub const fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// Since when a session has been busy.
    pub const fn busy_since(&self) -> Option<Instant> {
        match &self.work {
            RunnerWork::Session { busy_since, .. } => *busy_since,
            RunnerWork::Program | RunnerWork::Hosted { .. } => None,
        }
    }

    /// Whether a call was made by the program of a host.
    pub fn made_call(&self, call_id: &str) -> bool {
        match &self.work {
            RunnerWork::Hosted { id } => decode::is_call_of(call_id, id),
            RunnerWork::Program | RunnerWork::Session { .. } => false,
        }
    }

    /// Returns the runner, for another program of the same caller.
    pub fn into_lease(self) -> Option<Lease> {
        match self.link {
            RunnerLink::Leased(lease, _) | RunnerLink::Linked(lease) => Some(*lease),
            RunnerLink::Leasing(..) | RunnerLink::Failed => None,
        }
    }

    /// The program has ended: the runner may be reused for the same caller.
    pub fn finish(self) {
        if let RunnerLink::Linked(lease) = self.link {
            lease.finish();
        }
    }

    // ---- Processor time ----

    /// Returns a handle that reads the runner's processor time.
    pub fn cpu_meter(&self) -> Option<CpuMeter> {
        Some(self.lease()?.cpu_meter())
    }

    /// Processor time that the process had certainly used before this program; see [`Lease::cpu_time_before`].
    pub fn cpu_time_before(&self) -> Option<Duration> {
        self.lease()?.cpu_time_before()
    }

    /// Counts the processor time of the program from here on: until now, it was a replay.
    pub fn restart_cpu_count(&mut self) {
        self.cpu_before = self.lease().and_then(Lease::cpu_time);
    }

    /// Processor time that the program has used; `None` if the runner has ended. A reused runner is first
    /// queried when its program has been busy for long: earlier use, a tenth of a second at most, is not
    /// counted, so that short programs cost no system call. The runner itself counts all of it.
    pub fn cpu_used(&mut self) -> Option<Duration> {
        let now = self.lease()?.cpu_time()?;
        Some(now.saturating_sub(*self.cpu_before.get_or_insert(now)))
    }

    /// Whether the runner's priority was lowered.
    pub const fn has_stepped_back(&self) -> bool {
        self.has_stepped_back
    }

    /// Lowers the runner's priority: the program has been busy for long.
    pub fn step_back(&mut self) {
        self.has_stepped_back = true;
        if let RunnerLink::Linked(lease) = &mut self.link {
            lease.step_back();
        }
        let _ = self.cpu_used();
    }

    const fn lease(&self) -> Option<&Lease> {
        match &self.link {
            RunnerLink::Leased(lease, _) | RunnerLink::Linked(lease) => Some(lease),
            RunnerLink::Leasing(..) | RunnerLink::Failed => None,
        }
    }

    fn link_to(&mut self, mut lease: Lease, lines: Vec<u8>) {
        if matches!(self.work, RunnerWork::Hosted { .. }) {
            lease.set_line_bytes_max(HOST_MESSAGE_BYTES_MAX);
        }
        self.link = RunnerLink::Leased(Box::new(lease), lines);
    }

    /// Sends the queued lines to a new runner.
    fn send_waiting(&mut self) {
        if !matches!(self.link, RunnerLink::Leased(..)) {
            return;
        }
        let link = std::mem::replace(&mut self.link, RunnerLink::Failed);
        if let RunnerLink::Leased(mut lease, lines) = link {
            // As in `send`.
            let _ = lease.push(&lines);
            self.link = RunnerLink::Linked(lease);
        }
    }
}

/// Decodes a line; `None` if it only concerns the driver.
fn decode_line(
    work: &mut RunnerWork,
    timers: &mut RunnerTimers,
    stop: &mut Option<StopDeadline>,
    line: &[u8],
) -> Option<RunnerMessage> {
    match work {
        RunnerWork::Program => Some(decode::decode_program(line)),
        RunnerWork::Hosted { id } => {
            let message = decode::decode_hosted(line, id);
            if let RunnerMessage::TimerSet { timer, delay_ms } = message {
                return Some(match timers.set(timer, delay_ms) {
                    true => RunnerMessage::TimersChanged,
                    false => RunnerMessage::TooManyTimers,
                });
            }
            if let RunnerMessage::TimerCleared { timer } = message {
                timers.clear(timer);
                return Some(RunnerMessage::TimersChanged);
            }
            Some(message)
        }
        RunnerWork::Session { lines_sent, busy_since } => match decode::decode_session(line) {
            SessionLine::Message(message) => Some(RunnerMessage::Session(message)),
            SessionLine::TimerSet { timer, delay_ms } => {
                // Timers beyond the limit never fire.
                let _ = timers.set(timer, delay_ms);
                Some(RunnerMessage::TimersChanged)
            }
            SessionLine::TimerCleared(timer) => {
                timers.clear(timer);
                Some(RunnerMessage::TimersChanged)
            }
            SessionLine::Rested { lines } if lines < *lines_sent => None,
            SessionLine::Rested { .. } => {
                (*busy_since, *stop) = (None, None);
                Some(RunnerMessage::Session(SessionMessage::Rested))
            }
            SessionLine::Malformed => {
                let what = "a message that cannot be read";
                Some(RunnerMessage::Lost(RunnerLoss::Malformed(what)))
            }
        },
    }
}
