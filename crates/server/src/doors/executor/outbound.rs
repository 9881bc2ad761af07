//! Envelopes as responses. Everything about an execution carries its id in a header.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use lifecycle::{ExecutionId, Phase, Timestamp, ToolPath};
use protocols::executor::{Account, Asked, QuestionReader, Told, outbound};
use serde_json::{Value, json};
use store::{OutcomeKind, SearchHit, SearchPage};

use crate::error::Problem;

const EXECUTION: HeaderName = HeaderName::from_static("airlock-execution");

/// What a client that waited is told.
pub(super) fn told(
    execution: ExecutionId,
    account: &Account,
    told: Told<'_>,
    reader: &QuestionReader,
) -> Response {
    match told {
        Told::Asked(asked) => envelope(execution, StatusCode::OK, outbound::paused(asked, reader)),
        Told::Over(outcome) => {
            envelope(execution, StatusCode::OK, outbound::completed(execution, account, outcome))
        }
        Told::Parked => about(execution, Problem::parked(execution).into_response()),
    }
}

/// What a client that asks how it stands is told.
pub(super) fn now(
    execution: ExecutionId,
    account: &Account,
    standing: Told<'_>,
    reader: &QuestionReader,
) -> Response {
    match standing {
        Told::Asked(asked) => shown(execution, asked, reader),
        Told::Over(_) => told(execution, account, standing, reader),
        Told::Parked => envelope(execution, StatusCode::OK, outbound::parked(execution)),
    }
}

/// A question, to somebody who asked for it.
pub(super) fn shown(execution: ExecutionId, asked: &Asked, reader: &QuestionReader) -> Response {
    envelope(execution, StatusCode::OK, outbound::shown(asked, reader))
}

/// Neither asks nor has ended.
pub(super) fn running(execution: ExecutionId) -> Response {
    envelope(execution, StatusCode::OK, outbound::running(execution))
}

/// The same, to somebody whose patience ran out.
pub(super) fn still_running(execution: ExecutionId) -> Response {
    envelope(execution, StatusCode::ACCEPTED, outbound::running(execution))
}

/// A page of the list, and the server's time: ages are reckoned from it.
pub(super) fn list(page: &SearchPage, now: Timestamp) -> Response {
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

/// Says in a header which execution a response is about.
pub(super) fn about(execution: ExecutionId, mut response: Response) -> Response {
    let id =
        HeaderValue::try_from(execution.to_string()).expect("an id is made of plain characters");
    response.headers_mut().insert(EXECUTION, id);
    response
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Unborn | Phase::Running => "running",
        Phase::Paused => "paused",
        Phase::Parked => "parked",
        Phase::Finished => "finished",
    }
}
