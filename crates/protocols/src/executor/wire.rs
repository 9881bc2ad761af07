//! The answers as values. Payloads are passed on as they are.

use serde::Serialize;
use serde_json::value::RawValue;

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
        #[serde(skip_serializing_if = "Option::is_none")]
        emitted: Option<usize>,
        logs: &'a [String],
    },
    Error {
        status: &'static str,
        error: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        emitted: Option<usize>,
        logs: &'a [String],
    },
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
    pub url: Option<&'a str>,
    /// What a good answer's `content` looks like; absent where a page is to be visited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<&'a RawValue>,
}

/// An execution that neither asks nor has ended.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Going<'a> {
    /// `running` or `parked`.
    pub status: &'static str,
    /// Our execution's id, `run_…`.
    pub execution_id: &'a str,
}
