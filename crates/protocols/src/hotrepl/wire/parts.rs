//! Parts of many frames: errors and values.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// An error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub struct ErrorEnvelope {
    pub kind: ErrorKind,
    pub code: String,
    pub message: String,
    pub retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// The closed list of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum ErrorKind {
    ValidationFailed,
    PreconditionFailed,
    Conflict,
    Timeout,
    Cancelled,
    Busy,
    UnknownCommand,
    UnsupportedOperation,
    ArtifactMissing,
    InvalidRequest,
    Internal,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::ValidationFailed,
        Self::PreconditionFailed,
        Self::Conflict,
        Self::Timeout,
        Self::Cancelled,
        Self::Busy,
        Self::UnknownCommand,
        Self::UnsupportedOperation,
        Self::ArtifactMissing,
        Self::InvalidRequest,
        Self::Internal,
    ];

    /// The kind on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ValidationFailed => "validation_failed",
            Self::PreconditionFailed => "precondition_failed",
            Self::Conflict => "conflict",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Busy => "busy",
            Self::UnknownCommand => "unknown_command",
            Self::UnsupportedOperation => "unsupported_operation",
            Self::ArtifactMissing => "artifact_missing",
            Self::InvalidRequest => "invalid_request",
            Self::Internal => "internal",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A value in the form of one of the profiles.
#[derive(Debug, Clone)]
pub enum Shown {
    /// JSON text in a string.
    Text(String),
    /// JSON itself.
    Native(Box<RawValue>),
}

impl Shown {
    /// The JSON text in either form.
    pub fn as_text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Native(raw) => raw.get(),
        }
    }
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        matches!(self, Self::Text(_)) == matches!(other, Self::Text(_))
            && self.as_text() == other.as_text()
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => to.serialize_str(text),
            Self::Native(raw) => raw.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Shown {
    /// A frame does not identify its profile: a string is assumed to be JSON text.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        if let Value::String(text) = value {
            return Ok(Self::Text(text));
        }
        let raw = RawValue::from_string(value.to_string());
        raw.map(Self::Native).map_err(serde::de::Error::custom)
    }
}
