//! The responses as values. Payloads are passed on unchanged.

use lifecycle::Json;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// An execution that has ended.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Completed<'a> {
    /// Always `completed`, also when the program failed.
    pub status: &'static str,
    /// The text for a model.
    pub text: String,
    /// The content for a program.
    pub structured: Ended<'a>,
    /// Whether it failed.
    pub is_error: bool,
}

/// The end of an execution.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the members are those of the protocol")]
pub enum Ended<'a> {
    Value {
        status: &'static str,
        result: &'a RawValue,
        #[serde(flatten)]
        outputs: Outputs<'a>,
    },
    Error {
        status: &'static str,
        error: String,
        #[serde(flatten)]
        outputs: Outputs<'a>,
    },
}

/// The outputs besides the value.
#[derive(Debug, Clone, Serialize)]
pub struct Outputs<'a> {
    /// How many items it emitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emitted: Option<usize>,
    /// The items.
    #[serde(skip_serializing_if = "<[Json]>::is_empty")]
    pub items: &'a [Json],
    /// What it printed.
    pub logs: &'a [String],
    /// What is omitted here, and where it is.
    #[serde(skip_serializing_if = "More::is_empty")]
    pub more: More,
}

/// What an envelope omits.
#[derive(Debug, Clone, Default, Serialize)]
pub struct More {
    /// The value, for which the envelope contains null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Bytes>,
    /// Further items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Rest>,
    /// Further lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<Rest>,
}

impl More {
    const fn is_empty(&self) -> bool {
        self.result.is_none() && self.items.is_none() && self.logs.is_none()
    }
}

/// A value that is omitted.
#[derive(Debug, Clone, Serialize)]
pub struct Bytes {
    /// Its size in bytes.
    pub bytes: usize,
    /// Its URL.
    pub at: String,
}

/// Outputs that are omitted.
#[derive(Debug, Clone, Serialize)]
pub struct Rest {
    /// How many are omitted.
    pub left: usize,
    /// Their URL.
    pub at: String,
}

/// An execution that waits for a person.
#[derive(Debug, Clone, Serialize)]
pub struct Paused<'a> {
    /// `paused`; absent if the client requested exactly this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// The text for a model.
    pub text: String,
    /// The content for a program.
    pub structured: Waiting<'a>,
}

/// The question that it waits for.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting<'a> {
    /// Always `waiting_for_interaction`.
    pub status: &'static str,
    /// Our question's id.
    pub execution_id: String,
    /// The question's content.
    pub interaction: Interaction<'a>,
}

/// All open questions.
#[derive(Debug, Clone, Serialize)]
pub struct Questions<'a> {
    /// The questions, oldest first.
    pub questions: Vec<Waiting<'a>>,
}

/// A question for a person.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interaction<'a> {
    /// `form`, or `url` for a page to open.
    pub kind: &'static str,
    /// The message for the person.
    pub message: &'a str,
    /// The instructions for the model.
    pub instructions: String,
    /// `tools.` and the tool's path.
    pub address: String,
    /// The held call's arguments.
    pub args: &'a RawValue,
    /// The URL to open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Cow<'a, str>>,
    /// The page where a person decides, for a reader who may not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_url: Option<String>,
    /// The schema of an answer's `content`; absent for a page to open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<&'a RawValue>,
    /// Whether an answer may replace the `arguments`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
}

/// An execution that has no open question and has not ended.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Going<'a> {
    /// `running`, `paused` or `parked`.
    pub status: &'static str,
    /// Our execution's id, `run_…`; the question's if it is paused.
    pub execution_id: &'a str,
}
