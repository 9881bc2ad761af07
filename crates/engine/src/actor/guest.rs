//! The program's end of the link: what we tell the runner and what it says. Whatever it says is
//! input, never truth.

use crate::capacity::OfferedRunner;
use lifecycle::{
    BadToolPath, CallId, CallOutcome, CodeDialect, Entry, Failure, FailureCode, Input, InputIndex,
    Json, LimitKind, LogLevel, OutputMark, Prepared, State, TimerId, Timestamp, ToolPath,
};
use protocols::enclave;
use protocols::execbox::wire::{
    Airlock, CallFailure, Execute, Failed, Options, RawJson, Sync, TimerFired, ToolResult,
};
use protocols::execbox::{FromRunner, PRELUDE_VERSION, ToRunner};
use sandbox::{CpuMeter, Exit, Lease, Received};
use std::borrow::Cow;
use std::time::Duration;

/// The only execution on a link between engine and runner.
const LINK_ID: &str = "run";

/// Processor time for a replay, per recorded input and altogether at least: it repeats work that was
/// within limits before, so this only stops what has gone astray.
const REPLAY_CPU_MS_MIN: u64 = 10_000;
const REPLAY_CPU_MS_PER_INPUT: u64 = 10;

/// Messages handled in one turn, so that a chatty guest does not keep people waiting.
pub(super) const MESSAGES_PER_TURN_MAX: usize = 256;

/// A runner with a program in it.
pub(super) struct Guest {
    lease: Lease,
    /// How many inputs it was given.
    pub(super) delivered: InputIndex,
    /// How many inputs it had taken when it last came to rest; none while it is busy.
    pub(super) rested: Option<InputIndex>,
    /// It is repeating what the journal tells.
    pub(super) replaying: bool,
    /// Processor time it had used when its own work began; not asked for while a program of a used runner is young.
    cpu_before: Option<Duration>,
    /// It has been busy for long and lets others go first.
    has_stepped_back: bool,
    /// The last input that is repeated. What comes after it is the program's own work.
    replayed: InputIndex,
    /// Where the runner is offered to others, once the program has waited.
    pub(super) held: Option<OfferedRunner>,
    /// When it was brought back after others had its runner, and the processor time that this took.
    pub(super) came_back: Option<(Timestamp, Duration)>,
    /// Whose words the program reads as the codes of failed calls.
    codes: CodeDialect,
}

/// How much of a program a new runner repeats, and what the program used before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resumption {
    /// When the program began, by the clock that it saw.
    pub(super) began: Timestamp,
    /// The last input to repeat.
    pub(super) inputs: InputIndex,
    /// Processor time that its own work has used.
    pub(super) cpu_spent_ms: u64,
}

/// What the guest's side has to say.
#[derive(Debug)]
pub(super) enum Said {
    Ready(Prepared),
    Called { call: CallId, tool: ToolPath, args: Json, line: Option<u32> },
    Logged { mark: OutputMark, level: LogLevel, line: String },
    Emitted { mark: OutputMark, item: Json },
    TimerSet { timer: TimerId, delay_ms: u64 },
    TimerCleared { timer: TimerId },
    Idle(InputIndex),
    Counted(u64),
    Restored,
    Diverged(String),
    Done(Result<Option<Json>, (Failure, Option<LimitKind>)>),
    Nonsense(&'static str),
    Gone(Exit),
}

impl Guest {
    /// Hands the program of `state` to a fresh runner; [`Guest::replay`] and [`Guest::ask_when_restored`] follow.
    pub(super) fn start(mut lease: Lease, state: &State, resumption: Resumption) -> Option<Self> {
        let origin = state.origin.as_ref()?;
        let limits = &origin.limits;
        let (code, prelude) = match &state.prepared {
            Some(prepared) => (prepared.text(&origin.program), prepared.prelude),
            None => (origin.program.source.as_str(), PRELUDE_VERSION),
        };
        let Resumption { began, inputs, cpu_spent_ms } = resumption;
        let n_inputs = u64::from(inputs.0);
        let execute = ToRunner::Execute(Execute {
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
        });
        push(&mut lease, &execute);
        let replaying = state.prepared.is_some();
        let cpu_before = if lease.is_used() { None } else { Some(Duration::ZERO) };
        Some(Self {
            lease,
            delivered: InputIndex(0),
            rested: None,
            replaying,
            cpu_before,
            has_stepped_back: false,
            replayed: inputs,
            held: None,
            came_back: None,
            codes: origin.terms.codes,
        })
    }

    /// Hands over the inputs among `entries`, in order, and asks to be told when the last one that is repeated is done.
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

    /// Asks to be told when all that was handed over so far is done.
    pub(super) fn ask_when_restored(&mut self) {
        push(&mut self.lease, &ToRunner::Sync(Sync { n: 1 }));
    }

    /// Hands over input number `index`, unless it was handed over before.
    pub(super) fn deliver(&mut self, index: InputIndex, input: Input<'_>, at: Timestamp) {
        if index != self.delivered.next() {
            return;
        }
        self.delivered = index;
        self.rested = None;
        let message = match input {
            Input::Fired(timer) => ToRunner::TimerFired(TimerFired { timer, at }),
            Input::Settled(call, outcome) => ToRunner::ToolResult(ToolResult {
                call_id: call.to_string().into(),
                outcome: result_of(outcome, self.codes),
                at: Some(at),
            }),
        };
        push(&mut self.lease, &message);
    }

    /// Waits until the guest's side says something, and returns all that is there; none when others want its runner.
    /// Nothing is heard unless there `is_room` for it.
    pub(super) async fn listen(&mut self, is_room: bool) -> Option<Vec<Said>> {
        let Self { lease, held, .. } = self;
        let wanted = async {
            match held {
                Some(held) => held.asked().await,
                None => std::future::pending().await,
            }
        };
        let first = tokio::select! {
            biased;
            received = lease.receive(), if is_room => match received {
                Received::Line(line) => understand(line),
                Received::Gone(exit) => return Some(vec![Said::Gone(exit)]),
            },
            () = wanted => return None,
        };
        Some(self.hear_rest(first))
    }

    /// Waits until the guest's side says something, and returns all that is there.
    pub(super) async fn listen_only(&mut self) -> Vec<Said> {
        let first = match self.lease.receive().await {
            Received::Line(line) => understand(line),
            Received::Gone(exit) => return vec![Said::Gone(exit)],
        };
        self.hear_rest(first)
    }

    fn hear_rest(&mut self, first: Said) -> Vec<Said> {
        let mut said = vec![first];
        let is_over = |said: &[Said]| matches!(said.last(), Some(Said::Done(_)));
        // A runner that says more after the end is not kept: the rest stays in the lease, which is not at rest then.
        while said.len() < MESSAGES_PER_TURN_MAX
            && !is_over(&said)
            && let Some(line) = self.lease.try_next()
        {
            said.push(understand(line));
        }
        said
    }

    /// Its own work begins: what it used so far does not count.
    pub(super) fn begin_own_work(&mut self) {
        self.replaying = false;
        self.cpu_before = self.lease.cpu_time();
    }

    /// Whether it is busy, and has not been asked yet to let others go first.
    pub(super) const fn is_in_the_way(&self) -> bool {
        self.rested.is_none() && !self.has_stepped_back
    }

    /// Lets others go first from now on.
    pub(super) fn step_back(&mut self) {
        self.has_stepped_back = true;
        self.lease.step_back();
        self.count_cpu();
    }

    /// Processor time its own work has used.
    pub(super) fn cpu_ms(&mut self) -> u64 {
        let used = self.count_cpu().unwrap_or_default();
        u64::try_from(used.as_millis()).unwrap_or(u64::MAX)
    }

    /// Processor time to charge to the caller; none where the runner is gone and the system no longer says. A replay
    /// repeats what was charged before.
    pub(super) fn cpu_to_charge(&mut self) -> Option<Duration> {
        if self.replaying { Some(Duration::ZERO) } else { self.count_cpu() }
    }

    /// The same. A used runner is asked only once its program has been busy for long: what it used before that, a tenth of a
    /// second at most, is not counted, and short programs need not ask the system. The runner itself counts all of it.
    fn count_cpu(&mut self) -> Option<Duration> {
        let now = self.lease.cpu_time()?;
        Some(now.saturating_sub(*self.cpu_before.get_or_insert(now)))
    }

    /// What reads the runner's processor time, and how much of that was used before this program began. Of a used runner
    /// that is not known exactly: its program may have used all the time since.
    pub(super) fn meter(&self) -> Option<(CpuMeter, Duration)> {
        Some((self.lease.cpu_meter(), self.lease.cpu_time_before()?))
    }

    /// Processor time of this program in its present runner, replays included.
    pub(super) fn cpu_in_all(&self) -> Option<Duration> {
        let (meter, before) = self.meter()?;
        Some(meter.total()?.saturating_sub(before))
    }

    /// The program is over: the runner may be kept for the same caller.
    pub(super) fn finish(self) {
        self.lease.finish();
    }
}

fn push(lease: &mut Lease, message: &ToRunner<'_>) {
    let mut line = Vec::with_capacity(256);
    message.encode(&mut line);
    // A runner that is gone says so itself, through `listen`.
    let _ = lease.push(&line);
}

fn result_of(
    outcome: &CallOutcome,
    codes: CodeDialect,
) -> Result<Option<RawJson<'_>>, CallFailure<'_>> {
    match outcome {
        CallOutcome::Returned { value } => Ok(value.as_ref().map(RawJson::from)),
        CallOutcome::Failed(failure) => Err(CallFailure {
            code: tools_own_code(failure).unwrap_or_else(|| match codes {
                CodeDialect::Journal => code_word(failure.code),
                CodeDialect::Enclave => enclave::call_code(&untitled(failure)).into(),
            }),
            message: match codes {
                CodeDialect::Journal => Cow::Borrowed(&failure.message),
                CodeDialect::Enclave => enclave::call_message(failure),
            },
            name: failure.name.as_deref().map(Cow::Borrowed),
            details: failure.details.as_ref().map(RawJson::from),
        }),
        CallOutcome::Unknown => Err(CallFailure {
            code: code_word(FailureCode::InDoubt),
            message: "nobody knows whether the tool ran".into(),
            name: None,
            details: None,
        }),
    }
}

/// The failure without the code that a tool gave it, which is not for programs here.
fn untitled(failure: &Failure) -> Failure {
    Failure::new(failure.code, String::new())
}

/// What a program's own account of its failure means. A failed call that the program did not catch comes back with the
/// code that it was given.
pub(super) fn in_own_words(mut failure: Failure, codes: CodeDialect) -> Failure {
    let own = match codes {
        CodeDialect::Journal => None,
        CodeDialect::Enclave => given_code(&failure).and_then(|code| enclave::call_failure(&code)),
    };
    if let Some(code) = own {
        (failure.code, failure.details) = (code, None);
    }
    failure
}

/// Longest code of a tool's own that programs are shown.
const OWN_CODE_BYTES_MAX: usize = 100;

/// The code that a failed tool gave itself, unless it is one of our words.
fn tools_own_code(failure: &Failure) -> Option<Cow<'static, str>> {
    let code = given_code(failure)?;
    let fits = (1..=OWN_CODE_BYTES_MAX).contains(&code.len());
    (fits && ours(&code).is_none()).then_some(Cow::Owned(code))
}

/// The code in the details of a tool's failure.
fn given_code(failure: &Failure) -> Option<String> {
    if failure.code != FailureCode::Tool {
        return None;
    }
    let details = failure.details.as_ref()?;
    let details: serde_json::Value = serde_json::from_str(details.text()).ok()?;
    Some(details.get("code")?.as_str()?.to_owned())
}

/// The failure code that a word is.
fn ours(word: &str) -> Option<FailureCode> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}

/// A failure code as the journal spells it.
fn code_word(code: FailureCode) -> Cow<'static, str> {
    match serde_json::to_value(code) {
        Ok(serde_json::Value::String(word)) => Cow::Owned(word),
        Ok(_) | Err(_) => Cow::Borrowed("internal"),
    }
}

/// One line of a runner, made ours. What makes no sense is said to make none.
fn understand(line: &[u8]) -> Said {
    let Ok(message) = FromRunner::decode(line) else {
        return Said::Nonsense("a message that cannot be read");
    };
    match message {
        FromRunner::Started(started) => match started.airlock {
            Some(ready) => Said::Ready(Prepared {
                text: Some(ready.prepared.into_owned()),
                prelude: ready.prelude,
                fingerprint: ready.fingerprint.into_owned(),
            }),
            None => Said::Nonsense("a start without a prepared program"),
        },
        FromRunner::ToolCall(call) => {
            match (call.call_id.parse(), tool_path(&call.safe_tool_name)) {
                (Ok(ordinal), Ok(tool)) => {
                    let args = call.input.to_json();
                    Said::Called { call: CallId(ordinal), tool, args, line: call.line }
                }
                _ => Said::Nonsense("a call without a number or a path"),
            }
        }
        FromRunner::Log(log) => {
            Said::Logged { mark: log.mark, level: log.level, line: log.line.into_owned() }
        }
        FromRunner::Emit(emit) => Said::Emitted { mark: emit.mark, item: emit.item.to_json() },
        FromRunner::TimerSet(set) => Said::TimerSet { timer: set.timer, delay_ms: set.delay_ms },
        FromRunner::TimerCleared(cleared) => Said::TimerCleared { timer: cleared.timer },
        FromRunner::Idle(idle) => Said::Idle(idle.inputs),
        FromRunner::Counted(counted) => Said::Counted(counted.iterations),
        FromRunner::Synced(_) => Said::Restored,
        FromRunner::Diverged(diverged) => Said::Diverged(diverged.what.into_owned()),
        FromRunner::Done(done) => Said::Done(match done.outcome {
            Ok(value) => Ok(value.map(RawJson::to_json)),
            Err(failed) => Err(failure_of(&failed)),
        }),
    }
}

/// The path of a tool. Some write `tools.` before it; rules about the tool know it without.
fn tool_path(name: &str) -> Result<ToolPath, BadToolPath> {
    ToolPath::parse(name.trim_start_matches("tools."))
}

fn failure_of(failed: &Failed<'_>) -> (Failure, Option<LimitKind>) {
    // Guests cannot invent a code: one that is not ours is a tool's own, on its way back.
    let (code, details) = match ours(&failed.code) {
        Some(code) => (code, None),
        None => {
            (FailureCode::Tool, Json::from_value(&serde_json::json!({ "code": failed.code })).ok())
        }
    };
    let failure = Failure {
        code,
        message: failed.message.to_string(),
        name: failed.name.as_ref().map(ToString::to_string),
        stack: failed.stack.as_ref().map(ToString::to_string),
        details,
    };
    let limit = match (failed.limit.as_deref(), failure.code) {
        (Some("cpu"), _) => Some(LimitKind::Cpu),
        (Some("rounds"), _) => Some(LimitKind::Rounds),
        (_, FailureCode::MemoryLimit) => Some(LimitKind::Memory),
        _ => None,
    };
    (failure, limit)
}
