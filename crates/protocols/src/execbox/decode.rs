//! Decodes a line to a message. For any input the result is a message or a [`BadMessage`].

use super::HOST_MESSAGE_BYTES_MAX;
use super::text::{RawJson, TextMember, WireText, json_string, present};
use super::wire::{CallFailure, Done, Emit, Failed, FromRunner, Log, ToRunner, ToolResult};
use lifecycle::{InputIndex, LogLevel, OutputMark, Timestamp};
use serde::Deserialize;

/// A line that is no valid message. It is dropped, or ends the link; it never ends the reader.
#[derive(Debug, thiserror::Error)]
pub enum BadMessage {
    /// It is longer than any message.
    #[error("a message has at most {HOST_MESSAGE_BYTES_MAX} bytes")]
    TooLong,
    /// It is not JSON, or lacks members that its type requires.
    #[error("not a message: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Its type does not exist in this direction.
    #[error("no message has this type")]
    UnknownType,
    /// It contains neither a result nor an error, one of which is required.
    #[error("a failed {0} needs an error")]
    ErrorMissing(&'static str),
}

impl<'a> ToRunner<'a> {
    /// Decodes one line, without its line break.
    pub fn decode(line: &'a [u8]) -> Result<Self, BadMessage> {
        Ok(match kind(line)?.as_ref() {
            "tool_result" => Self::ToolResult(read::<AnyToolResult<'a>>(line)?.into_outcome()?),
            "timer_fired" => Self::TimerFired(read(line)?),
            "sync" => Self::Sync(read(line)?),
            "execute" => Self::Execute(read(line)?),
            "cancel" => Self::Cancel(read(line)?),
            "session" => Self::Session(read(line)?),
            _ => return Err(BadMessage::UnknownType),
        })
    }
}

impl<'a> FromRunner<'a> {
    /// Decodes one line, without its line break.
    pub fn decode(line: &'a [u8]) -> Result<Self, BadMessage> {
        Ok(match kind(line)?.as_ref() {
            "tool_call" => Self::ToolCall(read(line)?),
            "idle" => Self::Idle(read(line)?),
            "log" => Self::Log(read::<AnyLog<'a>>(line)?.into()),
            "emit" => Self::Emit(read::<AnyEmit<'a>>(line)?.into()),
            "timer_set" => Self::TimerSet(read(line)?),
            "timer_cleared" => Self::TimerCleared(read(line)?),
            "synced" => Self::Synced(read(line)?),
            "counted" => Self::Counted(read(line)?),
            "started" => Self::Started(read(line)?),
            "diverged" => Self::Diverged(read(line)?),
            "done" => Self::Done(read::<AnyDone<'a>>(line)?.into_outcome()?),
            _ => return Err(BadMessage::UnknownType),
        })
    }
}

/// The beginning of all lines that we write, so that the type is known before the line is parsed.
pub(super) const OPENING: &str = "{\"type\":\"";

/// The line's type. Only lines of other implementations, which may contain it anywhere, are parsed twice.
fn kind(line: &[u8]) -> Result<WireText<'_>, BadMessage> {
    if line.len() > HOST_MESSAGE_BYTES_MAX {
        return Err(BadMessage::TooLong);
    }
    if let Some(kind) = opening_kind(line) {
        return Ok(WireText::Borrowed(kind));
    }
    Ok(read::<MessageKind<'_>>(line)?.kind)
}

fn opening_kind(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(OPENING.as_bytes())?;
    let end = rest.iter().take(KIND_BYTES_MAX).position(|byte| *byte == b'"')?;
    std::str::from_utf8(&rest[..end]).ok().filter(|kind| !kind.contains('\\'))
}

/// Upper bound of the length of a type's name.
const KIND_BYTES_MAX: usize = 32;

fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, BadMessage> {
    Ok(serde_json::from_slice(line)?)
}

#[derive(Deserialize)]
struct MessageKind<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "json_string")]
    kind: WireText<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyToolResult<'a> {
    #[serde(borrow, deserialize_with = "json_string")]
    call_id: WireText<'a>,
    ok: bool,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<RawJson<'a>>,
    #[serde(borrow, default)]
    error: Option<CallFailure<'a>>,
    #[serde(default)]
    at: Option<Timestamp>,
}

impl<'a> AnyToolResult<'a> {
    fn into_outcome(self) -> Result<ToolResult<'a>, BadMessage> {
        let Self { call_id, ok, result, error, at } = self;
        let outcome = match (ok, error) {
            (true, _) => Ok(result),
            (false, Some(error)) => Err(error),
            (false, None) => return Err(BadMessage::ErrorMissing("tool_result")),
        };
        Ok(ToolResult { call_id, outcome, at })
    }
}

#[derive(Deserialize)]
struct AnyLog<'a> {
    level: LogLevel,
    #[serde(borrow, deserialize_with = "json_string")]
    line: WireText<'a>,
    input: InputIndex,
    ordinal: u32,
    #[serde(borrow, default, deserialize_with = "present")]
    exact: Option<RawJson<'a>>,
}

impl<'a> From<AnyLog<'a>> for Log<'a> {
    fn from(AnyLog { level, line, input, ordinal, exact }: AnyLog<'a>) -> Self {
        Self { level, line, mark: OutputMark { input, ordinal }, exact }
    }
}

#[derive(Deserialize)]
struct AnyEmit<'a> {
    #[serde(borrow)]
    item: RawJson<'a>,
    input: InputIndex,
    ordinal: u32,
}

impl<'a> From<AnyEmit<'a>> for Emit<'a> {
    fn from(AnyEmit { item, input, ordinal }: AnyEmit<'a>) -> Self {
        Self { item, mark: OutputMark { input, ordinal } }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyDone<'a> {
    #[serde(borrow, deserialize_with = "json_string")]
    id: WireText<'a>,
    ok: bool,
    #[serde(deserialize_with = "super::text::count")]
    duration_ms: u64,
    #[serde(borrow)]
    logs: Vec<TextMember<'a>>,
    #[serde(borrow, default)]
    emitted: Vec<RawJson<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<RawJson<'a>>,
    #[serde(borrow, default)]
    error: Option<Failed<'a>>,
}

impl<'a> AnyDone<'a> {
    fn into_outcome(self) -> Result<Done<'a>, BadMessage> {
        let Self { id, ok, duration_ms, logs, emitted, result, error } = self;
        let outcome = match (ok, error) {
            (true, _) => Ok(result),
            (false, Some(error)) => Err(error),
            (false, None) => return Err(BadMessage::ErrorMissing("done")),
        };
        let logs = logs.into_iter().map(|TextMember(line)| line).collect();
        Ok(Done { id, outcome, duration_ms, logs, emitted })
    }
}
