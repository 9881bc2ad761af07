//! The guest's or a tool's own misfortune: data, journalled and shown.

use crate::{Json, ToolPath};
use serde::{Deserialize, Serialize};

/// What went wrong in a program or a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which kind, decided by us and never by the guest.
    pub code: FailureCode,
    /// A sentence for a person.
    pub message: String,
    /// The guest's error class, such as `TypeError`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The guest's own lines; nothing of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Machine-readable details, such as validation issues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json>,
}

impl Failure {
    /// A failure with nothing but a code and a sentence.
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

    /// A person waved the question away.
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
    /// A person waved the question away.
    QuestionCancelled,
    /// The tool may or may not have run: the server died in between and a person gave it up.
    InDoubt,
    /// Nothing is left that could settle the program's promise.
    Stuck,
    /// Our side; the message holds a reference and nothing else.
    Internal,
}

impl FailureCode {
    /// The code as the journal and the link to a runner spell it.
    pub fn word(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(word)) => word,
            Ok(_) | Err(_) => "internal".to_owned(),
        }
    }

    /// The code that is spelled like this, if one is.
    pub fn from_word(word: &str) -> Option<Self> {
        serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
    }
}
