//! Envelopes as responses. Every response about an execution has its id in a header.

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use lifecycle::{ExecutionId, ExecutionOutcome, ExecutionPhase, Json, Timestamp, ToolPath};
use protocols::executor::outbound::SplitEnvelope;
use protocols::executor::{
    AskedQuestion, ExecutionView, QuestionReader, RESULT_BYTES_MAX, WaitEnd, outbound,
};
use serde_json::{Value, json};
use std::convert::Infallible;
use store::{OutcomeKind, SearchHit, SearchPage};

use crate::error::RequestError;

const EXECUTION: HeaderName = HeaderName::from_static("airlock-execution");

/// The response to a client that waited.
pub(super) fn end_response(
    execution: ExecutionId,
    account: &ExecutionView,
    told: WaitEnd<'_>,
    (reader, limit): (&QuestionReader, Option<usize>),
) -> Response {
    match told {
        WaitEnd::Asked(asked) => {
            envelope(execution, StatusCode::OK, outbound::paused(asked, reader))
        }
        WaitEnd::Over(outcome) => finished_response(execution, account, outcome, limit),
        WaitEnd::Parked => about(execution, RequestError::parked(execution).into_response()),
    }
}

/// The end of an execution. With a limit, a larger value is omitted; without one, a large value is streamed without a
/// copy.
fn finished_response(
    execution: ExecutionId,
    account: &ExecutionView,
    outcome: &ExecutionOutcome,
    limit: Option<usize>,
) -> Response {
    let split = match limit {
        Some(_) => None,
        None => outbound::split(execution, account, outcome),
    };
    match split {
        Some(split) => streamed(execution, split),
        None => {
            let limit = limit.unwrap_or(RESULT_BYTES_MAX);
            let body = outbound::completed(execution, account, outcome, limit);
            envelope(execution, StatusCode::OK, body)
        }
    }
}

/// The whole value of an execution, of any size.
pub(super) fn result(execution: ExecutionId, outcome: &ExecutionOutcome) -> Response {
    match outbound::split_result(outcome) {
        Some(split) => streamed(execution, split),
        None => envelope(execution, StatusCode::OK, outbound::result(outcome)),
    }
}

/// Streams a large value from its own memory, without a copy.
fn streamed(execution: ExecutionId, split: SplitEnvelope) -> Response {
    let SplitEnvelope { head, value, tail } = split;
    let n_bytes = head.len() + value.as_text().len() + tail.len();
    let parts = [Bytes::from(head), Bytes::from_owner(ValueText(value)), Bytes::from(tail)];
    let body = Body::from_stream(stream::iter(parts.map(Ok::<_, Infallible>)));
    let kind = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let length = (CONTENT_LENGTH, HeaderValue::from(n_bytes));
    about(execution, ([kind, length], body).into_response())
}

/// The text of a value, shared with the body of a response.
struct ValueText(Json);

impl AsRef<[u8]> for ValueText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_text().as_bytes()
    }
}

/// The response to a client that asks for the current state.
pub(super) fn now(
    execution: ExecutionId,
    account: &ExecutionView,
    standing: WaitEnd<'_>,
    (reader, limit): (&QuestionReader, Option<usize>),
) -> Response {
    match standing {
        WaitEnd::Asked(asked) => execution_json(execution, asked, reader),
        WaitEnd::Over(_) => end_response(execution, account, standing, (reader, limit)),
        WaitEnd::Parked => envelope(execution, StatusCode::OK, outbound::parked(execution)),
    }
}

/// The response that shows a question.
pub(super) fn execution_json(
    execution: ExecutionId,
    asked: &AskedQuestion,
    reader: &QuestionReader,
) -> Response {
    envelope(execution, StatusCode::OK, outbound::question_json(asked, reader))
}

/// The execution is running: it has neither asked a question nor ended.
pub(super) fn running(execution: ExecutionId) -> Response {
    envelope(execution, StatusCode::OK, outbound::running(execution))
}

/// Like `running`, for a client whose wait time has passed.
pub(super) fn still_running(execution: ExecutionId) -> Response {
    envelope(execution, StatusCode::ACCEPTED, outbound::running(execution))
}

/// A page of the list, and the server's time, from which clients compute ages.
pub(super) fn list_response(page: &SearchPage, now: Timestamp) -> Response {
    let lines: Vec<Value> = page.hits.iter().map(|hit| line(hit, now)).collect();
    let mut body = json!({ "executions": lines, "time": now });
    if let Some(next) = page.next {
        body["next"] = next.to_string().into();
    }
    (StatusCode::OK, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn line(SearchHit { listed, details }: &SearchHit, now: Timestamp) -> Value {
    let until = details.ended.unwrap_or(now);
    let tools: Vec<_> = details.tools.iter().map(ToolPath::as_str).collect();
    let mut line = json!({
        "executionId": listed.execution,
        "status": phase(listed.standing.phase),
        "caller": listed.standing.caller,
        "created": listed.created,
        "last": listed.last,
        "durationMs": until.0.saturating_sub(listed.created.0).max(0),
        "tools": tools,
    });
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            line[name] = value;
        }
    };
    put("outcome", details.outcome.map(|outcome| outcome_word(outcome).into()));
    if let Some(OutcomeKind::Failed(code)) = details.outcome {
        put("code", Some(json!(code)));
    }
    put("ended", details.ended.map(|ended| json!(ended)));
    put("activeMs", details.active_ms.map(Value::from));
    line
}

const fn outcome_word(outcome: OutcomeKind) -> &'static str {
    match outcome {
        OutcomeKind::Completed => "completed",
        OutcomeKind::Failed(_) => "failed",
        OutcomeKind::Cancelled => "cancelled",
    }
}

pub(super) fn envelope(execution: ExecutionId, status: StatusCode, body: String) -> Response {
    about(execution, (status, [(CONTENT_TYPE, "application/json")], body).into_response())
}

/// Adds the header with the id of the execution that a response is about.
pub(super) fn about(execution: ExecutionId, mut response: Response) -> Response {
    let id =
        HeaderValue::try_from(execution.to_string()).expect("an id is made of plain characters");
    response.headers_mut().insert(EXECUTION, id);
    response
}

const fn phase(phase: ExecutionPhase) -> &'static str {
    match phase {
        ExecutionPhase::Unborn | ExecutionPhase::Running => "running",
        ExecutionPhase::Paused => "paused",
        ExecutionPhase::Parked => "parked",
        ExecutionPhase::Finished => "finished",
    }
}
