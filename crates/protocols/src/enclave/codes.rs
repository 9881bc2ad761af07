//! Why a session has no result, in enclave's words: each limit has its own, a tool's own comes first.

use lifecycle::{Failure, FailureCode, LimitKind};

/// The code by which programs tell failures apart: each limit has its own, a tool's own comes first.
pub(super) fn code_of(failure: &Failure, reached: Option<LimitKind>) -> String {
    if let Some(limit) = reached {
        return limit_code(limit).to_owned();
    }
    let word = match failure.code {
        FailureCode::Tool => return own_code(failure).unwrap_or_else(|| "TOOL_ERROR".to_owned()),
        FailureCode::Runtime if failure.name.as_deref() == Some("SyntaxError") => "SYNTAX_ERROR",
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
    };
    word.to_owned()
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
    }
}

/// The code that a tool gave its failure.
fn own_code(failure: &Failure) -> Option<String> {
    let details = failure.details.as_ref()?;
    let details: serde_json::Value = serde_json::from_str(details.text()).ok()?;
    Some(details.get("code")?.as_str()?.to_owned())
}
