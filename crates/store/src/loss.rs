//! The report of a store that holds less than it acknowledged.

use lifecycle::Timestamp;

/// The store lost entries, or may have. The engine parks unfinished executions and settles the loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataLoss {
    /// The cause of the loss.
    pub cause: LossCause,
    /// When it was found.
    pub found: Timestamp,
    /// When the newest remaining entry was made; policies, tokens and settings are known at least up to then.
    pub known_until: Option<Timestamp>,
}

/// The cause of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// The store was damaged, and a person recovered what was left.
    Recovered,
    /// The store is a restored copy: its mark is missing, damaged, or belongs to another history.
    Restored,
}

impl LossCause {
    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recovered => "recovered",
            Self::Restored => "restored",
        }
    }

    /// The cause with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Recovered, Self::Restored].into_iter().find(|cause| cause.name() == name)
    }
}

impl std::fmt::Display for LossCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Recovered => "the store was recovered after damage",
            Self::Restored => "the store is a restored copy, or its mark was lost",
        })
    }
}
