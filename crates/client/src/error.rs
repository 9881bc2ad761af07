//! The errors of a request, with advice for a person.

use crate::proof::ProofError;
use std::error::Error as StdError;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No server answered at this address.
    #[error("cannot connect to {url}: {why}")]
    CannotConnect {
        /// The URL of the server.
        url: String,
        /// The system's error message.
        why: String,
    },
    /// The server closed the connection before the answer was complete.
    #[error("the connection to {url} broke off: {why}")]
    BrokeOff {
        /// The URL of the server.
        url: String,
        /// The system's error message.
        why: String,
    },
    /// The server did not prove that it knows the token, and the client sent nothing.
    #[error("no token for {url}: {why}")]
    Unproven {
        /// The URL of the server.
        url: String,
        /// What the proof lacked.
        why: ProofError,
    },
    /// The token is missing, or the server does not accept it.
    #[error("{url} does not know this token")]
    Unauthorised {
        /// The URL of the server.
        url: String,
    },
    /// The server refused the request, with its own message.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// For programs, such as `ExecutionNotFoundError`; empty where there is none.
        tag: String,
        /// A message for people.
        message: String,
    },
    /// The answer does not conform to Airlock's protocol.
    #[error("not what an Airlock server says: {0}")]
    Protocol(String),
    /// The URL or the token is invalid.
    #[error("{0}")]
    Unusable(String),
}

impl Error {
    /// Advice for a person at a terminal.
    pub const fn advice(&self) -> Option<&'static str> {
        match self {
            Self::CannotConnect { .. } => {
                Some("is a server running? Start one with: airlock serve")
            }
            Self::BrokeOff { .. } => Some("executions continue on the server; try again"),
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

    /// Whether a retry of the same request may succeed soon.
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

/// The innermost cause: the messages of the outer libraries carry less information.
pub(crate) fn root_cause(error: &dyn StdError) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
