//! Which names this server answers to, and whose pages may talk to it.
//!
//! A page elsewhere can make a browser send requests here, and a name elsewhere can be made to point
//! here (DNS rebinding): the first is told by `Origin`, the second by `Host`.

use std::net::{IpAddr, SocketAddr};

/// The names that are ours.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    listen: IpAddr,
    allowed: Vec<String>,
}

impl Hosts {
    pub(crate) fn new(listen: SocketAddr, allowed: &[String]) -> Self {
        let allowed = allowed.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { listen: listen.ip(), allowed }
    }

    /// Whether a `Host` header names us, whatever the port.
    pub(crate) fn is_ours(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else { return false };
        // Nearly everybody's.
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

    /// Whether a page from `origin` may talk to us.
    pub(crate) fn may_call(&self, origin: &str) -> bool {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|host| self.is_ours(host))
    }
}

/// The name without its port; none where it is no `name[:port]`.
fn name_of(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']')? + 2;
            (&host[..end], host[end..].strip_prefix(':').or(host[end..].is_empty().then_some("0")))
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, Some("0")),
        },
    };
    let port = port?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_port && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Hosts {
        Hosts::new("192.168.1.5:4788".parse().unwrap(), &["Box.example".into()])
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

    #[test]
    fn a_page_from_elsewhere_may_not_call() {
        let cases = [
            ("http://localhost:3000", true),
            ("https://127.0.0.1", true),
            ("http://[::1]:5173", true),
            ("https://box.example", true),
            ("https://evil.example", false),
            ("http://localhost.evil.example", false),
            ("null", false),
            ("file://localhost", false),
            ("http://", false),
            ("http://localhost/path", false),
            ("", false),
        ];
        for (origin, expected) in cases {
            assert_eq!((origin, hosts().may_call(origin)), (origin, expected));
        }
    }
}
