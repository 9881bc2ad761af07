//! The state of an execution, and lists of executions.

use crate::{Error, wire};
use lifecycle::{ExecutionId, Json, QuestionId, Seq, Timestamp};

/// The server's reply about one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionReply {
    /// Its id; `None` where the server did not send one.
    pub execution: Option<ExecutionId>,
    /// Its state.
    pub standing: ExecutionStanding,
    /// The server's JSON, unchanged.
    pub json: Json,
}

/// The state of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionStanding {
    /// It completed.
    Completed {
        /// Its value; `null` where it has none.
        result: Json,
        /// `[level] line`, in order.
        logs: Vec<String>,
    },
    /// It failed or was cancelled.
    Failed {
        /// The error message for a person.
        error: String,
        /// `[level] line`, in order.
        logs: Vec<String>,
    },
    /// It waits for an answer.
    Asks(OpenQuestion),
    /// It is running.
    Running,
    /// It could not be recovered after a restart.
    Parked,
}

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// The id that an answer is sent to.
    pub question: QuestionId,
    /// The message for the person who decides.
    pub message: String,
    /// The tool whose call waits.
    pub address: String,
    /// The arguments of the call.
    pub args: Option<Json>,
    /// The schema of an answer's content.
    pub schema: Option<Json>,
    /// A page that the person is asked to visit.
    pub url: Option<String>,
    /// The page where a person decides, if an answer of this caller does not count.
    pub approval_url: Option<String>,
    /// Whether an answer may replace the arguments.
    pub editable: bool,
}

/// A page of the list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionPage {
    /// The executions.
    pub executions: Vec<ExecutionRow>,
    /// The position of the next page.
    pub next: Option<ExecutionId>,
}

/// An execution's row in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionRow {
    /// Its id.
    pub execution: ExecutionId,
    /// Its status.
    pub status: ExecutionStatus,
    /// The caller that started it.
    pub caller: String,
    /// The time of its start.
    pub created: Timestamp,
    /// The number of its newest event.
    pub last: Seq,
    /// How it ended: `completed`, `failed` or `cancelled`; `None` before its end.
    pub outcome: Option<String>,
    /// The code of its failure.
    pub code: Option<String>,
    /// From its start to its end, or to now; `None` where the server is of an earlier version.
    pub duration_ms: Option<u64>,
    /// The first tools that it called.
    pub tools: Vec<String>,
    /// The server's JSON, unchanged.
    pub json: Json,
}

/// The status of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionStatus {
    /// It is running.
    Running,
    /// It waits for an answer.
    Paused,
    /// It could not be recovered after a restart.
    Parked,
    /// It has ended.
    Finished,
}

impl ExecutionStatus {
    /// The status on the wire.
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
