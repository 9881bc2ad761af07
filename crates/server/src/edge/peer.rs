//! The peer of a connection or request: the address at the other end, or the one that a trusted proxy names.

use super::limits::ConnectionLimits;
use axum::http::HeaderMap;
use axum::http::header::FORWARDED;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Maximum number of consecutive proxies that a request may have passed.
const HOPS_MAX: usize = 32;

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// The key by which connections are counted: an IPv4 address, or the first half of an IPv6 address. A household or a
/// machine has all addresses of one such half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PeerKey(IpAddr);

impl PeerKey {
    pub(crate) fn from_ip(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            IpAddr::V4(ip) => ip.into(),
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        })
    }
}

impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(ip) => write!(f, "{ip}"),
            IpAddr::V6(ip) => write!(f, "{ip}/64"),
        }
    }
}

/// The origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestPeer {
    /// The other end of its connection, which was counted when it was accepted.
    Connection(SocketAddr),
    /// The address that a trusted proxy names.
    Named(IpAddr),
    /// A trusted proxy whose headers contradict each other or name no address: counted as the proxy's own.
    Unnamed(IpAddr),
}

impl RequestPeer {
    pub(crate) fn from_request(
        limits: &ConnectionLimits,
        peer: SocketAddr,
        headers: &HeaderMap,
    ) -> Self {
        if !limits.is_trusted_proxy(peer.ip()) {
            return Self::Connection(peer);
        }
        let x_forwarded_for =
            listed(headers, X_FORWARDED_FOR).map(|listed| named_last(limits, listed));
        let forwarded = listed(headers, FORWARDED.as_str())
            .map(|listed| named_last(limits, listed.into_iter().map(forwarded_for).collect()));
        match (x_forwarded_for, forwarded) {
            (None, None) => Self::Connection(peer),
            (Some(Some(ip)), None) | (None, Some(Some(ip))) => Self::Named(ip),
            (Some(Some(one)), Some(Some(other))) if one == other => Self::Named(one),
            // A proxy sets one of these headers. The other is the client's, and may contain anything.
            (Some(_), _) | (_, Some(_)) => Self::Unnamed(peer.ip()),
        }
    }

    /// The key by which this request is counted, besides its connection.
    pub(crate) fn key(self) -> Option<PeerKey> {
        match self {
            Self::Connection(_) => None,
            Self::Named(ip) if ip.to_canonical().is_loopback() => None,
            Self::Named(ip) | Self::Unnamed(ip) => Some(PeerKey::from_ip(ip)),
        }
    }

    /// The address, if it is known.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Connection(peer) => Some(peer),
            Self::Named(ip) => Some(SocketAddr::new(ip, 0)),
            Self::Unnamed(_) => None,
        }
    }
}

impl ConnectionLimits {
    pub(crate) fn is_trusted_proxy(&self, ip: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(ip))
    }

    /// The key by which connections from an address are counted; none if they are not limited.
    pub(super) fn counted_key(&self, ip: IpAddr) -> Option<PeerKey> {
        let is_exempt = ip.to_canonical().is_loopback() || self.is_trusted_proxy(ip);
        (!is_exempt).then(|| PeerKey::from_ip(ip))
    }
}

/// The members of a header, from all its lines; none if there is no such header.
fn listed<'h>(headers: &'h HeaderMap, name: &str) -> Option<Vec<&'h str>> {
    headers.contains_key(name).then(|| {
        let lines = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or_default());
        lines.flat_map(|line| line.split(',')).map(str::trim).collect()
    })
}

/// The last address in the list that is not a trusted proxy: the addresses before it were written by others.
fn named_last(limits: &ConnectionLimits, listed: Vec<&str>) -> Option<IpAddr> {
    let mut named = None;
    for text in listed.into_iter().rev().take(HOPS_MAX) {
        let ip = address(text)?;
        named = Some(ip);
        if !limits.is_trusted_proxy(ip) {
            break;
        }
    }
    named
}

/// The value of `for` in one member of `Forwarded`.
fn forwarded_for(member: &str) -> &str {
    let pairs = member.split(';').filter_map(|pair| pair.trim().split_once('='));
    let value = pairs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("for"));
    value.map_or("", |(_, value)| value.trim_matches('"'))
}

/// An address with or without a port: `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
fn address(text: &str) -> Option<IpAddr> {
    let bare = || text.trim_start_matches('[').trim_end_matches(']').parse();
    text.parse::<SocketAddr>().map(|at| at.ip()).or_else(|_| bare()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())
        };
        HeaderMap::from_iter(lines.iter().map(line))
    }

    #[test]
    fn addresses_of_version_6_are_counted_by_their_first_half() {
        let key = |ip: &str| PeerKey::from_ip(ip.parse().unwrap()).to_string();
        assert_eq!(key("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_eq!(key("2001:db8:1:2:ffff::"), key("2001:db8:1:2::1"));
        assert_eq!(key("::ffff:192.0.2.1"), "192.0.2.1");
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
    }

    #[test]
    fn only_a_trusted_proxys_headers_name_the_peer() {
        let proxies = ["127.0.0.1", "10.0.0.0/8", "fd00::/8"];
        let trusted_proxies = proxies.map(|proxy| proxy.parse().unwrap()).into();
        let limits = ConnectionLimits { trusted_proxies, ..ConnectionLimits::default() };
        type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], Option<&'c str>);
        let cases: [Case<'_>; 15] = [
            ("127.0.0.1:9", &[("x-forwarded-for", "192.0.2.1")], Some("192.0.2.1")),
            // The client's own value comes first.
            ("127.0.0.1:9", &[("x-forwarded-for", "6.6.6.6, 192.0.2.1")], Some("192.0.2.1")),
            ("127.0.0.1:9", &[("x-forwarded-for", "192.0.2.1, 10.1.1.1")], Some("192.0.2.1")),
            (
                "127.0.0.1:9",
                &[("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "192.0.2.1")],
                Some("192.0.2.1"),
            ),
            ("127.0.0.1:9", &[("forwarded", "for=192.0.2.1;proto=https")], Some("192.0.2.1")),
            (
                "127.0.0.1:9",
                &[("forwarded", "for=6.6.6.6, For=\"[2001:db8::7]:4711\"")],
                Some("2001:db8::/64"),
            ),
            ("[fd00::1]:9", &[("x-forwarded-for", "2001:db8::7")], Some("2001:db8::/64")),
            // A contradictory request, or one that names no address, counts as the proxy's own.
            (
                "127.0.0.1:9",
                &[("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=6.6.6.6")],
                Some("127.0.0.1"),
            ),
            ("127.0.0.1:9", &[("x-forwarded-for", "unknown")], Some("127.0.0.1")),
            ("127.0.0.1:9", &[("forwarded", "for=_hidden")], Some("127.0.0.1")),
            (
                "127.0.0.1:9",
                &[("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=192.0.2.1")],
                Some("192.0.2.1"),
            ),
            ("127.0.0.1:9", &[], None),
            // From this machine, through the proxy.
            ("127.0.0.1:9", &[("x-forwarded-for", "127.0.0.2")], None),
            // An untrusted peer may send any header.
            ("192.0.2.9:9", &[("x-forwarded-for", "192.0.2.1")], None),
            ("127.0.0.3:9", &[("forwarded", "for=192.0.2.1")], None),
        ];
        for (peer, lines, expected) in cases {
            let seen = RequestPeer::from_request(&limits, peer.parse().unwrap(), &headers(lines));
            let seen = seen.key().map(|key| key.to_string());
            assert_eq!((peer, lines, seen.as_deref()), (peer, lines, expected));
        }
    }
}
