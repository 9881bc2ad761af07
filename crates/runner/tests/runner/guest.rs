//! Runs a runner in a separate thread and holds the engine's end of its link.

use lifecycle::{InputIndex, RandomSeed, TimerId, Timestamp, UnawaitedCalls, ValueConvention};
use protocols::execbox::ToRunner;
use protocols::execbox::wire::{
    Airlock, CallFailure, Execute, Options, RawJson, Sync, TimerFired, ToolResult,
};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

/// Parsers recurse. The runner process has a main thread with a stack of this size.
const STACK_BYTES: usize = runner::STACK_BYTES;

/// Initial time of the guests' clocks.
pub(crate) const START_MS: i64 = 1_700_000_000_000;

/// A program to run, with its settings. Fields that a test does not set have their defaults.
#[derive(Clone)]
pub(crate) struct Run<'a> {
    pub(crate) code: &'a str,
    pub(crate) convention: ValueConvention,
    pub(crate) prepared: bool,
    pub(crate) unawaited: UnawaitedCalls,
    pub(crate) seed: u8,
    pub(crate) cpu_ms: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) replay_inputs: u32,
    pub(crate) replay_cpu_ms: u64,
    pub(crate) prelude: u32,
    pub(crate) loop_rounds_max: Option<u64>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(code: &'a str) -> Self {
        Self {
            code,
            convention: ValueConvention::LastExpression,
            prepared: false,
            unawaited: UnawaitedCalls::Wait,
            seed: 7,
            cpu_ms: 10_000,
            memory_bytes: 64 << 20,
            replay_inputs: 0,
            replay_cpu_ms: 10_000,
            prelude: runner::PRELUDE_VERSION,
            loop_rounds_max: None,
        }
    }

    fn message(&self) -> ToRunner<'a> {
        ToRunner::Execute(Execute {
            id: "run".into(),
            code: self.code.into(),
            options: Options {
                timeout_ms: 60_000,
                memory_limit_bytes: self.memory_bytes,
                max_log_lines: 0,
                max_log_chars: 0,
            },
            providers: RawJson::parse("[]").unwrap(),
            airlock: Some(Airlock {
                seed: RandomSeed([self.seed; 32]),
                start_ms: Timestamp(START_MS),
                convention: self.convention,
                prepared: self.prepared,
                prelude: self.prelude,
                cpu_ms: self.cpu_ms,
                unawaited: self.unawaited,
                replay_inputs: InputIndex(self.replay_inputs),
                replay_cpu_ms: self.replay_cpu_ms,
                loop_rounds_max: self.loop_rounds_max,
            }),
        })
    }
}

/// A runner and the connection to it.
pub(crate) struct Guest {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    thread: Option<JoinHandle<i32>>,
}

impl Guest {
    pub(crate) fn new() -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        // With the timeout, a runner that hangs fails its test instead of blocking it.
        ours.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let serve = || runner::GuestWorld::warm().serve(theirs);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(serve).unwrap();
        let writer = ours.try_clone().unwrap();
        Self { reader: BufReader::new(ours), writer, thread: Some(thread) }
    }

    /// Starts a runner and sends it `code`.
    pub(crate) fn running(code: &str) -> Self {
        let mut guest = Self::new();
        guest.execute(&Run::new(code));
        guest
    }

    pub(crate) fn execute(&mut self, run: &Run<'_>) {
        self.send(&run.message());
    }

    pub(crate) fn send(&mut self, message: &ToRunner<'_>) {
        let mut line = Vec::new();
        message.encode(&mut line);
        self.send_line(&line);
    }

    pub(crate) fn send_line(&mut self, line: &[u8]) {
        self.writer.write_all(line).unwrap();
    }

    pub(crate) fn resolve(&mut self, call: u32, result: &str, at: i64) {
        self.send(&ToRunner::ToolResult(ToolResult {
            call_id: call.to_string().into(),
            outcome: Ok(RawJson::parse(result)),
            at: Some(Timestamp(START_MS + at)),
        }));
    }

    pub(crate) fn reject(&mut self, call: u32, code: &str, message: &str) {
        self.send(&ToRunner::ToolResult(ToolResult {
            call_id: call.to_string().into(),
            outcome: Err(CallFailure {
                code: code.into(),
                message: message.into(),
                name: None,
                details: RawJson::parse("{\"why\":[1]}"),
            }),
            at: Some(Timestamp(START_MS)),
        }));
    }

    pub(crate) fn fire(&mut self, timer: u32, at: i64) {
        let at = Timestamp(START_MS + at);
        self.send(&ToRunner::TimerFired(TimerFired { timer: TimerId(timer), at }));
    }

    pub(crate) fn sync(&mut self, n: u64) {
        self.send(&ToRunner::Sync(Sync { n }));
    }

    /// Returns the next message, or `None` once the runner has closed the link.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let n = self.reader.read_line(&mut line).unwrap();
        (n > 0).then(|| serde_json::from_str(&without_halves(&line)).unwrap())
    }

    /// Reads the next line without decoding it.
    pub(crate) fn read_line(&mut self, line: &mut String) {
        assert!(self.reader.read_line(line).unwrap() > 0, "the runner left");
    }

    /// Returns all messages up to and including the next one of this type, abbreviated by [`short`].
    pub(crate) fn until(&mut self, kind: &str) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(message) = self.next() {
            if message["type"] == "counted" {
                continue; // their number depends on the machine's speed
            }
            let found = message["type"] == kind;
            seen.push(short(&message));
            if found {
                return seen;
            }
        }
        panic!("no {kind} after {seen:#?}");
    }

    /// Returns the next `done` message and skips all others.
    pub(crate) fn done(&mut self) -> Value {
        while let Some(message) = self.next() {
            if message["type"] == "done" {
                return message;
            }
        }
        panic!("the runner left without a word");
    }

    /// Returns the bytes that were read from the socket but not consumed yet.
    pub(crate) fn arrived(&self) -> String {
        String::from_utf8_lossy(self.reader.buffer()).into_owned()
    }

    /// Closes the link and returns the runner's exit code.
    pub(crate) fn close(mut self) -> i32 {
        self.writer.shutdown(std::net::Shutdown::Both).unwrap();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.writer.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Runs the program to its end without answering any call.
pub(crate) fn done(run: &Run<'_>) -> Value {
    let mut guest = Guest::new();
    guest.execute(run);
    guest.done()
}

/// Returns the value of `code` as JSON text; `undefined` if it has none.
#[track_caller]
pub(crate) fn value(code: &str) -> String {
    let done = done(&Run::new(code));
    assert_eq!(done["ok"], true, "{done}");
    done.get("result").map_or("undefined".to_owned(), Value::to_string)
}

/// Returns the error code and the message with which `code` fails.
#[track_caller]
pub(crate) fn failure(code: &str) -> (String, String) {
    failure_of(&Run::new(code))
}

#[track_caller]
pub(crate) fn failure_of(run: &Run<'_>) -> (String, String) {
    let done = done(run);
    assert_eq!(done["ok"], false, "{done}");
    let text = |name: &str| done["error"][name].as_str().unwrap().to_owned();
    (text("code"), text("message"))
}

/// Returns the lines that `code` prints.
pub(crate) fn printed(code: &str) -> Vec<String> {
    let mut guest = Guest::running(code);
    let mut lines = Vec::new();
    loop {
        let message = guest.next().unwrap();
        match message["type"].as_str().unwrap() {
            "log" => lines.push(message["line"].as_str().unwrap().to_owned()),
            "done" => return lines,
            _ => {}
        }
    }
}

/// Abbreviates a message to one line, without the fields that vary between runs or never vary.
fn short(message: &Value) -> String {
    let text = |name: &str| {
        let value = &message[name];
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    match text("type").as_str() {
        "started" => "started".to_owned(),
        "tool_call" => {
            format!("call {} {} {}", text("callId"), text("safeToolName"), text("input"))
        }
        "log" => {
            format!("{} {} [{}.{}]", text("level"), text("line"), text("input"), text("ordinal"))
        }
        "emit" => format!("emit {} [{}.{}]", text("item"), text("input"), text("ordinal")),
        "timer_set" => format!("timer {} in {}", text("timer"), text("delayMs")),
        "timer_cleared" => format!("timer {} cleared", text("timer")),
        "idle" => format!("idle {}", text("inputs")),
        "synced" => format!("synced {}", text("n")),
        "diverged" => format!("diverged: {}", text("what")),
        "done" if message["ok"] == true => format!("done {}", text("result")),
        "done" => format!("failed {}", message["error"]["code"].as_str().unwrap()),
        other => panic!("a message of type {other}"),
    }
}

/// Replaces unpaired surrogates in a message: JSON text may contain them, a Rust string may not.
fn without_halves(line: &str) -> String {
    let mut parts = line.split("\\ud");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // With any other digit, `\ud…` encodes a Hangul syllable.
        match part.as_bytes().first() {
            Some(b'8'..=b'9' | b'a'..=b'f') => whole.extend(["\\ufffd", &part[3..]]),
            _ => whole.extend(["\\ud", part]),
        }
    }
    whole
}
