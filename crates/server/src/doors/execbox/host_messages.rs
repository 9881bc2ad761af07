//! Messages to a host, as lines.

use super::output::ProgramOutput;
use super::run::HostFrames;
use protocols::execbox::wire::{Done, Failed, RawJson};
use protocols::execbox::{FromRunner, HOST_MESSAGE_BYTES_MAX, encode_done_with_lines};
use std::time::Duration;

/// Answers an `execute` that is not started.
pub(super) fn refuse(host_id: &str, message: &str, out: &mut HostFrames) {
    out.push(encode_message(&FromRunner::Done(Done {
        id: host_id.into(),
        outcome: Err(failed("internal_error", message)),
        duration_ms: 0,
        logs: Vec::new(),
        emitted: Vec::new(),
    })));
}

/// Encodes one message with its line break.
pub(super) fn encode_message(message: &FromRunner<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    message.encode(&mut line);
    line
}

/// The result of an execution, with all that it printed and emitted. A result that is too long for a message becomes
/// a failure that reports this.
pub(super) fn encode_done(
    host_id: &str,
    outcome: Result<Option<RawJson<'_>>, (&str, &str)>,
    elapsed: Duration,
    output: &ProgramOutput,
) -> Vec<u8> {
    let encode = |outcome| {
        let done = Done {
            id: host_id.into(),
            outcome,
            duration_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            logs: Vec::new(),
            emitted: output.items(),
        };
        let mut line = Vec::new();
        encode_done_with_lines(&done, &output.lines(), &mut line);
        line
    };
    let line = encode(outcome.map_err(|(code, message)| failed(code, message)));
    if line.len() <= HOST_MESSAGE_BYTES_MAX {
        return line;
    }
    let message = format!("result and logs are larger than {HOST_MESSAGE_BYTES_MAX} bytes");
    encode(Err(failed("serialization_error", &message)))
}

/// A printed line as JSON: the runner's own encoding if a Rust string cannot hold the text.
pub(super) fn host_line_json(line: &str, exact: Option<String>) -> String {
    exact
        .filter(|text| text.starts_with('"'))
        .unwrap_or_else(|| serde_json::Value::String(line.to_owned()).to_string())
}

fn failed<'a>(code: &'a str, message: &'a str) -> Failed<'a> {
    Failed { code: code.into(), message: message.into(), name: None, stack: None, limit: None }
}
