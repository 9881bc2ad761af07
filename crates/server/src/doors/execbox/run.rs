//! One execution of a channel: its runner, its deadline, and what the host is told of it.

use super::ChannelSandbox;
use super::said::Said;
use super::timers::Timers;
use engine::{HeldRunner, RunnerCharge};
use lifecycle::{TimerId, Timestamp};
use protocols::execbox::wire::{
    CallFailure, Cancel, Done, Execute, Failed, Log, Options, RawJson, Started, TimerCleared,
    TimerFired, TimerSet, ToolResult,
};
use protocols::execbox::{FromRunner, HOST_MESSAGE_BYTES_MAX, ToRunner, encode_done_with_lines};
use sandbox::{Exit, Lease, LeaseError, MEMORY_BYTES_DEFAULT, Received};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// How long a cancelled program may take to stop by itself. Hosts wait 25 ms before they give the whole channel up.
const CANCEL_GRACE: Duration = Duration::from_millis(10);

/// How long a program may overrun its deadline before it is killed. Hosts wait 100 ms before they cancel.
const DEADLINE_GRACE: Duration = Duration::from_millis(40);

/// Longest time a program may ask for: timers have an end.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// How much is heard of one program before its channel looks elsewhere.
const TURN_BYTES_MAX: usize = 256 << 10;

/// Lines for the host, each with its line break.
pub(super) type Frames = Vec<Vec<u8>>;

/// What the host is told where the fixed words of execbox are meant.
const TIMED_OUT: (&str, &str) = ("timeout", "Execution timed out");

/// One execution.
pub(super) struct Run {
    /// As the host calls it.
    host_id: String,
    /// As the runner calls it, and what its calls' names begin with. Nobody can guess it.
    id: String,
    sandbox: ChannelSandbox,
    /// Before the stage: it charges what the runner used before the runner is killed.
    charge: Option<RunnerCharge>,
    stage: Stage,
    memory_bytes: u64,
    time_allowed: Duration,
    received: Instant,
    deadline: Instant,
    kill_at: Option<Instant>,
    cancelled: bool,
    said_started: bool,
    said: Said,
    timers: Timers,
    /// For another runner, should the spare one have left before it heard this.
    again: Option<Vec<u8>>,
    /// What it counts as in its caller's quota, beside the channel itself.
    _held: Option<HeldRunner>,
}

enum Stage {
    /// For a runner; then this line is for it.
    Waiting(Leasing, Vec<u8>),
    Running(Box<Lease>),
}

impl Stage {
    /// Before the beginning and after the end.
    fn nothing() -> Self {
        Self::Waiting(Box::pin(std::future::pending()), Vec::new())
    }
}

type Leasing = Pin<Box<dyn Future<Output = Result<Lease, LeaseError>> + Send>>;

/// What is left when an execution is over.
pub(super) struct Over {
    /// A runner that is fit for another one.
    pub(super) spare: Option<Spare>,
}

/// A runner at rest. It has run programs of this channel only.
pub(super) struct Spare {
    charge: Option<RunnerCharge>,
    lease: Lease,
    memory_bytes: u64,
    pub(super) since: Instant,
}

impl Spare {
    /// Whether it has the memory that an execution wants.
    pub(super) fn fits(&self, execute: &Execute<'_>) -> bool {
        self.memory_bytes == memory_bytes_of(execute)
    }
}

/// Smaller guests are held by their own limit; runners of the usual size are ready at once.
fn memory_bytes_of(execute: &Execute<'_>) -> u64 {
    execute.options.memory_limit_bytes.max(MEMORY_BYTES_DEFAULT)
}

impl Run {
    /// Begins, with the spare runner if it fits.
    pub(super) fn new(
        execute: &Execute<'_>,
        id: String,
        spare: Option<Spare>,
        sandbox: &ChannelSandbox,
    ) -> Self {
        let Options { timeout_ms, .. } = execute.options;
        let memory_bytes = memory_bytes_of(execute);
        let time_allowed = Duration::from_millis(timeout_ms).min(TIME_MAX);
        let mut line = Vec::with_capacity(execute.code.len() + 512);
        let order = Execute { id: id.as_str().into(), airlock: None, ..execute.clone() };
        ToRunner::Execute(order).encode(&mut line);
        let received = Instant::now();
        let mut run = Self {
            host_id: execute.id.clone().into_owned(),
            id,
            sandbox: sandbox.clone(),
            charge: None,
            stage: Stage::nothing(),
            memory_bytes,
            time_allowed,
            received,
            deadline: received + time_allowed,
            kill_at: None,
            cancelled: false,
            said_started: false,
            said: Said::default(),
            timers: Timers::default(),
            again: None,
            _held: None,
        };
        match spare.filter(|spare| spare.memory_bytes == memory_bytes) {
            Some(Spare { charge, lease, .. }) => {
                run.charge = charge;
                run.begin(lease, &line);
                run.again = Some(line);
            }
            None => run.wait(line),
        }
        run
    }

    /// Takes a runner that another execution of the channel is done with, if it still waits for one of its own and this
    /// one fits; gives it back if not.
    pub(super) fn take_over(&mut self, spare: Spare) -> Option<Spare> {
        let Stage::Waiting(_, line) = &mut self.stage else { return Some(spare) };
        if spare.memory_bytes != self.memory_bytes {
            return Some(spare);
        }
        let line = std::mem::take(line);
        self.charge = spare.charge;
        self.begin(spare.lease, &line);
        self.again = Some(line);
        None
    }

    /// Holds a place in its caller's quota until it is over.
    pub(super) fn counted(self, held: Option<HeldRunner>) -> Self {
        Self { _held: held, ..self }
    }

    fn wait(&mut self, line: Vec<u8>) {
        let demand = self.sandbox.demand(self.memory_bytes);
        let sandbox = self.sandbox.sandbox.clone();
        let leasing = Box::pin(async move { sandbox.lease(demand).await });
        self.stage = Stage::Waiting(leasing, line);
    }

    fn begin(&mut self, mut lease: Lease, line: &[u8]) {
        lease.set_line_bytes_max(HOST_MESSAGE_BYTES_MAX);
        if self.charge.is_none()
            && let Some(account) = &self.sandbox.account
        {
            self.charge = Some(account.charge_runner(lease.cpu_meter()));
        }
        if let Some(charge) = &mut self.charge {
            charge.begin_work();
        }
        // A runner that is gone says so itself when it is listened to.
        let _ = lease.push(line);
        self.stage = Stage::Running(Box::new(lease));
        self.deadline = Instant::now() + self.time_allowed;
    }

    pub(super) fn is_called(&self, host_id: &str) -> bool {
        self.host_id == host_id
    }

    /// Whether it made a call of this name.
    pub(super) fn made(&self, call_id: &str) -> bool {
        call_id.strip_prefix(self.id.as_str()).is_some_and(|rest| rest.starts_with('.'))
    }

    /// When to look after it again.
    pub(super) fn alarm(&self) -> Instant {
        let end = self.kill_at.unwrap_or(self.deadline);
        let charge = self.charge.as_ref().and_then(RunnerCharge::due).map(Instant::from_std);
        self.timers.next().into_iter().chain(charge).fold(end, Instant::min)
    }

    /// A tool call is settled. `message` is the host's own, on one line.
    pub(super) fn settle(&mut self, message: &[u8]) {
        if let (Stage::Running(lease), false) = (&mut self.stage, self.cancelled) {
            // As in `begin`.
            let _ = lease.push(&with_line_break(message));
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
        let mut line = Vec::new();
        ToRunner::ToolResult(result).encode(&mut line);
        line.pop();
        self.settle(&line);
    }

    /// Whether it waits for a runner.
    pub(super) const fn waits(&self) -> bool {
        matches!(self.stage, Stage::Waiting(..))
    }

    /// The host gives up: whatever the program does now, it timed out.
    pub(super) fn cancel(&mut self, out: &mut Frames) -> Option<Over> {
        self.cancelled = true;
        self.ask_to_end(CANCEL_GRACE, out)
    }

    /// The alarm went off.
    pub(super) fn look_after(&mut self, now: Instant, out: &mut Frames) -> Option<Over> {
        if let Some(charge) = &mut self.charge {
            charge.charge_if_due();
        }
        match self.kill_at {
            Some(at) if now >= at => {
                tracing::debug!("a program did not stop by itself and is killed");
                Some(self.give_up(TIMED_OUT, out))
            }
            None if now >= self.deadline => self.ask_to_end(DEADLINE_GRACE, out),
            Some(_) | None => {
                self.fire(now);
                None
            }
        }
    }

    /// Tells the program of the timers that are due.
    fn fire(&mut self, now: Instant) {
        let mut lines = Vec::new();
        while let Some(timer) = self.timers.take_due(now) {
            // What time it is then is the runner's to say.
            ToRunner::TimerFired(TimerFired { timer, at: Timestamp(0) }).encode(&mut lines);
        }
        if let (Stage::Running(lease), false) = (&mut self.stage, self.cancelled) {
            // As in `begin`.
            let _ = lease.push(&lines);
        }
    }

    fn ask_to_end(&mut self, grace: Duration, out: &mut Frames) -> Option<Over> {
        let Stage::Running(lease) = &mut self.stage else {
            return Some(self.give_up(TIMED_OUT, out));
        };
        let mut line = Vec::new();
        ToRunner::Cancel(Cancel { id: self.id.as_str().into() }).encode(&mut line);
        // As in `begin`.
        let _ = lease.push(&line);
        let at = Instant::now() + grace;
        self.kill_at = Some(self.kill_at.map_or(at, |before| before.min(at)));
        None
    }

    /// What happens next. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            match &mut self.stage {
                Stage::Waiting(leasing, line) => match leasing.await {
                    Ok(lease) => {
                        let line = std::mem::take(line);
                        self.begin(lease, &line);
                    }
                    Err(error) => return Heard::NotLeased(error),
                },
                Stage::Running(lease) => {
                    return match lease.receive().await {
                        Received::Line(line) => hear(line, &self.id),
                        Received::Gone(exit) => Heard::Gone(exit),
                    };
                }
            }
        }
    }

    /// Tells the host, also of what has arrived meanwhile; says so when the execution is over.
    pub(super) fn on(&mut self, heard: Heard, out: &mut Frames) -> Option<Over> {
        let mut over = self.pass_on(heard, out);
        let mut heard_bytes = 0;
        while over.is_none() && heard_bytes < TURN_BYTES_MAX {
            let Stage::Running(lease) = &mut self.stage else { break };
            let Some(line) = lease.try_next() else { break };
            heard_bytes += line.len() + 1;
            let heard = hear(line, &self.id);
            over = self.pass_on(heard, out);
        }
        over
    }

    fn pass_on(&mut self, heard: Heard, out: &mut Frames) -> Option<Over> {
        match heard {
            Heard::Started => {
                self.again = None;
                self.say_started(out);
            }
            Heard::Call(line) if !self.cancelled => out.push(line),
            Heard::Call(_) => {}
            Heard::Printed(line) => self.said.print(line),
            Heard::Emitted(item) => self.said.emit(item),
            Heard::TimerSet(timer, delay_ms) => {
                if !self.timers.set(timer, delay_ms) {
                    let sentence = "has more timers outstanding than a program may have";
                    return Some(self.give_up(("runtime_error", sentence), out));
                }
            }
            Heard::TimerCleared(timer) => self.timers.clear(timer),
            Heard::Done(done) => return Some(self.done(done, out)),
            Heard::NotLeased(error) => return Some(self.not_leased(&error, out)),
            Heard::Gone(exit) => match self.again.take() {
                // It left while nobody looked; the program has not begun.
                Some(line) if self.kill_at.is_none() => {
                    self.charge = None;
                    self.wait(line);
                }
                Some(_) | None => return Some(self.lost(exit, out)),
            },
            Heard::Nonsense => {
                tracing::warn!("a runner said what no runner says");
                let sentence = "The program broke its sandbox's rules.";
                return Some(self.give_up(("internal_error", sentence), out));
            }
        }
        None
    }

    fn say_started(&mut self, out: &mut Frames) {
        if !std::mem::replace(&mut self.said_started, true) {
            let started = Started { id: self.host_id.as_str().into(), airlock: None };
            out.push(encoded(&FromRunner::Started(started)));
        }
    }

    /// The runner's own word, except that nothing overrides a cancellation.
    fn done(&mut self, outcome: Finished, out: &mut Frames) -> Over {
        let outcome = match outcome {
            _ if self.cancelled => Err((TIMED_OUT.0.to_owned(), TIMED_OUT.1.to_owned())),
            outcome => outcome,
        };
        // Whoever timed out or ran out of memory may leave a process behind that is not as it was.
        let keeps = match &outcome {
            Ok(_) => true,
            Err((code, _)) => {
                !matches!(code.as_str(), "timeout" | "memory_limit" | "internal_error")
            }
        };
        self.answer(outcome.as_ref().map(Option::as_deref), out);
        let stage = std::mem::replace(&mut self.stage, Stage::nothing());
        let spare = match stage {
            Stage::Running(lease) if keeps => {
                let (lease, memory_bytes) = (*lease, self.memory_bytes);
                let mut charge = self.charge.take();
                charge.iter_mut().for_each(RunnerCharge::end_work);
                Some(Spare { charge, lease, memory_bytes, since: Instant::now() })
            }
            Stage::Running(_) | Stage::Waiting(..) => None,
        };
        Over { spare }
    }

    /// Answers for a program that will not answer itself. Its runner, if any, is killed when this is dropped.
    fn give_up(&mut self, (code, message): (&str, &str), out: &mut Frames) -> Over {
        if matches!(self.stage, Stage::Running(_)) {
            // It had begun, whether or not its word had left it.
            self.say_started(out);
        }
        self.answer(Err(&(code.to_owned(), message.to_owned())), out);
        Over { spare: None }
    }

    fn answer(&self, outcome: Result<Option<&str>, &(String, String)>, out: &mut Frames) {
        let outcome = match outcome {
            Ok(json) => Ok(json.and_then(RawJson::parse)),
            Err((code, message)) => Err(failed(code, message)),
        };
        let frame = self.told(outcome);
        if frame.len() <= HOST_MESSAGE_BYTES_MAX {
            return out.push(frame);
        }
        let message = format!("result and logs are larger than {HOST_MESSAGE_BYTES_MAX} bytes");
        out.push(self.told(Err(failed("serialization_error", &message))));
    }

    fn told(&self, outcome: Result<Option<RawJson<'_>>, Failed<'_>>) -> Vec<u8> {
        let elapsed = self.received.elapsed();
        let done = Done {
            id: self.host_id.as_str().into(),
            outcome,
            duration_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            logs: Vec::new(),
            emitted: self.said.items(),
        };
        let mut line = Vec::new();
        encode_done_with_lines(&done, &self.said.lines(), &mut line);
        line
    }

    fn not_leased(&mut self, error: &LeaseError, out: &mut Frames) -> Over {
        let sentence = match error {
            LeaseError::TooLarge { budget_bytes, .. } => {
                format!("memoryLimitBytes is more than the {budget_bytes} bytes this runner has")
            }
            LeaseError::Unavailable { .. } => {
                tracing::error!(%error, "no runner for a channel");
                "no sandbox could be started; try again".to_owned()
            }
            LeaseError::Closed => "the runner is shutting down".to_owned(),
        };
        self.give_up(("internal_error", &sentence), out)
    }

    /// The runner is gone before its program ended.
    fn lost(&mut self, exit: Exit, out: &mut Frames) -> Over {
        let sentence = match exit {
            Exit::OutOfMemory => {
                let sentence = "needed more memory than there is";
                return self.give_up(("memory_limit", sentence), out);
            }
            Exit::Crashed { signal } => {
                format!("The program crashed its sandbox (signal {signal}).")
            }
            Exit::Violation => "The program tried something its sandbox forbids.".to_owned(),
            Exit::Unruly => "The program broke its sandbox's rules.".to_owned(),
            Exit::Lost | Exit::KilledFromOutside => {
                "The program's sandbox was lost; run it again.".to_owned()
            }
            Exit::Ended | Exit::Killed => "The program's sandbox ended unexpectedly.".to_owned(),
        };
        self.give_up(("internal_error", &sentence), out)
    }
}

/// Answers an `execute` that is not begun.
pub(super) fn refuse(host_id: &str, message: &str, out: &mut Frames) {
    out.push(encoded(&FromRunner::Done(Done {
        id: host_id.into(),
        outcome: Err(failed("internal_error", message)),
        duration_ms: 0,
        logs: Vec::new(),
        emitted: Vec::new(),
    })));
}

/// What a runner said, as far as a plain host may hear it, or what became of it.
pub(super) enum Heard {
    NotLeased(LeaseError),
    Started,
    /// The line for the host.
    Call(Vec<u8>),
    /// One line, as JSON.
    Printed(String),
    Emitted(String),
    TimerSet(TimerId, u64),
    TimerCleared(TimerId),
    Done(Finished),
    Nonsense,
    Gone(Exit),
}

/// The value as JSON, or code and sentence.
type Finished = Result<Option<String>, (String, String)>;

/// Reads a line of a runner's. It is hostile input: only what this execution may say is passed on.
fn hear(line: &[u8], id: &str) -> Heard {
    match FromRunner::decode(line) {
        Ok(FromRunner::Started(started)) if started.id == id => Heard::Started,
        Ok(FromRunner::ToolCall(call)) if is_call_of(&call.call_id, id) => {
            Heard::Call(with_line_break(line))
        }
        Ok(FromRunner::Done(done)) if done.id == id && line.len() <= HOST_MESSAGE_BYTES_MAX => {
            Heard::Done(match done.outcome {
                Ok(json) => Ok(json.map(|json| json.text().to_owned())),
                Err(failed) => Err((failed.code.into_owned(), failed.message.into_owned())),
            })
        }
        Ok(FromRunner::Log(log)) => Heard::Printed(line_json(&log)),
        Ok(FromRunner::Emit(emit)) => Heard::Emitted(emit.item.text().to_owned()),
        Ok(FromRunner::TimerSet(TimerSet { timer, delay_ms })) => Heard::TimerSet(timer, delay_ms),
        Ok(FromRunner::TimerCleared(TimerCleared { timer })) => Heard::TimerCleared(timer),
        Ok(_) | Err(_) => Heard::Nonsense,
    }
}

/// A line as JSON: as the runner wrote it where a text cannot hold it, if it is one.
fn line_json(log: &Log<'_>) -> String {
    let exact = log.exact.map(RawJson::text).filter(|text| text.starts_with('"'));
    let plain = || serde_json::Value::String(log.line.clone().into_owned()).to_string();
    exact.map_or_else(plain, str::to_owned)
}

fn is_call_of(call_id: &str, id: &str) -> bool {
    call_id.strip_prefix(id).is_some_and(|rest| rest.starts_with('.'))
}

fn failed<'a>(code: &'a str, message: &'a str) -> Failed<'a> {
    Failed { code: code.into(), message: message.into(), name: None, stack: None, limit: None }
}

fn with_line_break(message: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(message.len() + 1);
    line.extend_from_slice(message);
    line.push(b'\n');
    line
}

fn encoded(message: &FromRunner<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    message.encode(&mut line);
    line
}
