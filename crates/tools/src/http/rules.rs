//! Which addresses the requests of a server may reach: the rule of [`is_refused`], the server's own listeners, and the
//! exceptions and the proxy that its operator configured.

use super::address::{effective, is_refused};
use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};
use url::Url;

/// Exceptions that an operator may configure.
pub const ALLOWED_MAX: usize = 100;

/// Which addresses may be reached. Clones share the rules, so a change counts for every client that has them.
#[derive(Debug, Clone, Default)]
pub struct AddressRules(Arc<RwLock<RuleSet>>);

#[derive(Debug, Default)]
struct RuleSet {
    allowed: Vec<AllowedAddress>,
    listeners: Vec<SocketAddr>,
    proxy: Option<ProxyAddress>,
}

/// An exception: an address or a network, and one port or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedAddress {
    network: IpNetwork,
    port: Option<u16>,
}

/// An address, or all that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpNetwork {
    first: IpAddr,
    prefix_bits: u32,
}

/// An HTTP proxy that connects to other machines for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// An address that no request may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedAddress {
    /// Link-local, or a metadata service.
    #[error(
        "{0} is a link-local or metadata address, which Airlock never connects to unless [network] allow names it"
    )]
    Reserved(IpAddr),
    /// One of our own listeners.
    #[error("{0} is where Airlock itself listens, and it never connects to itself")]
    OwnListener(SocketAddr),
}

impl AddressRules {
    /// Replaces the exceptions and the proxy.
    pub fn configure(&self, allowed: Vec<AllowedAddress>, proxy: Option<ProxyAddress>) {
        let mut rules = self.0.write().unwrap_or_else(PoisonError::into_inner);
        (rules.allowed, rules.proxy) = (allowed, proxy);
    }

    /// Adds an address at which this process listens.
    pub fn add_listener(&self, listener: SocketAddr) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).listeners.push(listener);
    }

    /// Whether a connection may be made. `to` is an address that was resolved, and not yet connected to.
    pub fn check_address(&self, to: SocketAddr) -> Result<(), RefusedAddress> {
        let rules = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if rules.allowed.iter().any(|allowed| allowed.covers(to)) {
            return Ok(());
        }
        if is_refused(to.ip()) {
            return Err(RefusedAddress::Reserved(to.ip()));
        }
        match rules.listeners.iter().any(|listener| reaches(to, *listener)) {
            true => Err(RefusedAddress::OwnListener(to)),
            false => Ok(()),
        }
    }

    /// The proxy for addresses on the internet, if one is configured.
    pub(super) fn proxy(&self) -> Option<ProxyAddress> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).proxy.clone()
    }
}

/// Whether a connection to `to` arrives at a listener of this machine.
fn reaches(to: SocketAddr, listener: SocketAddr) -> bool {
    if to.port() != listener.port() {
        return false;
    }
    let (to, listens) = (effective(to.ip()), effective(listener.ip()));
    // The system treats a connection to the unspecified address as one to this machine.
    let is_this_machine = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified() || is_local(ip);
    match listens.is_unspecified() {
        true => is_this_machine(to),
        false => to == listens || (to.is_unspecified() && is_this_machine(listens)),
    }
}

/// Whether an address belongs to this machine: only those can be bound.
fn is_local(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

impl AllowedAddress {
    fn covers(&self, to: SocketAddr) -> bool {
        self.network.contains(to.ip()) && self.port.is_none_or(|port| port == to.port())
    }
}

impl IpNetwork {
    /// Whether the network contains an address. An address that embeds an IPv4 address is also in the networks of that one.
    pub fn contains(self, ip: IpAddr) -> bool {
        let ip = if self.first.is_ipv4() { effective(ip) } else { ip };
        let (a, b, width) = match (self.first, ip) {
            (IpAddr::V4(first), IpAddr::V4(ip)) => {
                (first.to_bits().into(), ip.to_bits().into(), 32)
            }
            (IpAddr::V6(first), IpAddr::V6(ip)) => (first.to_bits(), ip.to_bits(), 128),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
        };
        let differing: u128 = a ^ b;
        self.prefix_bits == 0 || differing >> (width - self.prefix_bits) == 0
    }
}

impl From<IpAddr> for IpNetwork {
    fn from(first: IpAddr) -> Self {
        let prefix_bits = match first {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        Self { first, prefix_bits }
    }
}

/// `IP` or `IP/BITS`.
impl FromStr for IpNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("{text:?} is no address; write one as 192.0.2.7, 10.0.0.0/8 or fd00::/8");
        let (first, bits) = match text.split_once('/') {
            Some((first, bits)) => (first, Some(bits)),
            None => (text, None),
        };
        let whole = Self::from(first.parse::<IpAddr>().map_err(|_| bad())?);
        let Some(bits) = bits else { return Ok(whole) };
        let prefix_bits = bits.parse().ok().filter(|bits| *bits <= whole.prefix_bits);
        Ok(Self { prefix_bits: prefix_bits.ok_or_else(bad)?, ..whole })
    }
}

/// `IP`, `IP/BITS`, `IP:PORT` or `[IP]:PORT`.
impl FromStr for AllowedAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<SocketAddr>() {
            Ok(at) => Ok(Self { network: at.ip().into(), port: Some(at.port()) }),
            Err(_) => Ok(Self { network: text.parse()?, port: None }),
        }
    }
}

impl FromStr for ProxyAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no proxy; write one as http://proxy.example:3128");
        let url = Url::parse(text).map_err(|_| bad())?;
        let is_plain = url.scheme() == "http"
            && url.username().is_empty()
            && url.password().is_none()
            && matches!(url.path(), "" | "/")
            && url.query().is_none();
        let host = url.host_str().filter(|_| is_plain).ok_or_else(bad)?;
        let port = url.port_or_known_default().ok_or_else(bad)?;
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(rules: &AddressRules, to: &str) -> bool {
        rules.check_address(to.parse().unwrap()).is_ok()
    }

    #[test]
    fn exceptions_are_addresses_networks_and_single_ports() {
        let rules = AddressRules::default();
        let allowed = ["169.254.169.254:80", "100.100.100.200", "fd00:ec2::/32"];
        rules.configure(allowed.map(|text| text.parse().unwrap()).into(), None);
        for (to, expected) in [
            ("169.254.169.254:80", true),
            ("[::ffff:169.254.169.254]:80", true),
            ("169.254.169.254:81", false),
            ("169.254.169.253:80", false),
            ("100.100.100.200:1", true),
            ("[fd00:ec2::254]:443", true),
            ("[fe80::1]:443", false),
            ("8.8.8.8:443", true),
        ] {
            assert_eq!((to, is_allowed(&rules, to)), (to, expected));
        }
        rules.configure(vec![], None);
        assert!(!is_allowed(&rules, "169.254.169.254:80"));
        for bad in ["", "metadata", "10.0.0.0/33", "::/129", "10.0.0.0/x", "1.2.3.4:x", "*"] {
            assert!(bad.parse::<AllowedAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn own_listeners_are_refused_by_every_address_that_leads_to_them() {
        let rules = AddressRules::default();
        rules.add_listener("127.0.0.1:4788".parse().unwrap());
        for (to, expected) in [
            ("127.0.0.1:4788", false),
            ("0.0.0.0:4788", false),
            ("[::]:4788", false),
            ("[::ffff:127.0.0.1]:4788", false),
            ("[64:ff9b::127.0.0.1]:4788", false),
            ("[2002:7f00:1::]:4788", false),
            ("[::127.0.0.1]:4788", false),
            ("127.0.0.1:4789", true),
            ("127.0.0.2:4788", true),
            ("8.8.8.8:4788", true),
        ] {
            assert_eq!((to, is_allowed(&rules, to)), (to, expected));
        }
        let everywhere = AddressRules::default();
        everywhere.add_listener("0.0.0.0:4788".parse().unwrap());
        for (to, expected) in [
            ("127.0.0.1:4788", false),
            ("127.9.9.9:4788", false),
            ("[::1]:4788", false),
            ("0.0.0.0:4788", false),
            ("8.8.8.8:4788", true),
            ("127.0.0.1:80", true),
        ] {
            assert_eq!((to, is_allowed(&everywhere, to)), (to, expected));
        }
        everywhere.configure(vec!["127.0.0.1:4788".parse().unwrap()], None);
        assert!(is_allowed(&everywhere, "127.0.0.1:4788"));
    }

    #[test]
    fn a_proxy_is_a_host_and_a_port_and_nothing_else() {
        let proxy: ProxyAddress = "http://proxy.example:3128".parse().unwrap();
        assert_eq!(proxy.to_string(), "proxy.example:3128");
        let others =
            ["", "proxy.example", "https://p:1", "socks5://p:1", "http://a:b@p", "http://p/x"];
        for bad in others {
            assert!(bad.parse::<ProxyAddress>().is_err(), "{bad}");
        }
    }
}
