//! Failures of programs and tools: data that is journalled and shown.

use crate::{Json, ToolPath};
use serde::{Deserialize, Serialize};

/// A failure of a program or a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure, decided by us and never by the guest.
    pub code: FailureCode,
    /// The message, one sentence for a person.
    pub message: String,
    /// The guest's error class, such as `TypeError`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The stack, with the guest's own lines only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Machine-readable details, such as validation issues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
}

impl Failure {
    /// A failure that consists of a code and a message only.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), name: None, stack: None, details: None }
    }
}

impl Failure {
    /// A person declined, in Executor's sentence.
    pub fn declined(tool: &ToolPath) -> Self {
        Self::new(FailureCode::Declined, refusal(tool, "declined"))
    }

    /// A policy blocks the tool, in Executor's sentence.
    pub fn blocked(tool: &ToolPath) -> Self {
        let path = tool.as_str().trim_start_matches("tools.");
        let message = format!("Tool blocked by policy: {path}");
        Self::new(FailureCode::Refused, message)
    }

    /// A person cancelled the question.
    pub fn question_cancelled(tool: &ToolPath) -> Self {
        Self::new(FailureCode::QuestionCancelled, refusal(tool, "cancelled"))
    }
}

fn refusal(tool: &ToolPath, how: &str) -> String {
    format!("Tool \"{tool}\" requires approval but the request was {how} by the user.")
}

/// The kinds of failure that callers distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The program threw, or could not be parsed.
    Runtime,
    /// A limit of time was reached.
    Timeout,
    /// Memory ran out.
    MemoryLimit,
    /// Another named maximum was reached: calls, bytes.
    LimitExceeded,
    /// A value could not be turned into JSON.
    Serialization,
    /// Arguments or a result do not fit the tool's schema.
    Validation,
    /// The tool itself failed.
    Tool,
    /// No tool has that path.
    ToolNotFound,
    /// The tool's source is not available: the server has no description of it, or cannot reach it.
    SourceUnavailable,
    /// A policy refuses the tool.
    Refused,
    /// A person declined.
    Declined,
    /// A person cancelled the question.
    QuestionCancelled,
    /// The tool may or may not have run: the server died in between and a person gave it up.
    InDoubt,
    /// Nothing can settle the program's promise any more.
    Stuck,
    /// An internal error; the message contains only a reference.
    Internal,
}

impl FailureCode {
    /// The code's spelling in the journal and on the link to a runner.
    pub fn word(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(word)) => word,
            Ok(_) | Err(_) => "internal".to_owned(),
        }
    }

    /// The code with this spelling, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
    }
}
