//! What a plain host ordered: an `execute` without `airlock`, kept beyond the line it came in.

use crate::link::Outbox;
use protocols::execbox::wire::{Done, Execute, Failed, Options, RawJson, Text};
use protocols::execbox::{FromRunner, MESSAGE_BYTES_MAX, Provider};
use std::time::{Duration, Instant};

/// Most log lines that are kept, whatever the host allows: empty ones cost memory too.
const LOG_LINES_MAX: u64 = 1 << 16;

/// Most UTF-16 units of log text that are kept, whatever the host allows: they go into one message with the result.
const LOG_CHARS_MAX: u64 = 1 << 20;

/// Longest time a program may ask for.
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// One program to run.
pub(crate) struct Order {
    pub(crate) id: String,
    pub(super) code: String,
    pub(super) options: Options,
    pub(super) providers: Vec<(String, Vec<String>)>,
    received: Instant,
}

/// Why a program has no value: a code of execbox's, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) code: String,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }

    pub(super) fn timeout() -> Self {
        Self::new("timeout", "Execution timed out")
    }
}

impl Order {
    /// The order that an `execute` is; `None` if its tools make no sense.
    pub(crate) fn read(execute: &Execute<'_>) -> Option<Self> {
        let providers = Provider::read_all(execute.providers).ok()?;
        let owned = |provider: Provider<'_>| {
            let tools = provider.tools.into_iter().map(Text::into_owned).collect();
            (provider.name.into_owned(), tools)
        };
        Some(Self {
            id: execute.id.clone().into_owned(),
            code: execute.code.clone().into_owned(),
            options: execute.options,
            providers: providers.into_iter().map(owned).collect(),
            received: Instant::now(),
        })
    }

    pub(super) fn time_allowed(&self) -> Duration {
        Duration::from_millis(self.options.timeout_ms).min(TIME_MAX)
    }

    pub(super) fn log_lines_max(&self) -> u32 {
        clamped(self.options.max_log_lines, LOG_LINES_MAX)
    }

    pub(super) fn log_chars_max(&self) -> u32 {
        clamped(self.options.max_log_chars, LOG_CHARS_MAX)
    }

    /// Says how it ended, with what was printed.
    pub(super) fn done(
        &self,
        outcome: &Result<Option<String>, Failure>,
        logs: &[String],
        outbox: &Outbox,
    ) {
        let too_large;
        let outcome = match outcome {
            Ok(Some(json)) if json.len() + logs_bytes(logs) > MESSAGE_BYTES_MAX => {
                let message = format!("result and logs are larger than {MESSAGE_BYTES_MAX} bytes");
                too_large = Failure::new("serialization_error", message);
                Err(failed(&too_large))
            }
            Ok(json) => Ok(json.as_deref().map(crate::convert::raw)),
            Err(failure) => Err(failed(failure)),
        };
        self.say(outcome, logs, outbox);
        outbox.flush();
    }

    fn say(
        &self,
        outcome: Result<Option<RawJson<'_>>, Failed<'_>>,
        logs: &[String],
        outbox: &Outbox,
    ) {
        let duration_ms = u64::try_from(self.received.elapsed().as_millis()).unwrap_or(u64::MAX);
        outbox.send(&FromRunner::Done(Done {
            id: self.id.as_str().into(),
            outcome,
            duration_ms,
            logs: logs.iter().map(|line| line.as_str().into()).collect(),
        }));
    }
}

fn failed(failure: &Failure) -> Failed<'_> {
    let Failure { code, message } = failure;
    let (code, message) = (code.as_str().into(), message.as_str().into());
    Failed { code, message, name: None, stack: None, limit: None }
}

fn clamped(asked: u64, max: u64) -> u32 {
    u32::try_from(asked.min(max)).expect("the maximum is far smaller")
}

/// What logs and everything around them take in a message, at most: a control character has six bytes there.
fn logs_bytes(logs: &[String]) -> usize {
    let line = |line: &String| {
        let controls = line.bytes().filter(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\'));
        line.len() + 5 * controls.count() + 3
    };
    logs.iter().map(line).sum::<usize>() + protocols::execbox::ENVELOPE_BYTES_MAX
}
