//! One execution of a channel: its runner, its deadline, and its messages to the host.

use super::ChannelSandbox;
use super::host_messages::{encode_done, encode_message, host_line_json};
use super::output::ProgramOutput;
use engine::{HeldRunner, RunnerCharge};
use lifecycle::{Json, Timestamp};
use protocols::execbox::session::GuestTime;
use protocols::execbox::wire::{CallFailure, Execute, Options, RawJson, Started, ToolResult};
use protocols::execbox::{FromRunner, ToRunner};
use sandbox::{
    Lease, LeaseError, MEMORY_BYTES_DEFAULT, ProgramFailure, RunnerDriver, RunnerLoss,
    RunnerMessage,
};
use std::time::Duration;
use tokio::time::Instant;

/// How long a cancelled program may take to stop by itself. Hosts wait 25 ms before they give up the whole channel.
const CANCEL_GRACE: Duration = Duration::from_millis(10);

/// How long a program may exceed its deadline before it is killed. Hosts wait 100 ms before they cancel.
const DEADLINE_GRACE: Duration = Duration::from_millis(40);

/// Maximum time that a program may request: timers have a range.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// How much is read from one runner before the channel serves its other executions.
const TURN_BYTES_MAX: usize = 256 << 10;

/// Lines for the host, each with its line break.
pub(super) type HostFrames = Vec<Vec<u8>>;

/// One execution.
pub(super) struct ExecboxRun {
    /// The id that the host gave it.
    host_id: String,
    /// The id under which the runner knows it; the ids of its calls begin with it. It cannot be guessed.
    id: String,
    sandbox: ChannelSandbox,
    /// Declared before the driver: on drop it charges what the runner used before the runner is killed.
    charge: Option<RunnerCharge>,
    driver: RunnerDriver,
    memory_bytes: u64,
    time_allowed: Duration,
    received: Instant,
    deadline: Instant,
    cancelled: bool,
    said_started: bool,
    output: ProgramOutput,
    /// The `execute` message, retained as long as the program may have to start in another runner: it waits for a
    /// runner, or has a spare one, which may have exited before it received this.
    order: Option<Vec<u8>>,
    /// Its count in its caller's quota, besides the channel itself.
    _held: Option<HeldRunner>,
}

/// What happens to the runner of a finished execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// The runner can be reused for another execution of the channel.
    KeepRunner,
    /// The runner is killed.
    KillRunner,
}

/// A spare runner. It has run programs of this channel only.
pub(super) struct SpareRunner {
    charge: Option<RunnerCharge>,
    lease: Lease,
    memory_bytes: u64,
    pub(super) since: Instant,
}

impl SpareRunner {
    /// Whether it has enough memory for an execution.
    pub(super) fn fits(&self, execute: &Execute<'_>) -> bool {
        self.memory_bytes == memory_bytes_of(execute)
    }
}

/// Smaller guests are limited by their own limit; runners of the default size are available immediately.
fn memory_bytes_of(execute: &Execute<'_>) -> u64 {
    execute.options.memory_limit_bytes.max(MEMORY_BYTES_DEFAULT)
}

impl ExecboxRun {
    /// Starts an execution, with the spare runner if it fits.
    pub(super) fn new(
        execute: &Execute<'_>,
        id: String,
        spare: Option<SpareRunner>,
        sandbox: &ChannelSandbox,
    ) -> Self {
        let Options { timeout_ms, .. } = execute.options;
        let memory_bytes = memory_bytes_of(execute);
        let time_allowed = Duration::from_millis(timeout_ms).min(TIME_MAX);
        let mut order = Vec::with_capacity(execute.code.len() + 512);
        let for_runner = Execute { id: id.as_str().into(), airlock: None, ..execute.clone() };
        ToRunner::Execute(for_runner).encode(&mut order);
        let received = Instant::now();
        let mut run = Self {
            host_id: execute.id.clone().into_owned(),
            driver: drive(sandbox, memory_bytes, &id, &order),
            id,
            sandbox: sandbox.clone(),
            charge: None,
            memory_bytes,
            time_allowed,
            received,
            deadline: received + time_allowed,
            cancelled: false,
            said_started: false,
            output: ProgramOutput::default(),
            order: Some(order),
            _held: None,
        };
        // A spare runner that does not fit is killed.
        drop(spare.and_then(|spare| run.take_over(spare)));
        run
    }

    /// Takes a runner that another execution of the channel no longer needs, if this execution still waits for one
    /// and the runner fits; otherwise returns it.
    pub(super) fn take_over(&mut self, spare: SpareRunner) -> Option<SpareRunner> {
        if !self.waits() || spare.memory_bytes != self.memory_bytes {
            return Some(spare);
        }
        self.charge = spare.charge;
        drop(self.driver.use_lease(spare.lease));
        self.begin_program();
        None
    }

    /// Holds a slot in its caller's quota until it is over.
    pub(super) fn counted(self, held: Option<HeldRunner>) -> Self {
        Self { _held: held, ..self }
    }

    /// The runner is available; it starts with the next use of the driver.
    fn begin_program(&mut self) {
        if self.charge.is_none()
            && let (Some(account), Some(meter)) = (&self.sandbox.account, self.driver.cpu_meter())
        {
            self.charge = Some(account.charge_runner(meter));
        }
        if let Some(charge) = &mut self.charge {
            charge.begin_work();
        }
        self.deadline = Instant::now() + self.time_allowed;
    }

    pub(super) fn is_called(&self, host_id: &str) -> bool {
        self.host_id == host_id
    }

    /// Whether it made a call of this name.
    pub(super) fn made(&self, call_id: &str) -> bool {
        self.driver.made_call(call_id)
    }

    /// When the run needs attention next.
    pub(super) fn alarm(&self) -> Instant {
        let deadline = (!self.driver.is_stopping()).then_some(self.deadline);
        let charge = self.charge.as_ref().and_then(RunnerCharge::due).map(Instant::from_std);
        let alarms = [deadline, charge, self.driver.alarm()];
        alarms.into_iter().flatten().min().unwrap_or(self.deadline)
    }

    /// A tool call is settled. `message` is the host's own, on one line.
    pub(super) fn settle_call(&mut self, message: &[u8]) {
        if self.driver.has_runner() && !self.cancelled {
            let mut line = Vec::with_capacity(message.len() + 1);
            line.extend_from_slice(message);
            line.push(b'\n');
            self.driver.send_lines(&line);
        }
    }

    /// A tool call has a result that cannot be passed on.
    pub(super) fn fail_call(&mut self, call_id: &str, message: &str) {
        let failure = CallFailure {
            code: "serialization_error".into(),
            message: message.into(),
            name: None,
            details: None,
        };
        let result = ToolResult { call_id: call_id.into(), outcome: Err(failure), at: None };
        if self.driver.has_runner() && !self.cancelled {
            self.driver.send(&ToRunner::ToolResult(result));
        }
    }

    /// Whether it waits for a runner.
    pub(super) const fn waits(&self) -> bool {
        self.driver.is_leasing()
    }

    /// The host cancels: the program timed out, regardless of what it does afterwards.
    pub(super) fn cancel(&mut self, out: &mut HostFrames) -> Option<RunEnd> {
        self.cancelled = true;
        self.driver.forget_timers();
        self.ask_to_end(CANCEL_GRACE, out)
    }

    /// Handles the alarm.
    pub(super) fn look_after(&mut self, now: Instant, out: &mut HostFrames) -> Option<RunEnd> {
        if let Some(charge) = &mut self.charge {
            charge.charge_if_due();
        }
        if !self.driver.is_stopping() && now >= self.deadline {
            return self.ask_to_end(DEADLINE_GRACE, out);
        }
        // The runner's own clock determines the time.
        let guest_time = GuestTime { at: Timestamp(0), frame: 0 };
        let loss = self.driver.look_after(now, guest_time)?;
        tracing::debug!("a program did not stop by itself and is killed");
        Some(self.give_up(&loss, out))
    }

    fn ask_to_end(&mut self, grace: Duration, out: &mut HostFrames) -> Option<RunEnd> {
        if !self.driver.has_runner() {
            return Some(self.give_up(&RunnerLoss::Unresponsive, out));
        }
        self.driver.cancel(grace);
        None
    }

    /// Returns the next message. Cancel safe: dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> RunnerMessage {
        self.driver.next().await
    }

    /// Handles a message of the runner and those that have arrived meanwhile; returns the end once the execution is
    /// over.
    pub(super) fn handle(
        &mut self,
        message: RunnerMessage,
        out: &mut HostFrames,
    ) -> Option<RunEnd> {
        let mut end = self.handle_one(message, out);
        let mut n_bytes = 0;
        while end.is_none()
            && n_bytes < TURN_BYTES_MAX
            && let Some((message, line_bytes)) = self.driver.try_next()
        {
            n_bytes += line_bytes;
            end = self.handle_one(message, out);
        }
        end
    }

    fn handle_one(&mut self, message: RunnerMessage, out: &mut HostFrames) -> Option<RunEnd> {
        match message {
            RunnerMessage::Leased => {
                self.order = None;
                self.begin_program();
            }
            RunnerMessage::Started(_) => {
                self.order = None;
                self.say_started(out);
            }
            RunnerMessage::HostToolCalled(line) if !self.cancelled => out.push(line),
            RunnerMessage::HostToolCalled(_) | RunnerMessage::TimersChanged => {}
            RunnerMessage::Logged { line, exact, .. } => {
                self.output.print(host_line_json(&line, exact));
            }
            RunnerMessage::Emitted { item, .. } => self.output.emit(item),
            RunnerMessage::TooManyTimers => {
                let sentence = "has more timers outstanding than a program may have";
                return Some(self.fail(("runtime_error", sentence), out));
            }
            RunnerMessage::Done(result) => return Some(self.done(result, out)),
            RunnerMessage::Lost(loss) => return self.handle_loss(&loss, out),
            RunnerMessage::ToolCalled { .. }
            | RunnerMessage::TimerSet { .. }
            | RunnerMessage::TimerCleared { .. }
            | RunnerMessage::Idle(_)
            | RunnerMessage::Counted(_)
            | RunnerMessage::Synced
            | RunnerMessage::Diverged(_)
            | RunnerMessage::Session(_) => {
                return self.handle_loss(&RunnerLoss::Malformed("a message of another link"), out);
            }
        }
        None
    }

    fn say_started(&mut self, out: &mut HostFrames) {
        if !std::mem::replace(&mut self.said_started, true) {
            let started = Started { id: self.host_id.as_str().into(), airlock: None };
            out.push(encode_message(&FromRunner::Started(started)));
        }
    }

    /// The runner's own result, except that a cancellation takes precedence.
    fn done(
        &mut self,
        result: Result<Option<Json>, ProgramFailure>,
        out: &mut HostFrames,
    ) -> RunEnd {
        if self.cancelled {
            let (code, sentence) = RunnerLoss::Unresponsive.host_failure();
            self.answer_call(Err((code, &sentence)), out);
            return RunEnd::KillRunner;
        }
        match result {
            Ok(value) => {
                self.answer_call(Ok(value.as_ref().map(RawJson::from)), out);
                RunEnd::KeepRunner
            }
            Err(ProgramFailure { code, message, .. }) => {
                self.answer_call(Err((&code, &message)), out);
                // A program that timed out or ran out of memory may leave its process in a changed state.
                match code.as_str() {
                    "timeout" | "memory_limit" | "internal_error" => RunEnd::KillRunner,
                    _ => RunEnd::KeepRunner,
                }
            }
        }
    }

    /// Returns the runner of a finished execution, for reuse.
    pub(super) fn into_spare(self) -> Option<SpareRunner> {
        let Self { mut charge, driver, memory_bytes, .. } = self;
        let lease = driver.into_lease()?;
        charge.iter_mut().for_each(RunnerCharge::end_work);
        Some(SpareRunner { charge, lease, memory_bytes, since: Instant::now() })
    }

    /// The runner is lost before its program ended.
    fn handle_loss(&mut self, loss: &RunnerLoss, out: &mut HostFrames) -> Option<RunEnd> {
        if let (RunnerLoss::Exited(_), false, Some(order)) =
            (loss, self.driver.is_stopping(), &self.order)
        {
            // The spare runner exited while it was idle; the program has not started.
            self.charge = None;
            self.driver = drive(&self.sandbox, self.memory_bytes, &self.id, order);
            return None;
        }
        match loss {
            RunnerLoss::Malformed(what) => tracing::warn!(what, "a runner violated the protocol"),
            RunnerLoss::NotLeased(error @ LeaseError::Unavailable { .. }) => {
                tracing::error!(%error, "no runner for a channel");
            }
            RunnerLoss::NotLeased(LeaseError::TooLarge { .. } | LeaseError::Closed)
            | RunnerLoss::Exited(_)
            | RunnerLoss::Unresponsive
            | RunnerLoss::MemoryFull => {}
        }
        Some(self.give_up(loss, out))
    }

    /// Sends the result of a program that can no longer send it itself.
    fn give_up(&mut self, loss: &RunnerLoss, out: &mut HostFrames) -> RunEnd {
        let (code, sentence) = loss.host_failure();
        self.fail((code, &sentence), out)
    }

    fn fail(&mut self, failure: (&str, &str), out: &mut HostFrames) -> RunEnd {
        if self.driver.has_runner() {
            // It had started, even if its message had not arrived.
            self.say_started(out);
        }
        self.answer_call(Err(failure), out);
        RunEnd::KillRunner
    }

    fn answer_call(
        &self,
        outcome: Result<Option<RawJson<'_>>, (&str, &str)>,
        out: &mut HostFrames,
    ) {
        out.push(encode_done(&self.host_id, outcome, self.received.elapsed(), &self.output));
    }
}

/// Requests a runner that receives `order`.
fn drive(sandbox: &ChannelSandbox, memory_bytes: u64, id: &str, order: &[u8]) -> RunnerDriver {
    let request = sandbox.sandbox.request_lease(sandbox.demand(memory_bytes));
    RunnerDriver::start_hosted(request, id.to_owned(), order.to_owned())
}
