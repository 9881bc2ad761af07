//! The numbers, and whose word names a peer.

use std::time::Duration;
use tools::http::IpNetwork;

/// How many connections a server takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at a time, WebSockets included.
    pub connections_max: usize,
    /// Of them, from one address; of IPv6, from one /64. Loopback and trusted proxies are not bounded.
    pub per_address_max: usize,
    /// WebSockets and event streams of one caller.
    pub streams_per_caller_max: usize,
    /// Longest time for the first head on a connection.
    pub head_time_max: Duration,
    /// Proxies whose `X-Forwarded-For` or `Forwarded` names the peer of a request.
    pub trusted_proxies: Vec<IpNetwork>,
}

/// Connections besides these that are accepted when all places are taken: for requests about health, and to say why others
/// are refused.
pub(super) const HEALTH_CONNECTIONS_MAX: usize = 32;

/// Connections that have lost their place and are not gone yet. No more are accepted until one is.
pub(super) const CLOSING_MAX: usize = 64;

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections_max: 1_024,
            per_address_max: 256,
            streams_per_caller_max: 256,
            head_time_max: Duration::from_secs(10),
            trusted_proxies: vec![],
        }
    }
}
