//! Converts failures into the protocol's error kinds and codes.

use lifecycle::{ExecutionOutcome, Failure, FailureCode, Rejection};
use protocols::execbox::session::TaskFailureKind;
use protocols::hotrepl::RESULT_BYTES_MAX;
use protocols::hotrepl::outbound::envelope;
use protocols::hotrepl::wire::{ErrorEnvelope, ErrorKind};
use sandbox::TaskFailure;
use serde_json::{Map, Value, json};

/// Why a task is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// Its timeout, in milliseconds, has passed.
    Timeout(u64),
    /// Its client cancelled it.
    Cancelled,
    /// The evaluator is replaced.
    Reset,
}

/// The error of a failed eval.
pub(super) fn eval_failed(failed: &TaskFailure, stop: Option<StopReason>) -> ErrorEnvelope {
    match failed.why {
        TaskFailureKind::Syntax => {
            envelope(ErrorKind::ValidationFailed, "compileError", failed.message.clone())
        }
        TaskFailureKind::Interrupted => stopped(stop, "eval"),
        TaskFailureKind::Threw
        | TaskFailureKind::Memory
        | TaskFailureKind::Stuck
        | TaskFailureKind::Unknown => {
            envelope(ErrorKind::Internal, "runtimeException", failed.message.clone())
        }
    }
}

/// The error of a failed command or job of the guest.
pub(super) fn command_failed(
    failed: &TaskFailure,
    stop: Option<StopReason>,
    what: &str,
) -> ErrorEnvelope {
    match failed.why {
        TaskFailureKind::Interrupted => stopped(stop, what),
        TaskFailureKind::Unknown => {
            envelope(ErrorKind::UnknownCommand, "unknownCommand", failed.message.clone())
        }
        TaskFailureKind::Threw => claimed(failed).unwrap_or_else(|| {
            envelope(ErrorKind::Internal, "handlerException", failed.message.clone())
        }),
        TaskFailureKind::Syntax | TaskFailureKind::Memory | TaskFailureKind::Stuck => {
            envelope(ErrorKind::Internal, "handlerException", failed.message.clone())
        }
    }
}

/// A handler may choose among the error kinds that are about its own work.
fn claimed(failed: &TaskFailure) -> Option<ErrorEnvelope> {
    let kind = ErrorKind::from_name(failed.kind.as_deref()?)?;
    let may = matches!(
        kind,
        ErrorKind::PreconditionFailed
            | ErrorKind::ValidationFailed
            | ErrorKind::Conflict
            | ErrorKind::Cancelled
    );
    let code = failed.code.as_deref().unwrap_or("handlerFailed");
    // `String(error)` without the class, because the kind is more specific.
    let message = failed.message.split_once(": ").map_or(failed.message.as_str(), |it| it.1);
    let mut error = may.then(|| envelope(kind, code, message))?;
    error.details = failed.details.as_deref().and_then(|json| serde_json::from_str(json).ok());
    Some(error)
}

fn stopped(stop: Option<StopReason>, what: &str) -> ErrorEnvelope {
    let (title, cancelled, late) = match what {
        "command" => ("The command", "commandCancelled", "commandTimeout"),
        "job" => ("The job", "jobCancelled", "commandTimeout"),
        _ => ("Eval", "evalCancelled", "evalTimeout"),
    };
    match stop {
        Some(StopReason::Timeout(ms)) => {
            envelope(ErrorKind::Timeout, late, format!("{title} timed out after {ms} ms."))
        }
        Some(StopReason::Cancelled) => {
            envelope(ErrorKind::Cancelled, cancelled, format!("{title} was cancelled."))
        }
        Some(StopReason::Reset) => envelope(
            ErrorKind::Cancelled,
            cancelled,
            format!("{title} was cancelled: reset in progress."),
        ),
        None => envelope(
            ErrorKind::Timeout,
            late,
            format!("{title} computed for too long while others waited."),
        ),
    }
}

/// The error of a task whose runner is gone.
pub(super) fn lost(stop: Option<StopReason>, what: &str) -> ErrorEnvelope {
    match stop {
        Some(stop) => stopped(Some(stop), what),
        None => {
            let code = if what == "eval" { "runtimeException" } else { "stateLost" };
            envelope(ErrorKind::Internal, code, "The evaluator had to be replaced.")
        }
    }
}

/// The details of an error: where it happened, what was printed, and whether definitions are lost.
pub(super) fn details(
    failed: Option<&TaskFailure>,
    stdout: &str,
    duration_ms: u64,
    state_lost: bool,
) -> Value {
    let mut details = Map::new();
    if let Some(stack) = failed.and_then(|failed| failed.stack.as_deref()) {
        if let Some(line) = line_of(stack) {
            details.insert("line".into(), line.into());
        }
        details.insert("stack".into(), stack.into());
    }
    if !stdout.is_empty() {
        details.insert("stdout".into(), stdout.into());
    }
    details.insert("durationMs".into(), duration_ms.into());
    if state_lost {
        details.insert("stateLost".into(), true.into());
    }
    Value::Object(details)
}

/// The line in the user's text that the innermost frame names.
fn line_of(stack: &str) -> Option<u64> {
    stack.split_once("program.js:")?.1.split(':').next()?.parse().ok()
}

/// Converts a tool's result into a command's output, or into an error.
pub(super) fn output_of(outcome: ExecutionOutcome) -> Result<Value, ErrorEnvelope> {
    match outcome {
        ExecutionOutcome::Completed { value: None } => Ok(json!({})),
        ExecutionOutcome::Completed { value: Some(json) } => output(json.as_text()),
        ExecutionOutcome::Failed(failure) => Err(tool_failed(&failure)),
        ExecutionOutcome::Cancelled { .. } => {
            Err(envelope(ErrorKind::Cancelled, "jobCancelled", "The call was cancelled."))
        }
    }
}

/// A command's output, unless it is too long.
pub(super) fn output(json: &str) -> Result<Value, ErrorEnvelope> {
    if json.len() > RESULT_BYTES_MAX {
        let message =
            format!("The output has {} bytes; at most {RESULT_BYTES_MAX} are sent.", json.len());
        return Err(envelope(ErrorKind::Internal, "resultTooLarge", message));
    }
    serde_json::from_str(json)
        .map_err(|_| envelope(ErrorKind::Internal, "handlerFailed", "The output is no valid JSON."))
}

/// The caller's quotas permit no further program.
pub(super) fn quota_reached(refused: &Rejection) -> ErrorEnvelope {
    envelope(ErrorKind::Busy, "quotaReached", format!("Nothing was started: {refused}."))
}

/// Converts the failure of a tool for a client that called it as a command.
pub(super) fn tool_failed(failure: &Failure) -> ErrorEnvelope {
    let (kind, code) = match failure.code {
        FailureCode::Validation => (ErrorKind::ValidationFailed, "argsSchemaViolation"),
        FailureCode::ToolNotFound => (ErrorKind::UnknownCommand, "unknownCommand"),
        FailureCode::SourceUnavailable => (ErrorKind::PreconditionFailed, "sourceUnavailable"),
        FailureCode::Refused => (ErrorKind::PreconditionFailed, "refusedByPolicy"),
        FailureCode::Declined => (ErrorKind::PreconditionFailed, "declined"),
        FailureCode::QuestionCancelled => (ErrorKind::Cancelled, "questionCancelled"),
        FailureCode::Timeout => (ErrorKind::Timeout, "commandTimeout"),
        FailureCode::InDoubt => (ErrorKind::Conflict, "inDoubt"),
        FailureCode::Tool | FailureCode::Runtime => (ErrorKind::Internal, "handlerException"),
        FailureCode::MemoryLimit
        | FailureCode::LimitExceeded
        | FailureCode::Serialization
        | FailureCode::Stuck
        | FailureCode::Internal => (ErrorKind::Internal, "handlerFailed"),
    };
    let error = envelope(kind, code, failure.message.clone());
    match failure.details.as_ref().and_then(|json| serde_json::from_str(json.as_text()).ok()) {
        Some(mut details) => {
            list_errors(&mut details);
            error.with_details(details)
        }
        None => error,
    }
}

/// Adds the catalogue's issues as sentences too, which this protocol calls `errors`.
fn list_errors(details: &mut Value) {
    let Value::Object(members) = details else { return };
    let Some(Value::Array(issues)) = members.get("issues") else { return };
    let text = |issue: &Value, name: &str| issue.get(name)?.as_str().map(str::to_owned);
    let sentence = |issue: &Value| {
        let message = text(issue, "message")?;
        let path = text(issue, "path").filter(|path| !path.is_empty());
        Some(Value::from(path.map_or(message.clone(), |path| format!("at {path}: {message}"))))
    };
    let errors: Vec<Value> = issues.iter().filter_map(sentence).collect();
    members.entry("errors").or_insert(errors.into());
}
