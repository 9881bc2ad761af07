//! Every way in which a request comes to nothing, with what a person can do about it.

use crate::proof::ProofError;
use std::error::Error as StdError;

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nobody answers there.
    #[error("cannot connect to {url}: {why}")]
    CannotConnect {
        /// Where.
        url: String,
        /// What the system says.
        why: String,
    },
    /// Somebody was there, and left before the answer was complete.
    #[error("the connection to {url} broke off: {why}")]
    BrokeOff {
        /// Where.
        url: String,
        /// What the system says.
        why: String,
    },
    /// The server did not show that it knows the token, and got nothing.
    #[error("no token for {url}: {why}")]
    Unproven {
        /// Where.
        url: String,
        /// What it did not show.
        why: ProofError,
    },
    /// The token is missing, or opens nothing there.
    #[error("{url} does not know this token")]
    Unauthorised {
        /// Where.
        url: String,
    },
    /// The server's no, in its own words.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// For programs, such as `ExecutionNotFoundError`; empty where there is none.
        tag: String,
        /// A sentence.
        message: String,
    },
    /// Whoever answered does not speak as Airlock does.
    #[error("not what an Airlock server says: {0}")]
    Protocol(String),
    /// The URL or the token cannot be used at all.
    #[error("{0}")]
    Unusable(String),
}

impl Error {
    /// What a person at a terminal can do about it.
    pub const fn advice(&self) -> Option<&'static str> {
        match self {
            Self::CannotConnect { .. } => {
                Some("is a server running? Start one with: airlock serve")
            }
            Self::BrokeOff { .. } => Some("what was under way is kept: ask again"),
            Self::Unauthorised { .. } => Some(
                "give one with --token or AIRLOCK_TOKEN; the first start of a server writes the \
                 administrator's to tokens/admin in its data directory, and airlock token add mints more",
            ),
            Self::Protocol(_) => Some("is it an Airlock server, of a version like this one?"),
            Self::Unproven { why: ProofError::Unsupported, .. } => Some(
                "update that server; one of an earlier version gets a token that you give with --token",
            ),
            Self::Unproven { why: ProofError::UnknownToken, .. } => Some(
                "the token was removed, or it is another server's: give one with --token, or make one with airlock \
                 token add",
            ),
            Self::Unproven { .. } | Self::Refused { .. } | Self::Unusable(_) => None,
        }
    }

    /// Whether the same request may fare better in a moment.
    pub(crate) const fn is_passing(&self) -> bool {
        match self {
            Self::CannotConnect { .. } | Self::BrokeOff { .. } => true,
            Self::Refused { status, .. } => *status >= 500 || *status == 429,
            Self::Unproven { .. }
            | Self::Unauthorised { .. }
            | Self::Protocol(_)
            | Self::Unusable(_) => false,
        }
    }
}

/// What was behind it all: the words of the library in front say less.
pub(crate) fn root_cause(error: &dyn StdError) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
