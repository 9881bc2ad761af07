//! Serializes values and failures as frames: how much of a value fits, and all kinds and codes in one
//! place.

use super::wire::{ErrorEnvelope, ErrorKind, FromServer, Shown, Trouble};
use super::{RESULT_BYTES_MAX, ValueProfile};
use lifecycle::{Timestamp, UtcTime};
use serde_json::Value;
use serde_json::value::RawValue;

impl FromServer {
    /// The frame's text.
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("frames have text keys and no failing members")
    }
}

/// A value in the form of its frame.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameValue {
    /// The value; `None` if it is native and does not fit.
    pub value: Option<Shown>,
    /// Whether it was too long; in the native profile only.
    pub truncated: Option<bool>,
    /// Its length, if it was too long.
    pub truncated_bytes: Option<u64>,
}

/// The form of a value's JSON text in a frame. `bytes` is the length of the text before any truncation.
pub fn carried(json: String, bytes: usize, profile: ValueProfile) -> FrameValue {
    let is_whole = bytes <= RESULT_BYTES_MAX && json.len() == bytes;
    match profile {
        ValueProfile::Text if is_whole => {
            FrameValue { value: Some(Shown::Text(json)), truncated: None, truncated_bytes: None }
        }
        ValueProfile::Text => {
            let value = Some(Shown::Text(cut(&json, bytes, RESULT_BYTES_MAX)));
            FrameValue { value, truncated: None, truncated_bytes: None }
        }
        ValueProfile::Native => {
            let raw = if is_whole { RawValue::from_string(json).ok() } else { None };
            let truncated_bytes = raw.is_none().then_some(bytes as u64);
            let truncated = Some(raw.is_none());
            FrameValue { value: raw.map(Shown::Native), truncated, truncated_bytes }
        }
    }
}

/// As much of a text as fits with the mark of truncation; `bytes` is its whole length.
pub fn cut(text: &str, bytes: usize, bytes_max: usize) -> String {
    if text.len() <= bytes_max && text.len() == bytes {
        return text.to_owned();
    }
    let mark = format!(" [truncated at {bytes_max} bytes]");
    let room = bytes_max.checked_sub(mark.len());
    let end = text.floor_char_boundary(room.unwrap_or(bytes_max).min(text.len()));
    if room.is_some() { format!("{}{mark}", &text[..end]) } else { text[..end].to_owned() }
}

/// An envelope of a kind for which a retry does not help.
pub fn envelope(kind: ErrorKind, code: &str, message: impl Into<String>) -> ErrorEnvelope {
    let retryable = kind == ErrorKind::Busy;
    ErrorEnvelope { kind, code: code.to_owned(), message: message.into(), retryable, details: None }
}

impl ErrorEnvelope {
    /// The same with details.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

/// An error frame for input that is no valid request.
pub fn trouble(id: Option<String>, error: ErrorEnvelope) -> FromServer {
    FromServer::Error(Trouble { id, error })
}

/// A moment as ISO 8601 in UTC, with milliseconds.
pub fn timestamp(ms: i64) -> String {
    UtcTime::from(Timestamp(ms)).exact()
}
