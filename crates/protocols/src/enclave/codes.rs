//! Converts failures of sessions and calls to enclave's codes and messages: each limit has its own code, a
//! tool's own comes first. Messages that upstream's broker writes come before ours, because clients match
//! on them.

use lifecycle::{ExecutionLimits, Failure, FailureCode, LimitKind};
use std::borrow::Cow;

/// Upstream's code of every run-time error.
const UPSTREAM_RUNTIME_CODE: &str = "DOUBLE_VM_EXECUTION_ERROR";

/// How a program's call can fail.
const CALL_FAILURES: [FailureCode; 10] = [
    FailureCode::Timeout,
    FailureCode::LimitExceeded,
    FailureCode::Serialization,
    FailureCode::Validation,
    FailureCode::Tool,
    FailureCode::ToolNotFound,
    FailureCode::SourceUnavailable,
    FailureCode::Refused,
    FailureCode::Declined,
    FailureCode::InDoubt,
];

/// The code of a failed call: the program reads it as `error.code`, and clients as the code of `final` if the program
/// does not catch the error.
pub fn call_code(failure: &Failure) -> String {
    code_of(failure, None)
}

/// The kind of a failed call's code; `None` for codes of a tool's own.
pub fn call_failure(code: &str) -> Option<FailureCode> {
    CALL_FAILURES.into_iter().find(|failure| failure_word(*failure) == code)
}

/// The message of a failed call.
pub fn call_message(failure: &Failure) -> Cow<'_, str> {
    let message = &failure.message;
    let is_unknown = failure.code == FailureCode::ToolNotFound;
    let name = || detail(failure, "path").or_else(|| quoted(message));
    let unknown = is_unknown.then(name).flatten();
    match unknown {
        Some(tool) => format!("Unknown tool: {tool}. {message}").into(),
        None => message.into(),
    }
}

/// The code by which programs distinguish failures: each limit has its own, a tool's own comes first.
pub(super) fn code_of(failure: &Failure, reached: Option<LimitKind>) -> String {
    if let Some(limit) = reached {
        return limit_code(limit).to_owned();
    }
    match failure.code {
        FailureCode::Tool => detail(failure, "code"),
        FailureCode::Runtime if is_syntax_error(failure) => Some("SYNTAX_ERROR".to_owned()),
        FailureCode::Runtime
        | FailureCode::Timeout
        | FailureCode::MemoryLimit
        | FailureCode::LimitExceeded
        | FailureCode::Serialization
        | FailureCode::Validation
        | FailureCode::ToolNotFound
        | FailureCode::SourceUnavailable
        | FailureCode::Refused
        | FailureCode::Declined
        | FailureCode::QuestionCancelled
        | FailureCode::InDoubt
        | FailureCode::Stuck
        | FailureCode::Internal => None,
    }
    .unwrap_or_else(|| failure_word(failure.code).to_owned())
}

/// The message with which a session ends.
pub(super) fn ending_of<'f>(
    failure: &'f Failure,
    reached: Option<LimitKind>,
    limits: &ExecutionLimits,
) -> Cow<'f, str> {
    let message = &failure.message;
    let upstream = match reached {
        Some(LimitKind::Calls) => format!(
            "Maximum tool call limit exceeded ({}). This limit prevents runaway script execution.",
            limits.calls_max
        ),
        Some(LimitKind::Rounds) => format!(
            "Maximum iteration limit exceeded ({}). This limit prevents infinite loops.",
            limits.loop_rounds_max
        ),
        None if is_syntax_error(failure) => {
            return format!("Failed to parse AgentScript code: {message}").into();
        }
        None
        | Some(
            LimitKind::Cpu
            | LimitKind::Active
            | LimitKind::Total
            | LimitKind::Memory
            | LimitKind::Timers
            | LimitKind::Outputs
            | LimitKind::Bytes
            | LimitKind::Logs
            | LimitKind::Idle
            | LimitKind::Grace,
        ) => return message.into(),
    };
    format!("{upstream} {message}").into()
}

/// Which limit was reached, if the failure's code is upstream's and does not identify it.
pub(super) const fn reason_of(reached: Option<LimitKind>) -> Option<&'static str> {
    match reached {
        Some(LimitKind::Rounds) => Some("MAX_ITERATIONS"),
        None
        | Some(
            LimitKind::Cpu
            | LimitKind::Active
            | LimitKind::Total
            | LimitKind::Memory
            | LimitKind::Calls
            | LimitKind::Timers
            | LimitKind::Outputs
            | LimitKind::Bytes
            | LimitKind::Logs
            | LimitKind::Idle
            | LimitKind::Grace,
        ) => None,
    }
}

fn is_syntax_error(failure: &Failure) -> bool {
    failure.code == FailureCode::Runtime && failure.name.as_deref() == Some("SyntaxError")
}

const fn failure_word(code: FailureCode) -> &'static str {
    match code {
        FailureCode::Tool => "TOOL_ERROR",
        FailureCode::Runtime => "EXECUTION_ERROR",
        FailureCode::Timeout => "TOOL_TIMEOUT",
        FailureCode::MemoryLimit => "MEMORY_LIMIT_EXCEEDED",
        FailureCode::LimitExceeded => "TOOL_RESULT_TOO_LARGE",
        FailureCode::Serialization => "SERIALIZATION_ERROR",
        FailureCode::Validation => "VALIDATION_ERROR",
        FailureCode::ToolNotFound => "UNKNOWN_TOOL",
        FailureCode::SourceUnavailable => "TOOL_UNAVAILABLE",
        FailureCode::Refused => "TOOL_REFUSED",
        FailureCode::Declined | FailureCode::QuestionCancelled => "TOOL_DECLINED",
        FailureCode::InDoubt => "TOOL_IN_DOUBT",
        FailureCode::Stuck => "STUCK",
        FailureCode::Internal => "INTERNAL_ERROR",
    }
}

const fn limit_code(limit: LimitKind) -> &'static str {
    match limit {
        LimitKind::Cpu | LimitKind::Active => "TIMEOUT",
        LimitKind::Total => "DEADLINE_EXCEEDED",
        LimitKind::Memory => "MEMORY_LIMIT_EXCEEDED",
        LimitKind::Calls => "MAX_TOOL_CALLS",
        LimitKind::Timers => "MAX_TIMERS",
        LimitKind::Outputs => "MAX_OUTPUTS",
        LimitKind::Bytes => "MAX_BYTES",
        LimitKind::Logs => "MAX_STDOUT_BYTES",
        LimitKind::Idle => "IDLE_TIMEOUT",
        LimitKind::Grace => "CLIENT_DISCONNECTED",
        LimitKind::Rounds => UPSTREAM_RUNTIME_CODE,
    }
}

/// The tool that the message about a hidden tool names: this failure has no details.
fn quoted(message: &str) -> Option<String> {
    let (tool, _) = message.strip_prefix("There is no tool \"")?.split_once('"')?;
    Some(tool.to_owned())
}

/// A text in the details of a failure: the code that a tool gave it, or the path that names no tool.
fn detail(failure: &Failure, member: &str) -> Option<String> {
    let details: serde_json::Value =
        serde_json::from_str(failure.details.as_ref()?.as_text()).ok()?;
    Some(details.get(member)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_in_which_a_call_fails_is_read_back_from_its_code() {
        for failure in CALL_FAILURES {
            let code = call_code(&Failure::new(failure, "no"));
            assert_eq!(call_failure(&code), Some(failure), "{code}");
        }
        assert_eq!([call_failure("E_OWN"), call_failure("timeout")], [None, None]);
    }
}
