//! The role in which an answer is given, and the caller who gives it.

use crate::CallerName;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The role in which an answer is given; also the setting for the highest role that may answer. A value permits the lower ones.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum AnswerRole {
    /// A person: a token or browser session with the scope `answer`.
    #[default]
    Person,
    /// The dialog of an MCP client. The server cannot see whether a person pressed its button.
    Client,
    /// The agent that runs the program.
    Model,
}

/// A text that names no [`AnswerRole`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the value must be person, client or model")]
pub struct BadAnswerRole;

impl AnswerRole {
    /// All values, the strictest first.
    pub const ALL: [Self; 3] = [Self::Person, Self::Client, Self::Model];

    /// The name in settings, tokens, the journal and the documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Client => "client",
            Self::Model => "model",
        }
    }

    /// Whether a person answers. Journal entries leave this value out.
    pub fn is_person(&self) -> bool {
        *self == Self::Person
    }
}

impl fmt::Display for AnswerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AnswerRole {
    type Err = BadAnswerRole;

    fn from_str(text: &str) -> Result<Self, BadAnswerRole> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or(BadAnswerRole)
    }
}

/// The caller who gives an answer, and in which role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerAuthor {
    /// The caller to whom the token or session belongs.
    pub caller: CallerName,
    /// The role in which the answer is given.
    pub role: AnswerRole,
}

impl From<CallerName> for AnswerAuthor {
    /// A person, under this name.
    fn from(caller: CallerName) -> Self {
        Self { caller, role: AnswerRole::Person }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_permits_those_below_it_and_is_read_by_its_name() {
        assert!(AnswerRole::Person < AnswerRole::Client && AnswerRole::Client < AnswerRole::Model);
        assert_eq!(AnswerRole::default(), AnswerRole::Person);
        for role in AnswerRole::ALL {
            assert_eq!(role.name().parse(), Ok(role));
            assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{role}\""));
        }
        for bad in ["", "Person", "agent", "person "] {
            assert_eq!(bad.parse::<AnswerRole>(), Err(BadAnswerRole));
        }
    }
}
