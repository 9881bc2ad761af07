//! Encodes a message to a line. The type always comes first: readers rely on it to parse a line once.

use super::decode::OPENING;
use super::wire::{
    Airlock, CallFailure, Done, Execute, Failed, FromRunner, Options, RawJson, Started, ToRunner,
    ToolCall, ToolResult,
};
use lifecycle::OutputMark;
use serde::Serialize;

impl ToRunner<'_> {
    /// Appends the message and its line break.
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Execute(execute) => encode_execute(execute, to),
            Self::ToolResult(result) => encode_tool_result(result, to),
            Self::TimerFired(fired) => {
                MessageLine::new(to, "timer_fired")
                    .value("timer", &fired.timer)
                    .value("at", &fired.at)
                    .end_message();
            }
            Self::Sync(sync) => MessageLine::new(to, "sync").value("n", &sync.n).end_message(),
            Self::Cancel(cancel) => {
                MessageLine::new(to, "cancel").value("id", &cancel.id).end_message()
            }
            Self::Session(open) => {
                let line = MessageLine::new(to, "session").value("memoryBytes", &open.memory_bytes);
                let line = line.value("seed", &open.seed).value("startMs", &open.start_ms);
                let line = line.value("elementsMax", &open.elements_max);
                let line = line.value("valueCharsMax", &open.value_chars_max);
                line.value("printedBytesMax", &open.printed_bytes_max).end_message();
            }
        }
    }
}

impl FromRunner<'_> {
    /// Appends the message and its line break.
    pub fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Started(started) => encode_started(started, to),
            Self::ToolCall(call) => encode_tool_call(call, to),
            Self::Log(log) => {
                let line = MessageLine::new(to, "log").value("level", &log.level);
                line.value("line", &log.line)
                    .mark(log.mark)
                    .raw_if_any("exact", log.exact)
                    .end_message();
            }
            Self::Emit(emit) => {
                MessageLine::new(to, "emit").raw("item", emit.item).mark(emit.mark).end_message();
            }
            Self::TimerSet(set) => {
                let line = MessageLine::new(to, "timer_set").value("timer", &set.timer);
                line.value("delayMs", &set.delay_ms).end_message();
            }
            Self::TimerCleared(cleared) => {
                MessageLine::new(to, "timer_cleared").value("timer", &cleared.timer).end_message();
            }
            Self::Idle(idle) => {
                MessageLine::new(to, "idle").value("inputs", &idle.inputs).end_message()
            }
            Self::Synced(sync) => MessageLine::new(to, "synced").value("n", &sync.n).end_message(),
            Self::Counted(counted) => {
                MessageLine::new(to, "counted")
                    .value("iterations", &counted.iterations)
                    .end_message();
            }
            Self::Diverged(diverged) => {
                MessageLine::new(to, "diverged").value("what", &diverged.what).end_message();
            }
            Self::Done(done) => encode_done(done, to),
        }
    }
}

fn encode_execute(execute: &Execute<'_>, to: &mut Vec<u8>) {
    let Execute { id, code, options, providers, airlock } = execute;
    let line = MessageLine::new(to, "execute").value("id", id).value("code", code);
    let line = line.object("options", |options_line| {
        let Options { timeout_ms, memory_limit_bytes, max_log_lines, max_log_chars } = options;
        options_line
            .value("timeoutMs", timeout_ms)
            .value("memoryLimitBytes", memory_limit_bytes)
            .value("maxLogLines", max_log_lines)
            .value("maxLogChars", max_log_chars)
    });
    let line = line.raw("providers", *providers);
    match airlock {
        Some(airlock) => {
            line.object("airlock", |line| airlock_members(airlock, line)).end_message()
        }
        None => line.end_message(),
    }
}

fn airlock_members<'v>(airlock: &Airlock, line: MessageLine<'v>) -> MessageLine<'v> {
    line.value("seed", &airlock.seed)
        .value("startMs", &airlock.start_ms)
        .value("convention", &airlock.convention)
        .value("prepared", &airlock.prepared)
        .value("prelude", &airlock.prelude)
        .value("cpuMs", &airlock.cpu_ms)
        .value("unawaited", &airlock.unawaited)
        .value("replayInputs", &airlock.replay_inputs)
        .value("replayCpuMs", &airlock.replay_cpu_ms)
        .value_if_any("loopRoundsMax", airlock.loop_rounds_max.as_ref())
}

fn encode_tool_result(result: &ToolResult<'_>, to: &mut Vec<u8>) {
    let line = MessageLine::new(to, "tool_result").value("callId", &result.call_id);
    let line = match &result.outcome {
        Ok(value) => line.value("ok", &true).raw_if_any("result", *value),
        Err(failure) => line.value("ok", &false).object("error", |line| {
            let CallFailure { code, message, name, details } = failure;
            let line = line.value("code", code).value("message", message);
            line.value_if_any("name", name.as_ref()).raw_if_any("details", *details)
        }),
    };
    line.value_if_any("at", result.at.as_ref()).end_message();
}

fn encode_started(started: &Started<'_>, to: &mut Vec<u8>) {
    let line = MessageLine::new(to, "started").value("id", &started.id);
    match &started.airlock {
        Some(airlock) => line
            .object("airlock", |line| {
                line.value("prepared", &airlock.prepared)
                    .value("prelude", &airlock.prelude)
                    .value("fingerprint", &airlock.fingerprint)
            })
            .end_message(),
        None => line.end_message(),
    }
}

fn encode_tool_call(call: &ToolCall<'_>, to: &mut Vec<u8>) {
    MessageLine::new(to, "tool_call")
        .value("callId", &call.call_id)
        .value("providerName", &call.provider_name)
        .value("safeToolName", &call.safe_tool_name)
        .raw("input", call.input)
        .value_if_any("line", call.line.as_ref())
        .end_message();
}

fn encode_done(done: &Done<'_>, to: &mut Vec<u8>) {
    encode_done_with(done, &done.logs, to);
}

/// Appends `done` with lines that are already JSON texts, so that halves of surrogate pairs survive in them.
pub fn encode_done_with_lines(done: &Done<'_>, lines: &[RawJson<'_>], to: &mut Vec<u8>) {
    encode_done_with(done, lines, to);
}

fn encode_done_with<L: Serialize + ?Sized>(done: &Done<'_>, logs: &L, to: &mut Vec<u8>) {
    let line =
        MessageLine::new(to, "done").value("id", &done.id).value("ok", &done.outcome.is_ok());
    let line = line.value("durationMs", &done.duration_ms).value("logs", logs);
    let emitted = (!done.emitted.is_empty()).then_some(&done.emitted);
    let line = line.value_if_any("emitted", emitted);
    match &done.outcome {
        Ok(value) => line.raw_if_any("result", *value).end_message(),
        Err(failed) => line
            .object("error", |line| {
                let Failed { code, message, name, stack, limit } = failed;
                line.value("code", code)
                    .value("message", message)
                    .value_if_any("name", name.as_ref())
                    .value_if_any("stack", stack.as_ref())
                    .value_if_any("limit", limit.as_ref())
            })
            .end_message(),
    }
}

/// A line being written: members in the order in which they are named.
struct MessageLine<'v> {
    to: &'v mut Vec<u8>,
    /// Whether the object just opened has no member yet.
    fresh: bool,
}

impl<'v> MessageLine<'v> {
    fn new(to: &'v mut Vec<u8>, kind: &str) -> Self {
        to.extend_from_slice(OPENING.as_bytes());
        to.extend_from_slice(kind.as_bytes());
        to.push(b'"');
        Self { to, fresh: false }
    }

    fn key(&mut self, key: &str) {
        if !std::mem::take(&mut self.fresh) {
            self.to.push(b',');
        }
        self.to.push(b'"');
        self.to.extend_from_slice(key.as_bytes());
        self.to.extend_from_slice(b"\":");
    }

    fn value<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Self {
        self.key(key);
        serde_json::to_writer(&mut *self.to, value)
            .expect("texts, numbers and truths can always be written to memory");
        self
    }

    fn value_if_any<T: Serialize>(self, key: &str, value: Option<&T>) -> Self {
        match value {
            Some(value) => self.value(key, value),
            None => self,
        }
    }

    /// Appends a payload unchanged, except for line breaks, which would end our line; JSON has them between
    /// values only.
    fn raw(mut self, key: &str, payload: RawJson<'_>) -> Self {
        self.key(key);
        let start = self.to.len();
        self.to.extend_from_slice(payload.as_text().as_bytes());
        for byte in &mut self.to[start..] {
            *byte = if *byte == b'\n' { b' ' } else { *byte };
        }
        self
    }

    fn raw_if_any(self, key: &str, payload: Option<RawJson<'_>>) -> Self {
        match payload {
            Some(payload) => self.raw(key, payload),
            None => self,
        }
    }

    fn mark(self, mark: OutputMark) -> Self {
        self.value("input", &mark.input).value("ordinal", &mark.ordinal)
    }

    fn object(mut self, key: &str, members: impl FnOnce(Self) -> Self) -> Self {
        self.key(key);
        self.to.push(b'{');
        self.fresh = true;
        let mut line = members(self);
        line.fresh = false;
        line.to.push(b'}');
        line
    }

    fn end_message(self) {
        self.to.extend_from_slice(b"}\n");
    }
}
