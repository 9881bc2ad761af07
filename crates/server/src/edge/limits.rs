//! Connection limits, and the proxies that may name a request's peer.

use super::refusal::ANSWERED_MAX;
use std::time::Duration;
use tools::http::IpNetwork;

/// The limits on connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Maximum number of connections, WebSockets included.
    pub connections_max: usize,
    /// Maximum number from one address; of IPv6, from one /64. Loopback and trusted proxies are not limited.
    pub per_address_max: usize,
    /// Maximum number of WebSockets and event streams of one caller.
    pub streams_per_caller_max: usize,
    /// Maximum time for the first head on a connection.
    pub head_time_max: Duration,
    /// Proxies whose `X-Forwarded-For` or `Forwarded` names the peer of a request.
    pub trusted_proxies: Vec<IpNetwork>,
}

/// Additional connections that are accepted when all slots are taken: for health requests, and to explain why others
/// are refused.
pub(super) const HEALTH_CONNECTIONS_MAX: usize = 32;

/// Maximum number of connections that have lost their slot and are not closed yet. Above this, no more are accepted.
pub(super) const CLOSING_MAX: usize = 64;

/// File descriptors that the server needs for other purposes: files, runners, requests to other servers.
const OTHER_DESCRIPTORS: usize = 256;

/// Minimum number of connections, regardless of the available descriptors.
const CONNECTIONS_MIN: usize = 16;

impl ConnectionLimits {
    /// Reduces the number of connections to the available descriptors: without a descriptor no connection could be
    /// accepted, not even for health.
    pub(crate) fn within_descriptors(mut self, n_descriptors: Option<usize>) -> Self {
        let Some(n_descriptors) = n_descriptors else { return self };
        let beside = OTHER_DESCRIPTORS + HEALTH_CONNECTIONS_MAX + CLOSING_MAX + ANSWERED_MAX;
        let n_max = n_descriptors.saturating_sub(beside).max(CONNECTIONS_MIN);
        if n_max < self.connections_max {
            tracing::warn!(
                n_descriptors,
                connections_max = n_max,
                "the limit of open files (ulimit -n) leaves fewer connections than listener.connections_max"
            );
            self.connections_max = n_max;
        }
        self
    }
}

/// The maximum number of descriptors of this process; none if the system does not report it.
pub(crate) fn descriptors_max() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_connections_than_descriptors_for_them() {
        let cases = [(None, 1_024), (Some(20_000), 1_024), (Some(1_024), 608), (Some(64), 16)];
        for (n_descriptors, expected) in cases {
            let limits = ConnectionLimits::default().within_descriptors(n_descriptors);
            assert_eq!((n_descriptors, limits.connections_max), (n_descriptors, expected));
        }
        assert!(descriptors_max().is_some_and(|n| n > 0));
    }
}
