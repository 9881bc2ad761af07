//! References to an execution: its own id, or that of one of its questions.

use lifecycle::{ExecutionId, QuestionId};
use std::fmt;
use std::str::FromStr;

/// An execution, named by its own id or by a question's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionRef {
    /// `run_…`.
    Execution(ExecutionId),
    /// `exec_…`.
    Question(QuestionId),
}

/// A text that is not a valid execution or question id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no id: an execution's looks like run_<uuid>, a question's like exec_<uuid>")]
pub struct InvalidExecutionRef(String);

impl FromStr for ExecutionRef {
    type Err = InvalidExecutionRef;
    fn from_str(text: &str) -> Result<Self, InvalidExecutionRef> {
        let question = || text.parse().map(Self::Question);
        text.parse()
            .map(Self::Execution)
            .or_else(|_| question())
            .map_err(|_| InvalidExecutionRef(text.into()))
    }
}

impl From<ExecutionId> for ExecutionRef {
    fn from(id: ExecutionId) -> Self {
        Self::Execution(id)
    }
}

impl From<QuestionId> for ExecutionRef {
    fn from(id: QuestionId) -> Self {
        Self::Question(id)
    }
}

impl fmt::Display for ExecutionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Execution(id) => id.fmt(f),
            Self::Question(id) => id.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_read_back_as_themselves_and_nothing_else_is_an_id() {
        let uuid = "00000000-0000-0000-0000-000000000007";
        for text in [format!("run_{uuid}"), format!("exec_{uuid}")] {
            assert_eq!(text.parse::<ExecutionRef>().map(|id| id.to_string()), Ok(text));
        }
        for text in ["", "exec_1", "run_../x", uuid] {
            assert_eq!(text.parse::<ExecutionRef>(), Err(InvalidExecutionRef(text.into())));
        }
    }
}
