//! Errors of a run, of a tool and of a provider, in execbox's terms.

use std::fmt;

/// The kind of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorCode {
    /// Out of time, or cancelled.
    Timeout,
    /// Out of memory.
    MemoryLimit,
    /// Arguments or a result that do not fit a tool's schema.
    Validation,
    /// A tool failed.
    Tool,
    /// The guest threw something, or its text is no program.
    Runtime,
    /// A value that JSON cannot represent.
    Serialization,
    /// The runner, or the connection to it, broke.
    Internal,
    /// A code that execbox does not define, as the runner or the tool wrote it.
    Other(String),
}

impl ErrorCode {
    /// The code on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Timeout => "timeout",
            Self::MemoryLimit => "memory_limit",
            Self::Validation => "validation_error",
            Self::Tool => "tool_error",
            Self::Runtime => "runtime_error",
            Self::Serialization => "serialization_error",
            Self::Internal => "internal_error",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for ErrorCode {
    fn from(word: &str) -> Self {
        match word {
            "timeout" => Self::Timeout,
            "memory_limit" => Self::MemoryLimit,
            "validation_error" => Self::Validation,
            "tool_error" => Self::Tool,
            "runtime_error" => Self::Runtime,
            "serialization_error" => Self::Serialization,
            "internal_error" => Self::Internal,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a run or a call has no value. It is data: the guest, or the caller, receives it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ExecboxFailure {
    /// The kind.
    pub code: ErrorCode,
    /// A message for people.
    pub message: String,
}

impl ExecboxFailure {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The text that clients of execbox compare with.
    pub(super) fn timeout() -> Self {
        Self::new(ErrorCode::Timeout, "Execution timed out")
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }
}

/// Why a tool has no result. Any error becomes one through `?`; the guest is shown its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecboxToolError {
    /// The message for the guest.
    Said(String),
    /// The guest learns only that the tool failed.
    Unsaid,
    /// The result is a value that JSON cannot represent: not a number, a date, bytes.
    NotSerializable,
    /// A failure of another kind than `tool_error`.
    Coded(ExecboxFailure),
}

impl ExecboxToolError {
    /// A `tool_error` with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Said(message.into())
    }

    /// A failure of the given kind.
    pub fn coded(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Coded(ExecboxFailure::new(code, message))
    }
}

// `ExecboxToolError` does not implement `Error`, or this would overlap with the reflexive `From<T> for T`.
impl<E: std::error::Error> From<E> for ExecboxToolError {
    fn from(error: E) -> Self {
        Self::Said(error.to_string())
    }
}

/// Why a provider is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadProvider {
    /// The namespace is not an identifier, or is reserved.
    #[error("Invalid provider namespace: {0}")]
    Namespace(String),
    /// Two tools have the same name.
    #[error("provider {namespace} has two tools named {tool}")]
    SameName {
        /// The provider.
        namespace: String,
        /// The name.
        tool: String,
    },
    /// A schema is not a JSON Schema.
    #[error("tool {tool} has an unusable {which} schema: {why}")]
    Schema {
        /// The tool.
        tool: String,
        /// `input` or `output`.
        which: &'static str,
        /// The validator's message.
        why: String,
    },
    /// More tools than a runner should receive.
    #[error("provider {namespace} has {n_tools} tools, {n_tools_max} at most")]
    TooManyTools {
        /// The provider.
        namespace: String,
        /// The number of its tools.
        n_tools: usize,
        /// The largest number it may have.
        n_tools_max: usize,
    },
}
