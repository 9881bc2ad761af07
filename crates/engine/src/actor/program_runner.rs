//! A runner with a program of the engine: which inputs it has received, and how many of them are a replay.

use super::call_results::call_result;
use crate::capacity::{OfferedRunner, WaitState};
use lifecycle::{CodeDialect, Entry, GuestInput, InputIndex, State, Timestamp};
use protocols::execbox::wire::{Airlock, Execute, Options, RawJson, TimerFired, ToolResult};
use protocols::execbox::{PRELUDE_VERSION, ToRunner};
use sandbox::{CpuMeter, Lease, RunnerDriver, RunnerMessage};
use std::time::Duration;

/// The only execution on a link between engine and runner.
const LINK_ID: &str = "run";

/// Processor time for a replay, per recorded input, and minimum in total: it repeats work that was
/// within limits before, so this only stops a replay that diverged.
const REPLAY_CPU_MS_MIN: u64 = 10_000;
const REPLAY_CPU_MS_PER_INPUT: u64 = 10;

/// Messages handled in one turn, so that a program that prints continuously does not delay requests of people.
pub(super) const MESSAGES_PER_TURN_MAX: usize = 256;

/// A runner with a program in it.
pub(super) struct ProgramRunner {
    driver: RunnerDriver,
    /// The number of inputs that it received.
    delivered: InputIndex,
    /// The number of inputs it had consumed when it last became idle; none while it is busy.
    rested: Option<InputIndex>,
    /// It repeats recorded inputs.
    replaying: bool,
    /// The last input that is repeated. Work after it is the program's own.
    replayed: InputIndex,
    /// The offer of the runner to others, once the program has waited.
    offered: Option<OfferedRunner>,
    /// When it was restored after its runner had been released, and the processor time that this took.
    came_back: Option<(Timestamp, Duration)>,
    /// Which codes of failed calls the program expects.
    codes: CodeDialect,
}

/// The range of a replay, and what the program used before.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplayStart {
    /// When the program began, by the clock that it saw.
    pub(super) began: Timestamp,
    /// The last input to repeat.
    pub(super) inputs: InputIndex,
    /// Processor time of its own work.
    pub(super) cpu_spent_ms: u64,
}

impl ProgramRunner {
    /// Starts the program of `state` in a new runner; [`ProgramRunner::replay`] and
    /// [`ProgramRunner::ask_when_restored`] follow.
    pub(super) fn start(lease: Lease, state: &State, resumption: ReplayStart) -> Option<Self> {
        let origin = state.origin.as_ref()?;
        let limits = &origin.limits;
        let (code, prelude) = match &state.prepared {
            Some(prepared) => (prepared.program_text(&origin.program), prepared.prelude),
            None => (origin.program.source.as_str(), PRELUDE_VERSION),
        };
        let ReplayStart { began, inputs, cpu_spent_ms } = resumption;
        let n_inputs = u64::from(inputs.0);
        let execute = Execute {
            id: LINK_ID.into(),
            code: code.into(),
            options: Options {
                timeout_ms: limits.active_ms_max,
                memory_limit_bytes: limits.memory_bytes_max,
                max_log_lines: u64::from(limits.outputs_max),
                max_log_chars: limits.bytes_max,
            },
            providers: RawJson::parse("[]").unwrap_or(RawJson::NULL),
            airlock: Some(Airlock {
                seed: origin.seed,
                start_ms: began,
                convention: origin.program.convention,
                prepared: state.prepared.is_some(),
                prelude,
                cpu_ms: limits.cpu_ms_max.saturating_sub(cpu_spent_ms).max(1),
                unawaited: limits.unawaited,
                replay_inputs: inputs,
                replay_cpu_ms: REPLAY_CPU_MS_MIN + REPLAY_CPU_MS_PER_INPUT * n_inputs,
                loop_rounds_max: (limits.loop_rounds_max < u64::MAX)
                    .then_some(limits.loop_rounds_max),
            }),
        };
        Some(Self {
            driver: RunnerDriver::start_program(lease, execute),
            delivered: InputIndex(0),
            rested: None,
            replaying: state.prepared.is_some(),
            replayed: inputs,
            offered: None,
            came_back: None,
            codes: origin.terms.codes,
        })
    }

    /// Passes on the inputs among `entries`, in order, and requests a notice when the last repeated one is done.
    pub(super) fn replay(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Some(input) = entry.event.input() {
                self.deliver(self.delivered.next(), input, entry.at);
                if self.replaying && self.delivered == self.replayed {
                    self.ask_when_restored();
                }
            }
        }
    }

    /// Requests a notice when everything passed on so far is done.
    pub(super) fn ask_when_restored(&mut self) {
        self.driver.sync();
    }

    /// Passes on input number `index`, unless that was done before.
    pub(super) fn deliver(&mut self, index: InputIndex, input: GuestInput<'_>, at: Timestamp) {
        if index != self.delivered.next() {
            return;
        }
        self.delivered = index;
        self.rested = None;
        let message = match input {
            GuestInput::Fired(timer) => ToRunner::TimerFired(TimerFired { timer, at }),
            GuestInput::Settled(call, outcome) => ToRunner::ToolResult(ToolResult {
                call_id: call.to_string().into(),
                outcome: call_result(outcome, self.codes),
                at: Some(at),
            }),
        };
        self.driver.send(&message);
    }

    /// Waits for messages and returns all that have arrived; none if others need the runner. Reads nothing unless there
    /// `is_room` for it.
    pub(super) async fn messages(&mut self, is_room: bool) -> Option<Vec<RunnerMessage>> {
        let Self { driver, offered, .. } = self;
        let wanted = async {
            match offered {
                Some(offered) => offered.asked().await,
                None => std::future::pending().await,
            }
        };
        let first = tokio::select! {
            biased;
            first = driver.next(), if is_room => first,
            () = wanted => return None,
        };
        Some(self.with_arrived(first))
    }

    /// Waits for messages and returns all that have arrived.
    pub(super) async fn next_messages(&mut self) -> Vec<RunnerMessage> {
        let first = self.driver.next().await;
        self.with_arrived(first)
    }

    fn with_arrived(&mut self, first: RunnerMessage) -> Vec<RunnerMessage> {
        let is_last = |message: &RunnerMessage| {
            matches!(message, RunnerMessage::Done(_) | RunnerMessage::Lost(_))
        };
        let mut messages = vec![first];
        // A runner that sends messages after the end is not reused: they remain in the lease, which is not idle then.
        while messages.len() < MESSAGES_PER_TURN_MAX
            && !messages.last().is_some_and(is_last)
            && let Some((message, _)) = self.driver.try_next()
        {
            messages.push(message);
        }
        messages
    }

    /// The number of inputs that it received.
    pub(super) const fn delivered(&self) -> InputIndex {
        self.delivered
    }

    /// It has consumed this many inputs and waits.
    pub(super) const fn rest(&mut self, inputs: InputIndex) {
        self.rested = Some(inputs);
    }

    /// Whether it has consumed exactly this many inputs and waits.
    pub(super) fn is_at_rest(&self, inputs: InputIndex) -> bool {
        self.rested == Some(inputs)
    }

    /// Whether it repeats recorded inputs.
    pub(super) const fn is_replaying(&self) -> bool {
        self.replaying
    }

    /// Whether it was offered to others since its program began to wait.
    pub(super) const fn is_offered(&self) -> bool {
        self.offered.is_some()
    }

    /// Registers the runner as one that others may request.
    pub(super) fn set_offered(&mut self, offered: OfferedRunner) {
        self.offered = Some(offered);
    }

    /// Offers it while its program waits, or withdraws the offer.
    pub(super) fn offer(&self, waiting: Option<WaitState>) {
        if let Some(offered) = &self.offered {
            offered.offer(waiting);
        }
    }

    /// Its program works again: the request for the runner goes to others.
    pub(super) fn decline(&self) {
        if let Some(offered) = &self.offered {
            offered.decline();
        }
    }

    /// When it was restored after its runner had been released, and the processor time that this took.
    pub(super) const fn came_back(&self) -> Option<(Timestamp, Duration)> {
        self.came_back
    }

    /// Records when it was restored, and the processor time that this took.
    pub(super) const fn note_return(&mut self, at: Timestamp, cost: Duration) {
        self.came_back = Some((at, cost));
    }

    /// Its own work begins: the time used so far does not count.
    pub(super) fn begin_own_work(&mut self) {
        self.replaying = false;
        self.driver.restart_cpu_count();
    }

    /// Whether it is busy, and has not yet been asked to yield.
    pub(super) const fn is_in_the_way(&self) -> bool {
        self.rested.is_none() && !self.driver.has_stepped_back()
    }

    /// Lets others go first from now on.
    pub(super) fn step_back(&mut self) {
        self.driver.step_back();
    }

    /// Processor time of its own work.
    pub(super) fn cpu_ms(&mut self) -> u64 {
        let used = self.driver.cpu_used().unwrap_or_default();
        u64::try_from(used.as_millis()).unwrap_or(u64::MAX)
    }

    /// Processor time to charge to the caller; none if the runner is gone and the system no longer reports it. A replay
    /// repeats what was charged before.
    pub(super) fn cpu_to_charge(&mut self) -> Option<Duration> {
        if self.replaying { Some(Duration::ZERO) } else { self.driver.cpu_used() }
    }

    /// The meter of the runner's processor time, and how much of it was used before this program began. For a reused runner
    /// the latter is an estimate: its program may have used all the time since.
    pub(super) fn meter(&self) -> Option<(CpuMeter, Duration)> {
        Some((self.driver.cpu_meter()?, self.driver.cpu_time_before()?))
    }

    /// Processor time of this program in its present runner, including replays.
    pub(super) fn cpu_in_all(&self) -> Option<Duration> {
        let (meter, before) = self.meter()?;
        Some(meter.total()?.saturating_sub(before))
    }

    /// The program has ended: the runner may be reused for the same caller.
    pub(super) fn finish(self) {
        self.driver.finish();
    }
}
