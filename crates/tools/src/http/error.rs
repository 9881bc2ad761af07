//! Why an API gave no answer.

use std::time::Duration;

/// Why a request got no answer. Messages name the host and never a query, a header or a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The host is unreachable, or does not speak HTTP.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// The host of the request.
        host: String,
        /// The network error.
        why: String,
    },
    /// The time limit was exceeded.
    #[error("{host} did not answer within {} s", after.as_secs_f32())]
    TimedOut {
        /// The host of the request.
        host: String,
        /// The time limit.
        after: Duration,
    },
    /// The answer exceeds the size limit.
    #[error("{host} sent more than {max} bytes")]
    TooLarge {
        /// The host of the request.
        host: String,
        /// The size limit.
        max: usize,
    },
    /// The request exceeds the size limit.
    #[error("the request has {n_bytes} bytes, {max} at most")]
    RequestTooLarge {
        /// Its size.
        n_bytes: usize,
        /// The size limit.
        max: usize,
    },
    /// A redirect that is not followed.
    #[error("{host} redirects {why}")]
    Redirect {
        /// The host of the request.
        host: String,
        /// Why the redirect is not followed.
        why: String,
    },
    /// An address in a private network that the description may not use.
    #[error("{host} is inside a private network, and the description comes from outside")]
    Private {
        /// The host of the address.
        host: String,
    },
    /// An address that no request may reach.
    #[error("{host} cannot be reached: {why}")]
    Refused {
        /// The host of the request.
        host: String,
        /// The address and the reason.
        why: String,
    },
    /// A credential that is not a valid header value.
    #[error("the connection's value for {name} has characters that cannot be sent")]
    BadCredential {
        /// The header that it was meant for.
        name: String,
    },
    /// A credential that was given for another server.
    #[error(
        "the connection's token is meant for another server than {host}, and is not sent there"
    )]
    OtherAudience {
        /// The host that would have received it.
        host: String,
    },
    /// The caller no longer waits for the answer.
    #[error("the call was cancelled")]
    Cancelled,
}

impl HttpError {
    /// The error code for programs.
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

    /// Whether the same request may succeed later.
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
