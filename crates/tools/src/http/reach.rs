//! Which networks a request may enter. A description or a redirect that comes from the internet must not
//! send us to machines that only we can reach.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use url::{Host, Url};

/// Which networks a request may enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Also our own: whoever configured the source named the address.
    Anywhere,
    /// The internet only: somebody out there named the address.
    Public,
}

impl Reach {
    /// How far the words of whoever speaks from `url` carry.
    pub fn granted_to(url: &Url) -> Self {
        if is_private(url) { Self::Anywhere } else { Self::Public }
    }

    /// The same, and no further than the words of whoever speaks from `url` carry.
    #[must_use]
    pub fn within(self, url: &Url) -> Self {
        match self {
            Self::Public => Self::Public,
            Self::Anywhere => Self::granted_to(url),
        }
    }
}

/// Whether a URL names a machine of ours. Names are judged by their look: what they resolve to is
/// judged by [`Names`] when it matters.
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

/// What names lead to, and which addresses are everybody's.
pub trait Network: Debug + Send + Sync {
    /// Every address of a name.
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

    /// Whether an address is on the internet.
    fn is_public(&self, ip: IpAddr) -> bool;
}

/// The one that this machine is on.
#[derive(Debug)]
pub struct Internet;

impl Network for Internet {
    fn resolve(&self, name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) }.boxed()
    }

    fn is_public(&self, ip: IpAddr) -> bool {
        is_global(ip)
    }
}

/// Resolves names for one connection each: the addresses that were judged are those that are connected to.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) network: Arc<dyn Network>,
    pub(super) reach: Reach,
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let (network, reach) = (Arc::clone(&self.network), self.reach);
        Box::pin(async move {
            let mut found = network.resolve(name.as_str().to_owned()).await?;
            if reach == Reach::Public {
                found.retain(|at| network.is_public(at.ip()));
                if found.is_empty() {
                    return Err("its name leads into a private network".into());
                }
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn is_global(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_global_v4(ip),
        IpAddr::V6(ip) => match embedded_v4(ip) {
            Some(ip) => is_global_v4(ip),
            None => {
                let first = ip.segments()[0];
                let is_unique_local = first & 0xfe00 == 0xfc00;
                let is_link_local = first & 0xffc0 == 0xfe80;
                !(ip.is_loopback()
                    || ip.is_unspecified()
                    || ip.is_multicast()
                    || is_unique_local
                    || is_link_local)
            }
        },
    }
}

fn is_global_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_protocol = (a, b, c) == (192, 0, 0);
    let is_benchmark = a == 198 && (b == 18 || b == 19);
    !(a == 0
        || a >= 224
        || ip.is_loopback()
        || ip.is_private()
        || ip.is_link_local()
        || is_shared
        || is_protocol
        || is_benchmark)
}

/// The IPv4 address that an IPv6 address stands for: mapped, NAT64 or 6to4.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let [first, second, third, .., seventh, eighth] = ip.segments();
    let pair = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match (first, second) {
        (0x64, 0xff9b) => Some(pair(seventh, eighth)),
        (0x2002, _) => Some(pair(second, third)),
        _ => ip.to_ipv4_mapped(),
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

    #[tokio::test]
    async fn a_name_that_leads_inside_has_no_address() {
        let names = |reach| Names { network: Arc::new(Internet), reach };
        let refused =
            names(Reach::Public).resolve("localhost".parse().unwrap()).await.err().unwrap();
        assert_eq!(refused.to_string(), "its name leads into a private network");
        assert!(names(Reach::Anywhere).resolve("localhost".parse().unwrap()).await.is_ok());
    }

    #[test]
    fn words_carry_no_further_than_each_of_those_who_pass_them_on() {
        let (ours, public) =
            ("http://127.0.0.1".parse().unwrap(), "https://a.example".parse().unwrap());
        assert_eq!(Reach::granted_to(&ours).within(&ours), Reach::Anywhere);
        assert_eq!(Reach::granted_to(&ours).within(&public), Reach::Public);
        assert_eq!(Reach::granted_to(&public).within(&ours), Reach::Public);
    }
}
