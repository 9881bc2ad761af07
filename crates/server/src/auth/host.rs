//! The host names that this server answers to.
//!
//! A foreign name can be made to resolve to this address (DNS rebinding); `Host` contains the name that was used.

use super::origins::split_port;
use std::net::{IpAddr, SocketAddr};

/// The host names of this server.
#[derive(Debug, Clone)]
pub(crate) struct AllowedHosts {
    listen: IpAddr,
    allowed: Vec<String>,
}

impl AllowedHosts {
    pub(crate) fn new(listen: SocketAddr, allowed: &[String]) -> Self {
        let allowed = allowed.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { listen: listen.ip(), allowed }
    }

    /// Whether a `Host` header names this server. Ports are ignored: tunnels and proxies change them.
    pub(crate) fn is_ours(&self, host: &str) -> bool {
        let Some((name, _)) = split_port(host) else { return false };
        // The common case.
        if matches!(name, "127.0.0.1" | "localhost") {
            return true;
        }
        let name = name.to_ascii_lowercase();
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match address {
            Ok(ip) => ip.is_loopback() || ip == self.listen || self.allowed.contains(&name),
            Err(_) => name == "localhost" || self.allowed.contains(&name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> AllowedHosts {
        AllowedHosts::new("192.168.1.5:4788".parse().unwrap(), &["Box.example".into()])
    }

    #[test]
    fn a_rebound_name_is_not_ours() {
        let cases = [
            ("localhost", true),
            ("localhost:4788", true),
            ("LOCALHOST:1", true),
            ("127.0.0.1:4788", true),
            ("127.8.9.1", true),
            ("[::1]:4788", true),
            ("[::1]", true),
            ("192.168.1.5:4788", true),
            ("box.example", true),
            ("BOX.example:99", true),
            ("192.168.1.6", false),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example:4788", false),
            ("evil.example:4788@localhost", false),
            ("localhost:4788@evil.example", false),
            ("localhost:", false),
            ("localhost:x", false),
            ("[::1", false),
            ("[::1]x", false),
            ("", false),
            (":80", false),
        ];
        for (host, expected) in cases {
            assert_eq!((host, hosts().is_ours(host)), (host, expected));
        }
    }
}
