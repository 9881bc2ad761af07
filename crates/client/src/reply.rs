//! How an execution stands, and lists of them.

use crate::{Error, wire};
use lifecycle::{ExecutionId, Json, QuestionId, Seq, Timestamp};

/// What the server says of one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionReply {
    /// Which; none where the server did not say.
    pub execution: Option<ExecutionId>,
    /// How it stands.
    pub standing: ExecutionStanding,
    /// The same as the server put it.
    pub json: Json,
}

/// How an execution stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionStanding {
    /// It ended well.
    Completed {
        /// Its value; `null` where it has none.
        result: Json,
        /// `[level] line`, in order.
        logs: Vec<String>,
    },
    /// It failed or was cancelled.
    Failed {
        /// Why, for a person.
        error: String,
        /// `[level] line`, in order.
        logs: Vec<String>,
    },
    /// Somebody must decide.
    Asks(OpenQuestion),
    /// It is under way.
    Running,
    /// It could not be brought back after a restart.
    Parked,
}

/// What must be decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// What an answer is sent to.
    pub question: QuestionId,
    /// For the person who decides.
    pub message: String,
    /// The tool that is held.
    pub address: String,
    /// What it is called with.
    pub args: Option<Json>,
    /// What an answer's content looks like.
    pub schema: Option<Json>,
    /// A page to visit.
    pub url: Option<String>,
    /// The page where a person decides, if an answer of this caller does not count.
    pub approval_url: Option<String>,
    /// Whether an answer may bring other arguments.
    pub editable: bool,
}

/// A part of the list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionPage {
    /// The executions.
    pub executions: Vec<ExecutionRow>,
    /// Where the next part begins.
    pub next: Option<ExecutionId>,
}

/// An execution's line in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    /// Which.
    pub execution: ExecutionId,
    /// How it stands.
    pub status: ExecutionStatus,
    /// Whose it is.
    pub caller: String,
    /// When it began.
    pub created: Timestamp,
    /// Its newest event.
    pub last: Seq,
    /// How it ended: `completed`, `failed` or `cancelled`; none before its end.
    pub outcome: Option<String>,
    /// The kind of its failure.
    pub code: Option<String>,
    /// From its start to its end, or to now; none where the server is of an earlier version.
    pub duration_ms: Option<u64>,
    /// The first tools that it called.
    pub tools: Vec<String>,
    /// The same as the server put it.
    pub json: Json,
}

/// How an execution stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionStatus {
    /// Under way.
    Running,
    /// Somebody must decide.
    Paused,
    /// Could not be brought back after a restart.
    Parked,
    /// Over.
    Finished,
}

impl ExecutionStatus {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Parked => "parked",
            Self::Finished => "finished",
        }
    }

    fn parse(word: &str) -> Result<Self, Error> {
        [Self::Running, Self::Paused, Self::Parked, Self::Finished]
            .into_iter()
            .find(|status| status.as_str() == word)
            .ok_or_else(|| Error::Protocol(format!("there is no status {word}")))
    }
}

impl ExecutionReply {
    pub(crate) fn read(body: String, execution: Option<ExecutionId>) -> Result<Self, Error> {
        let envelope: wire::ExecutionEnvelope = read(&body)?;
        let standing = standing(envelope)?;
        Ok(Self { execution, standing, json: json(body)? })
    }
}

impl ExecutionPage {
    pub(crate) fn read(body: &str) -> Result<Self, Error> {
        let wire::ExecutionPageBody { executions, next } = read(body)?;
        let executions =
            executions.into_iter().map(ExecutionRow::read).collect::<Result<_, _>>()?;
        Ok(Self { executions, next })
    }
}

impl OpenQuestion {
    pub(crate) fn read(structured: wire::StructuredBody) -> Result<Self, Error> {
        let (Some(question), Some(asked)) = (structured.execution_id, structured.interaction)
        else {
            return Err(Error::Protocol("an envelope that waits for nothing".into()));
        };
        let wire::InteractionBody { message, address, args, url, approval_url, .. } = asked;
        let (schema, editable) = (asked.requested_schema, asked.editable);
        Ok(Self { question, message, address, args, schema, url, approval_url, editable })
    }
}

impl ExecutionRow {
    fn read(json: Json) -> Result<Self, Error> {
        let line: wire::ExecutionRowBody = read(json.as_text())?;
        let status = ExecutionStatus::parse(&line.status)?;
        let wire::ExecutionRowBody { execution_id: execution, caller, created, last, .. } = line;
        let wire::ExecutionRowBody { outcome, code, duration_ms, tools, .. } = line;
        Ok(Self {
            execution,
            status,
            caller,
            created,
            last,
            outcome,
            code,
            duration_ms,
            tools,
            json,
        })
    }
}

fn standing(envelope: wire::ExecutionEnvelope) -> Result<ExecutionStanding, Error> {
    let strange = |what: &str| Error::Protocol(format!("an envelope {what}"));
    let Some(structured) = envelope.structured else {
        return match envelope.status.as_deref() {
            Some("running") => Ok(ExecutionStanding::Running),
            Some("parked") => Ok(ExecutionStanding::Parked),
            Some(_) | None => Err(strange("without structured")),
        };
    };
    let logs = structured.logs;
    match structured.status.as_str() {
        "completed" => {
            let result = structured.result.unwrap_or_else(Json::null);
            Ok(ExecutionStanding::Completed { result, logs })
        }
        "error" => {
            let error = structured.error.ok_or_else(|| strange("without its error"))?;
            Ok(ExecutionStanding::Failed { error, logs })
        }
        "waiting_for_interaction" => {
            OpenQuestion::read(wire::StructuredBody { logs, ..structured })
                .map(ExecutionStanding::Asks)
        }
        other => Err(strange(&format!("of the status {other}"))),
    }
}

pub(crate) fn read<'a, T: serde::Deserialize<'a>>(body: &'a str) -> Result<T, Error> {
    serde_json::from_str(body).map_err(|error| Error::Protocol(error.to_string()))
}

fn json(body: String) -> Result<Json, Error> {
    Json::parse(body).map_err(|error| Error::Protocol(error.to_string()))
}
