//! The question of a held call, and a person's answer to it.

use crate::{CallId, Json, QuestionId, ToolRevision};
use serde::{Deserialize, Serialize};

/// The question of a held call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its globally unique id.
    pub id: QuestionId,
    /// The call that waits for the answer.
    pub call: CallId,
    /// The kind of the question.
    pub kind: QuestionKind,
    /// A sentence for the person who decides.
    pub message: String,
    /// The edition of the tool that the question is about: an approval does not apply to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<ToolRevision>,
    /// Whether the policy lets the answerer change the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
    /// Whether only an answer to this very question counts: it cannot be given in advance, and an approval
    /// is not remembered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answer_only: bool,
}

impl Question {
    /// The bytes that count towards the execution's limit.
    pub(crate) fn bytes(&self) -> usize {
        self.message.len()
            + match &self.kind {
                QuestionKind::Form { schema } => schema.as_text().len(),
                QuestionKind::Link { url, .. } => url.len(),
                QuestionKind::Approval | QuestionKind::InDoubt => 0,
            }
    }
}

/// Why a call is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// A policy or the tool requires a person's approval before the call runs.
    Approval,
    /// The call was dispatched and the server died before its result was known. An accepting
    /// answer says what to do: `{"choice":"retry"}`, `{"choice":"fail"}` or
    /// `{"choice":"supply","result":…}`.
    InDoubt,
    /// The tool, during its call, requests input.
    Form {
        /// JSON Schema of the content of an accepting answer.
        schema: Json,
    },
    /// The tool, during its call, requests that a page be opened.
    Link {
        /// The URL of the page.
        url: String,
        /// Whether the tool has done nothing yet.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_prior: bool,
    },
}

impl QuestionKind {
    /// Whether the tool itself asks, and continues when it receives the answer.
    pub const fn is_of_the_tool(&self) -> bool {
        match self {
            Self::Form { .. } | Self::Link { .. } => true,
            Self::Approval | Self::InDoubt => false,
        }
    }
}

/// An addition to an approval. At most one: arguments that a person changed are approved for one call only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AnswerExtras {
    /// Nothing.
    #[default]
    Nothing,
    /// This execution may call this edition of the tool again without asking.
    Remember,
    /// The call is dispatched with these arguments instead of the program's own.
    Arguments(Json),
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Accepts, with the content that the question requested.
    Accept {
        /// The content that the person entered.
        #[serde(
            default,
            deserialize_with = "crate::json::present",
            skip_serializing_if = "Option::is_none"
        )]
        content: Option<Json>,
    },
    /// Declines.
    Decline,
    /// Neither accepts nor declines: the question is closed, the call fails.
    Cancel,
}
