//! Which networks a request may enter. A description or a redirect that comes from the internet must not
//! send us to machines that only we can reach.

use super::address::is_global;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use url::{Host, Url};

/// Which networks a request may enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestReach {
    /// Also private networks: the operator configured the address.
    Anywhere,
    /// The internet only: the address comes from a public source.
    Public,
}

impl RequestReach {
    /// The reach of an address that was named by a document at `url`.
    pub fn granted_to(url: &Url) -> Self {
        if is_private(url) { Self::Anywhere } else { Self::Public }
    }

    /// The same, limited to the reach of a document at `url`.
    #[must_use]
    pub fn within(self, url: &Url) -> Self {
        match self {
            Self::Public => Self::Public,
            Self::Anywhere => Self::granted_to(url),
        }
    }
}

/// Whether a URL names a private machine. Names are judged by their form: the addresses that they resolve to are
/// judged by the connector before it connects.
pub(crate) fn is_private(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => !is_global(ip.into()),
        Some(Host::Ipv6(ip)) => !is_global(ip.into()),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            let ends = [".localhost", ".local", ".internal", ".lan", ".home.arpa"];
            !name.contains('.') || ends.iter().any(|end| name.ends_with(end))
        }
        None => true,
    }
}

/// Resolves names, and decides which addresses are public.
pub trait NameResolver: Debug + Send + Sync {
    /// Every address of a name.
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

    /// Whether an address is on the internet.
    fn is_public(&self, ip: IpAddr) -> bool;
}

/// The resolver of the operating system.
#[derive(Debug)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) }.boxed()
    }

    fn is_public(&self, ip: IpAddr) -> bool {
        is_global(ip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ours_is_told_from_the_internet() {
        let ours = [
            "http://localhost:3000",
            "http://a.localhost",
            "http://127.0.0.1",
            "http://10.1.2.3",
            "http://192.168.0.1",
            "http://172.16.9.9",
            "http://169.254.169.254",
            "http://[::1]:80",
            "http://[fd00::1]",
            "http://[fe80::1]",
            "http://[::ffff:127.0.0.1]",
            "http://100.64.0.1",
            "http://[64:ff9b::7f00:1]",
            "http://[2002:7f00:1::]",
            "http://[::7f00:1]",
            "http://0.0.0.0",
            "http://0x7f.1",
            "http://2130706433",
            "http://db",
            "http://metadata.google.internal",
            "http://printer.local.",
        ];
        for url in ours {
            assert!(is_private(&url.parse().unwrap()), "{url}");
        }
        for url in ["https://api.example.com", "http://8.8.8.8", "http://[2606:4700::1111]"] {
            assert!(!is_private(&url.parse().unwrap()), "{url}");
        }
    }

    #[test]
    fn words_carry_no_further_than_each_of_those_who_pass_them_on() {
        let (ours, public) =
            ("http://127.0.0.1".parse().unwrap(), "https://a.example".parse().unwrap());
        assert_eq!(RequestReach::granted_to(&ours).within(&ours), RequestReach::Anywhere);
        assert_eq!(RequestReach::granted_to(&ours).within(&public), RequestReach::Public);
        assert_eq!(RequestReach::granted_to(&public).within(&ours), RequestReach::Public);
    }
}
