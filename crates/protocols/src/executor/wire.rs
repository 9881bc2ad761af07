//! The answers as values. Payloads are passed on as they are.

use lifecycle::Json;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// An execution that is over.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Completed<'a> {
    /// `completed`, also when the program failed.
    pub status: &'static str,
    /// For a model to read.
    pub text: String,
    /// For a program to read.
    pub structured: Ended<'a>,
    /// Whether it failed.
    pub is_error: bool,
}

/// How it ended.
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

/// What it gave beside its value.
#[derive(Debug, Clone, Serialize)]
pub struct Outputs<'a> {
    /// How many items it handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emitted: Option<usize>,
    /// The items.
    #[serde(skip_serializing_if = "<[Json]>::is_empty")]
    pub items: &'a [Json],
    /// What it printed.
    pub logs: &'a [String],
    /// What is left out here, and where it is.
    #[serde(skip_serializing_if = "More::is_empty")]
    pub more: More,
}

/// What an envelope leaves out.
#[derive(Debug, Clone, Default, Serialize)]
pub struct More {
    /// The value, which is null in the envelope.
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

/// A value that is left out.
#[derive(Debug, Clone, Serialize)]
pub struct Bytes {
    /// How large it is.
    pub bytes: usize,
    /// Where it is.
    pub at: String,
}

/// Outputs that are left out.
#[derive(Debug, Clone, Serialize)]
pub struct Rest {
    /// How many they are.
    pub left: usize,
    /// Where they are.
    pub at: String,
}

/// An execution that waits for a person.
#[derive(Debug, Clone, Serialize)]
pub struct Paused<'a> {
    /// `paused`; absent where the client asked for exactly this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// For a model to read.
    pub text: String,
    /// For a program to read.
    pub structured: Waiting<'a>,
}

/// What it waits for.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting<'a> {
    /// `waiting_for_interaction`.
    pub status: &'static str,
    /// Our question's id.
    pub execution_id: String,
    /// What is asked.
    pub interaction: Interaction<'a>,
}

/// All that is asked now.
#[derive(Debug, Clone, Serialize)]
pub struct Questions<'a> {
    /// Oldest first.
    pub questions: Vec<Waiting<'a>>,
}

/// What is asked of a person.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interaction<'a> {
    /// `form`, or `url` where a page is to be visited.
    pub kind: &'static str,
    /// For the person.
    pub message: &'a str,
    /// For the model.
    pub instructions: String,
    /// `tools.` and the tool's path.
    pub address: String,
    /// The held call's arguments.
    pub args: &'a RawValue,
    /// Where to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Cow<'a, str>>,
    /// The page where a person decides, for a reader who may not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_url: Option<String>,
    /// What a good answer's `content` looks like; absent where a page is to be visited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<&'a RawValue>,
    /// Whether an answer may bring other `arguments`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
}

/// An execution that neither asks nor has ended.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Going<'a> {
    /// `running`, `paused` or `parked`.
    pub status: &'static str,
    /// Our execution's id, `run_…`; where it is paused, the question's.
    pub execution_id: &'a str,
}
