//! The question of a held call, and a person's answer to it.

use crate::{CallId, Json, QuestionId, ToolRevision};
use serde::{Deserialize, Serialize};

/// What a held call asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its own id, unique anywhere.
    pub id: QuestionId,
    /// The call that waits for the answer.
    pub call: CallId,
    /// Why it is asked.
    pub kind: QuestionKind,
    /// A sentence for the person who decides.
    pub message: String,
    /// The edition of the tool that is asked about: a yes is good for no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<ToolRevision>,
    /// Whether the policy lets the answerer change the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
    /// Whether only an answer to this very question counts: it is not answered beforehand, and an approval is not
    /// remembered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answer_only: bool,
}

impl Question {
    /// How much it adds to what an execution moves.
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
    /// A policy or the tool wants a person to agree before it runs.
    Approval,
    /// The call was dispatched and the server died before its result was known. An accepting
    /// answer says what to do: `{"choice":"retry"}`, `{"choice":"fail"}` or
    /// `{"choice":"supply","result":…}`.
    InDoubt,
    /// The tool, in the middle of its call, wants something filled in.
    Form {
        /// JSON Schema of what an accepting answer brings.
        schema: Json,
    },
    /// The tool, in the middle of its call, wants a page visited.
    Link {
        /// Where to go.
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
    /// The call goes to its tool with these arguments instead of the program's own.
    Arguments(Json),
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Go on, with what the question asked for.
    Accept {
        /// What the person filled in.
        #[serde(
            default,
            deserialize_with = "crate::json::present",
            skip_serializing_if = "Option::is_none"
        )]
        content: Option<Json>,
    },
    /// No.
    Decline,
    /// Neither yes nor no: the question goes away, the call fails.
    Cancel,
}
