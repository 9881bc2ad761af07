//! Why an API gave no answer.

use std::time::Duration;

/// Why a request got no answer. Messages name the host and never a query, a header or a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// Nobody there, or nobody who speaks HTTP.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// Who was asked.
        host: String,
        /// What the network said.
        why: String,
    },
    /// Too slow.
    #[error("{host} did not answer within {} s", after.as_secs_f32())]
    TimedOut {
        /// Who was asked.
        host: String,
        /// How long we waited.
        after: Duration,
    },
    /// More than we take.
    #[error("{host} sent more than {max} bytes")]
    TooLarge {
        /// Who was asked.
        host: String,
        /// What we take.
        max: usize,
    },
    /// More than we send.
    #[error("the request has {n_bytes} bytes, {max} at most")]
    RequestTooLarge {
        /// What it has.
        n_bytes: usize,
        /// What we send.
        max: usize,
    },
    /// A redirect that is not followed.
    #[error("{host} redirects {why}")]
    Redirect {
        /// Who was asked.
        host: String,
        /// Why we do not go there.
        why: String,
    },
    /// An address inside a network that the description has no business with.
    #[error("{host} is inside a private network, and the description comes from outside")]
    Private {
        /// Who was meant.
        host: String,
    },
    /// An address that no request may reach.
    #[error("{host} cannot be reached: {why}")]
    Refused {
        /// Who was asked.
        host: String,
        /// Which address, and why.
        why: String,
    },
    /// A credential that no header can hold.
    #[error("the connection's value for {name} has characters that cannot be sent")]
    BadCredential {
        /// Header that it was meant for.
        name: String,
    },
    /// A credential that was given for another server.
    #[error(
        "the connection's token is meant for another server than {host}, and is not sent there"
    )]
    OtherAudience {
        /// Who would have got it.
        host: String,
    },
    /// Nobody waits for the answer any more.
    #[error("the call was cancelled")]
    Cancelled,
}

impl HttpError {
    /// One word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "upstream_unreachable",
            Self::TimedOut { .. } => "upstream_timeout",
            Self::TooLarge { .. } => "upstream_response_too_large",
            Self::RequestTooLarge { .. } => "request_too_large",
            Self::Redirect { .. } => "upstream_redirect_refused",
            Self::Private { .. } | Self::Refused { .. } => "upstream_address_refused",
            Self::BadCredential { .. } => "connection_value_invalid",
            Self::OtherAudience { .. } => "connection_audience_refused",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the same request may do better later.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => true,
            Self::TooLarge { .. }
            | Self::RequestTooLarge { .. }
            | Self::Redirect { .. }
            | Self::Private { .. }
            | Self::Refused { .. }
            | Self::BadCredential { .. }
            | Self::OtherAudience { .. }
            | Self::Cancelled => false,
        }
    }
}
