//! Why a connection or a request is refused, and how the refusal is written to a socket that no HTTP library reads.

use super::peer::PeerKey;
use crate::error::RequestError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Maximum number of refused connections that are being answered; others are closed without an answer.
pub(super) const ANSWERED_MAX: usize = 64;

/// How long a refused connection may take to read its answer, and how much of its input is discarded meanwhile.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);
const IGNORED_BYTES_MAX: u64 = 16 << 10;

/// Why there is no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionRefusal {
    /// All slots are taken by connections that may not be displaced.
    Places(usize),
    /// It had not sent a request, or was idle, and another connection needed its slot.
    Displaced(usize),
    /// One address has reached its limit.
    Address(PeerKey, usize),
    /// One caller has reached the limit of WebSockets and streams.
    Caller(usize),
    /// The head of its first request did not arrive in time.
    Head(Duration),
}

impl ConnectionRefusal {
    /// The metrics' names of the reasons.
    pub(crate) const REASONS: [&str; 5] = ["places", "displaced", "address", "caller", "head"];

    const fn reason_idx(self) -> usize {
        match self {
            Self::Places(_) => 0,
            Self::Displaced(_) => 1,
            Self::Address(..) => 2,
            Self::Caller(_) => 3,
            Self::Head(_) => 4,
        }
    }

    /// The answer to a request.
    pub(crate) fn problem(self) -> RequestError {
        match self {
            Self::Places(n_max) => RequestError::unavailable(format!(
                "The server has {n_max} connections, the most that it takes (listener.connections_max); only /healthz and \
                 /readyz are answered until one is closed."
            )),
            Self::Displaced(n_max) => RequestError::unavailable(format!(
                "The server has {n_max} connections, the most that it takes (listener.connections_max), and this one had \
                 sent no whole request: it gave way to another. Try again."
            )),
            Self::Address(peer, n_max) => RequestError::over_limit(format!(
                "There are {n_max} connections from {peer}, the most that one address may have \
                 (listener.connections_per_address_max); close some."
            )),
            Self::Caller(n_max) => RequestError::over_limit(format!(
                "This caller has {n_max} WebSockets and event streams open, the most that one caller may have \
                 (listener.streams_per_caller_max); close some."
            )),
            Self::Head(time_max) => RequestError::too_late(format!(
                "The head of a request did not arrive within {} s (listener.head_ms_max).",
                time_max.as_secs_f32()
            )),
        }
    }

    /// The code that clients of the enclave protocol read beside the message.
    const fn code(self) -> &'static str {
        match self {
            Self::Places(_) | Self::Displaced(_) => "SERVICE_UNAVAILABLE",
            Self::Address(..) | Self::Caller(_) => "TOO_MANY_REQUESTS",
            Self::Head(_) => "REQUEST_TIMEOUT",
        }
    }

    /// The answer as bytes, for a socket on which nothing was sent yet. The client's protocol is unknown: the body
    /// has the members of all protocols.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let problem = self.problem().with_code(self.code());
        let (status, body) = (problem.status(), problem.body());
        let retry = if status.as_u16() == 503 { "Retry-After: 1\r\n" } else { "" };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n{retry}Connection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

/// Counts refusals by reason, and answers connections that never got a slot.
#[derive(Debug)]
pub(crate) struct RefusedConnections {
    counts: [AtomicU64; ConnectionRefusal::REASONS.len()],
    answering: Arc<Semaphore>,
}

impl Default for RefusedConnections {
    fn default() -> Self {
        Self { counts: Default::default(), answering: Arc::new(Semaphore::new(ANSWERED_MAX)) }
    }
}

impl RefusedConnections {
    pub(crate) fn count(&self, refusal: ConnectionRefusal) {
        self.counts[refusal.reason_idx()].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of refusals, by reason.
    pub(crate) fn counts(&self) -> [(&'static str, u64); ConnectionRefusal::REASONS.len()] {
        std::array::from_fn(|idx| {
            (ConnectionRefusal::REASONS[idx], self.counts[idx].load(Ordering::Relaxed))
        })
    }

    /// Answers a refused connection, unless too many are being answered.
    pub(crate) fn answer_stream(
        &self,
        mut stream: TcpStream,
        refusal: ConnectionRefusal,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        let place = Arc::clone(&self.answering).try_acquire_owned().ok()?;
        Some(async move {
            let answering = async {
                stream.write_all(&refusal.bytes()).await?;
                stream.shutdown().await?;
                // Closing a socket with unread bytes resets the connection, and the answer may be lost.
                tokio::io::copy(&mut (&mut stream).take(IGNORED_BYTES_MAX), &mut tokio::io::sink())
                    .await
            };
            // A client that does not read the answer in time does not get it.
            let _ = tokio::time::timeout(ANSWER_TIME_MAX, answering).await;
            drop(place);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_without_a_request_is_refused_in_the_words_of_every_protocol() {
        for (refusal, status, code) in [
            (ConnectionRefusal::Places(8), 503, "SERVICE_UNAVAILABLE"),
            (ConnectionRefusal::Caller(3), 429, "TOO_MANY_REQUESTS"),
            (ConnectionRefusal::Head(Duration::from_secs(10)), 408, "REQUEST_TIMEOUT"),
        ] {
            let answer = String::from_utf8(refusal.bytes()).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["code"], code);
            assert!(body["_tag"].is_string() && body["message"].is_string(), "{body}");
        }
    }
}
