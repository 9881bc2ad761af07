//! Converts the end of a task into the wire types of the link.

use super::plain;
use crate::failure::{DescribedError, PositionShifts};
use crate::prepare::SyntaxProblem;
use crate::session::PROGRAM_FILE_NAME;
use crate::verdict::with_bigint_limit;
use protocols::execbox::session::{EvalValue, TaskFailed, TaskFailureKind, TaskOutcome};
use rquickjs::Value;

type EvalOutcome = TaskOutcome<'static>;

pub(super) fn failed(why: TaskFailureKind, message: impl Into<String>) -> EvalOutcome {
    TaskOutcome::Failed(plain(why, message))
}

pub(super) fn interrupted() -> EvalOutcome {
    failed(TaskFailureKind::Interrupted, "it was stopped")
}

pub(super) fn unknown_error() -> EvalOutcome {
    failed(TaskFailureKind::Unknown, "the command is no longer registered")
}

pub(super) fn out_of_memory(bytes: u64) -> EvalOutcome {
    failed(
        TaskFailureKind::Memory,
        format!("InternalError: needed more than {bytes} bytes of memory"),
    )
}

/// The text that is printed for an unhandled rejection.
pub(super) fn warning(outcome: &EvalOutcome) -> String {
    let TaskOutcome::Failed(TaskFailed { message, stack, .. }) = outcome else {
        return String::new();
    };
    let stack = stack.iter().map(|stack| format!("\n{stack}")).collect::<String>();
    format!("Warning: unhandled promise rejection: {message}{stack}")
}

/// One line for each problem, in their order.
pub(super) fn syntax(problems: &[SyntaxProblem]) -> EvalOutcome {
    let lines: Vec<String> = problems
        .iter()
        .map(|SyntaxProblem { message, line, column }| {
            format!("({line},{column}): error: {message}")
        })
        .collect();
    failed(TaskFailureKind::Syntax, lines.join("\n"))
}

/// Rewrites the engine's message about a text that only the engine rejects into the form of our own
/// parser's messages.
pub(super) fn uncompiled(outcome: EvalOutcome) -> EvalOutcome {
    let TaskOutcome::Failed(failed) = &outcome else { return outcome };
    let Some(message) = failed.message.strip_prefix("SyntaxError: ") else { return outcome };
    let (line, column) = failed.stack.as_deref().and_then(first_place).unwrap_or((1, 1));
    syntax(&[SyntaxProblem { message: message.to_owned(), line, column }])
}

/// The line and the column of a stack's innermost frame.
fn first_place(stack: &str) -> Option<(usize, usize)> {
    let (_, place) = stack.lines().next()?.split_once(PROGRAM_FILE_NAME)?;
    let mut numbers = place.split(|c: char| !c.is_ascii_digit()).filter(|it| !it.is_empty());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Shows a small value without a call of the prelude.
pub(super) fn small(value: &Value<'_>) -> Option<EvalOutcome> {
    let (type_name, json) = if let Some(number) = value.as_int() {
        ("number", number.to_string())
    } else if let Some(truth) = value.as_bool() {
        ("boolean", truth.to_string())
    } else if value.is_null() {
        ("null", "null".to_owned())
    } else {
        return None;
    };
    Some(valued(type_name.to_owned(), json, None))
}

pub(super) fn value((type_name, json, chars): (String, String, u64)) -> EvalOutcome {
    valued(type_name, json, Some(chars))
}

fn valued(type_name: String, json: String, chars: Option<u64>) -> EvalOutcome {
    let bytes = (json.len() as u64).max(chars.unwrap_or_default());
    TaskOutcome::Value(EvalValue { type_name: type_name.into(), json: json.into(), bytes })
}

/// The result of a command.
pub(super) fn output(json: String) -> EvalOutcome {
    TaskOutcome::Output(json.into())
}

/// An uncaught error, as `String(error)` formats it.
pub(super) fn described(
    said: DescribedError,
    claimed: Option<(String, String, String)>,
    memory_bytes: u64,
) -> EvalOutcome {
    if said.code == "memory_limit" && !said.ours {
        return out_of_memory(memory_bytes);
    }
    let failed = with_bigint_limit(said).into_failed(&PositionShifts::default());
    let message = match failed.name.as_deref() {
        Some(name) if failed.message.is_empty() => name.to_owned(),
        Some(name) => format!("{name}: {}", failed.message),
        None => failed.message.into_owned(),
    };
    let stack = failed.stack;
    let mut failed = TaskFailed { stack, ..plain(TaskFailureKind::Threw, message) };
    if let Some((kind, code, details)) = claimed {
        (failed.kind, failed.code) = (Some(kind.into()), Some(code.into()));
        failed.details = (!details.is_empty()).then(|| details.into());
    }
    TaskOutcome::Failed(failed)
}
