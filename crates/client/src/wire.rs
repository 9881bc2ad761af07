//! The wire format of the server's answers. Members that a newer server adds are ignored.

use crate::Error;
use lifecycle::{Answer, AnswerExtras, ExecutionId, Json, LogLevel, QuestionId, Seq, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Debug, Serialize)]
pub(crate) struct ResumeBody<'a> {
    pub(crate) action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remember: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<&'a Json>,
}

impl ResumeBody<'_> {
    pub(crate) fn body(answer: &Answer, rider: &AnswerExtras) -> Result<Json, Error> {
        let (action, content) = match answer {
            Answer::Accept { content } => ("accept", content.as_ref()),
            Answer::Decline => ("decline", None),
            Answer::Cancel => ("cancel", None),
        };
        let (remember, arguments) = match rider {
            AnswerExtras::Nothing => (None, None),
            AnswerExtras::Remember => (Some("execution"), None),
            AnswerExtras::Arguments(edited) => (None, Some(edited)),
        };
        Json::from_value(&ResumeBody { action, content, remember, arguments })
            .map_err(|error| Error::Unusable(error.to_string()))
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct JournalBody {
    pub(crate) entries: Vec<lifecycle::Entry>,
}

/// A page of the journal with its entries unparsed.
#[derive(Debug, Deserialize)]
pub(crate) struct JournalPage {
    pub(crate) entries: Vec<Box<RawValue>>,
    pub(crate) last: Seq,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ProblemBody {
    #[serde(default, rename = "_tag")]
    pub(crate) tag: String,
    pub(crate) message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionEnvelope {
    pub(crate) status: Option<String>,
    pub(crate) structured: Option<StructuredBody>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StructuredBody {
    pub(crate) status: String,
    #[serde(default, deserialize_with = "present")]
    pub(crate) result: Option<Json>,
    pub(crate) error: Option<String>,
    #[serde(default)]
    pub(crate) logs: Vec<String>,
    pub(crate) execution_id: Option<QuestionId>,
    pub(crate) interaction: Option<InteractionBody>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InteractionBody {
    pub(crate) message: String,
    pub(crate) address: String,
    #[serde(default, deserialize_with = "present")]
    pub(crate) args: Option<Json>,
    pub(crate) requested_schema: Option<Json>,
    pub(crate) url: Option<String>,
    pub(crate) approval_url: Option<String>,
    #[serde(default)]
    pub(crate) editable: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct QuestionsBody {
    pub(crate) questions: Vec<StructuredBody>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ExecutionPageBody {
    pub(crate) executions: Vec<Json>,
    pub(crate) next: Option<ExecutionId>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionRowBody {
    pub(crate) execution_id: ExecutionId,
    pub(crate) status: String,
    pub(crate) caller: String,
    pub(crate) created: Timestamp,
    pub(crate) last: Seq,
    // Servers of earlier versions do not send these.
    #[serde(default)]
    pub(crate) outcome: Option<String>,
    #[serde(default)]
    pub(crate) code: Option<String>,
    #[serde(default)]
    pub(crate) duration_ms: Option<u64>,
    #[serde(default)]
    pub(crate) tools: Vec<String>,
}

/// Any event: its type determines which members are present. One struct, because payloads inside tagged enums could not
/// be passed on unparsed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventBody {
    pub(crate) seq: Seq,
    pub(crate) at: Timestamp,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) caller: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) level: Option<LogLevelName>,
    /// The printed line; of a call, the number of the source line that made it.
    pub(crate) line: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) item: Option<Json>,
    pub(crate) call: Option<u32>,
    pub(crate) tool: Option<String>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) args: Option<Json>,
    pub(crate) execution_id: Option<QuestionId>,
    pub(crate) message: Option<String>,
    pub(crate) action: Option<String>,
    pub(crate) content: Option<Json>,
    pub(crate) arguments: Option<Json>,
    #[serde(rename = "as")]
    pub(crate) role: Option<String>,
    pub(crate) by: Option<String>,
    pub(crate) attempt: Option<u32>,
    pub(crate) text: Option<String>,
    pub(crate) status: Option<String>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) result: Option<Json>,
    pub(crate) error: Option<Json>,
    pub(crate) timer: Option<u32>,
    pub(crate) why: Option<String>,
    pub(crate) limit: Option<String>,
    pub(crate) active_ms: Option<u64>,
}

/// The level of a log line; an unknown level counts as an ordinary one.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevelName {
    Debug,
    Info,
    Warn,
    Error,
    #[serde(other)]
    Log,
}

impl From<LogLevelName> for LogLevel {
    fn from(level: LogLevelName) -> Self {
        match level {
            LogLevelName::Debug => Self::Debug,
            LogLevelName::Log => Self::Log,
            LogLevelName::Info => Self::Info,
            LogLevelName::Warn => Self::Warn,
            LogLevelName::Error => Self::Error,
        }
    }
}

/// Distinguishes a `null` that is present from a member that is absent.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(from).map(Some)
}
