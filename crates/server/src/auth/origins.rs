//! Origins: which pages may call this server, and the one origin of its own pages.
//!
//! A page of another origin can make a browser send requests here, and a WebSocket from such a page can even read the
//! answers. `Origin` names the page's origin. Ports count: any program on the machine can serve pages on a loopback
//! port.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Scheme, host and port of a page, as browsers send them in the header `Origin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin(String);

/// The text is not an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an origin is scheme://host or scheme://host:port, such as http://localhost:5173, without a path"
)]
pub struct BadOrigin;

impl WebOrigin {
    /// The origin as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Host and port, or the host alone if the port is the default of its scheme.
    pub fn authority(&self) -> &str {
        self.0.split_once("://").map_or("", |(_, authority)| authority)
    }

    /// The host without its port.
    pub fn host(&self) -> &str {
        split_port(self.authority()).map_or("", |(host, _)| host)
    }

    /// The port, which defaults to that of `http` or `https`.
    fn port(&self) -> Option<u16> {
        let (_, port) = split_port(self.authority())?;
        port.or(if self.0.starts_with("http://") {
            Some(80)
        } else if self.0.starts_with("https://") {
            Some(443)
        } else {
            None
        })
    }

    fn is_loopback(&self) -> bool {
        is_loopback_name(self.host())
    }
}

impl FromStr for WebOrigin {
    type Err = BadOrigin;

    /// Converts to lowercase and removes a default port, so that equal origins have equal texts.
    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        let text = text.to_ascii_lowercase();
        let (scheme, authority) = text.split_once("://").ok_or(BadOrigin)?;
        let is_scheme_char = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        let is_host_char = |c: char| c.is_ascii_alphanumeric() || "-._[]:".contains(c);
        let is_good = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(is_scheme_char)
            && authority.chars().all(is_host_char)
            && scheme != "file";
        let (host, port) = split_port(authority).filter(|_| is_good).ok_or(BadOrigin)?;
        let is_default = matches!((scheme, port), ("http", Some(80)) | ("https", Some(443)));
        Ok(Self(match port {
            Some(port) if !is_default => format!("{scheme}://{host}:{port}"),
            Some(_) | None => format!("{scheme}://{host}"),
        }))
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which pages may call, and the origin of this server's pages.
#[derive(Debug, Clone)]
pub(crate) struct OriginRules {
    public: Option<WebOrigin>,
    named: Vec<WebOrigin>,
    /// Names of `--allowed-host`, whose pages may call as long as no origin is configured.
    host_names: Vec<String>,
    canonical: WebOrigin,
    listen: SocketAddr,
}

impl OriginRules {
    pub(crate) fn new(
        listen: SocketAddr,
        public: Option<&WebOrigin>,
        named: &[WebOrigin],
        allowed_hosts: &[String],
    ) -> Self {
        let is_public = |name: &str| public.is_some_and(|public| public.host() == name);
        let host_names = allowed_hosts
            .iter()
            .map(|name| name.to_ascii_lowercase())
            // The public URL defines the scheme and port for that name.
            .filter(|name| named.is_empty() && !is_public(name))
            .collect();
        let canonical = public.cloned().unwrap_or_else(|| listening_origin(listen));
        Self { public: public.cloned(), named: named.to_vec(), host_names, canonical, listen }
    }

    /// Whether a page of `origin` may send a request with this `Host`, which was checked before.
    pub(crate) fn may_call(&self, origin: &str, host: &str) -> bool {
        let Ok(origin) = origin.parse::<WebOrigin>() else { return false };
        let is_this_origin = match &self.public {
            Some(public) => origin == *public,
            None => format!("http://{host}").parse() == Ok(origin.clone()),
        };
        is_this_origin || self.named.contains(&origin) || self.is_of_allowed_host(&origin)
    }

    /// The origin under which people find this server's pages: links to them begin with it.
    pub(crate) const fn canonical(&self) -> &WebOrigin {
        &self.canonical
    }

    /// The origin of the public URL, if there is one.
    pub(crate) const fn public(&self) -> Option<&WebOrigin> {
        self.public.as_ref()
    }

    /// The URL to which a page requested under this `Host` is redirected: a sign-in is valid for one origin, and
    /// `localhost`, `127.0.0.1` and `[::1]` are three.
    ///
    /// Only between loopback names, and only if the ports agree: behind a proxy or a tunnel, the canonical origin
    /// would lead back to the proxy or to nothing.
    pub(crate) fn page_redirect(&self, host: &str) -> Option<&WebOrigin> {
        let asked: WebOrigin = format!("http://{host}").parse().ok()?;
        let is_direct = self.canonical.0.starts_with("http://")
            && self.canonical.is_loopback()
            && self.canonical.port() == Some(self.listen.port());
        let is_other_name = asked.is_loopback()
            && asked.port() == self.canonical.port()
            && asked.host() != self.canonical.host();
        (is_direct && is_other_name).then_some(&self.canonical)
    }

    fn is_of_allowed_host(&self, origin: &WebOrigin) -> bool {
        let is_web = origin.0.starts_with("http://") || origin.0.starts_with("https://");
        is_web && self.host_names.iter().any(|name| name == origin.authority())
    }
}

/// The default origin of a server: its own address, or this machine's if it listens on all addresses.
fn listening_origin(listen: SocketAddr) -> WebOrigin {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    let text = format!("http://{}", SocketAddr::new(ip, listen.port()));
    text.parse().expect("an address of digits is an origin")
}

fn is_loopback_name(host: &str) -> bool {
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// Splits `host[:port]`; none if the text has another form.
pub(super) fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let end = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(end);
    let is_plain = host.starts_with('[') || !host.contains(['[', ']']);
    let port = match rest.strip_prefix(':') {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(port.parse::<u16>().ok()?)
        }
        Some(_) => return None,
        None if rest.is_empty() => None,
        None => return None,
    };
    (is_plain && !host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> WebOrigin {
        text.parse().unwrap()
    }

    fn rules(public: Option<&str>, named: &[&str], hosts: &[&str]) -> OriginRules {
        let named: Vec<_> = named.iter().map(|text| origin(text)).collect();
        let hosts: Vec<_> = hosts.iter().map(|name| (*name).to_owned()).collect();
        let listen = "127.0.0.1:4788".parse().unwrap();
        OriginRules::new(listen, public.map(origin).as_ref(), &named, &hosts)
    }

    #[track_caller]
    fn check(rules: &OriginRules, cases: &[(&str, &str, bool)]) {
        for (page, host, expected) in cases {
            assert_eq!((page, host, rules.may_call(page, host)), (page, host, *expected));
        }
    }

    #[test]
    fn only_this_origin_may_call_where_nothing_is_named() {
        check(
            &rules(None, &[], &[]),
            &[
                ("http://localhost:4788", "localhost:4788", true),
                ("http://LOCALHOST:4788", "localhost:4788", true),
                ("http://127.0.0.1:4788", "127.0.0.1:4788", true),
                ("http://[::1]:4788", "[::1]:4788", true),
                ("http://localhost", "localhost:80", true),
                // A tunnel: the browser uses another port than the one on which this server listens.
                ("http://localhost:9999", "localhost:9999", true),
                // Another program on this machine.
                ("http://localhost:3000", "localhost:4788", false),
                ("http://127.0.0.1:5173", "127.0.0.1:4788", false),
                ("http://127.0.0.1:4788", "localhost:4788", false),
                ("http://localhost", "localhost:4788", false),
                ("https://localhost:4788", "localhost:4788", false),
                ("https://evil.example", "localhost:4788", false),
                ("http://localhost:4788.evil.example", "localhost:4788", false),
                ("http://localhost:4788/path", "localhost:4788", false),
                ("http://user@localhost:4788", "localhost:4788", false),
                ("file://localhost:4788", "localhost:4788", false),
                ("null", "localhost:4788", false),
                ("http://", "localhost:4788", false),
                ("", "localhost:4788", false),
            ],
        );
    }

    #[test]
    fn with_a_public_url_its_origin_is_ours_and_no_other() {
        let rules = rules(Some("https://box.example:443"), &[], &["box.example"]);
        check(
            &rules,
            &[
                ("https://box.example", "box.example", true),
                // A proxy that rewrites Host.
                ("https://box.example", "127.0.0.1:4788", true),
                ("http://box.example", "box.example", false),
                ("https://box.example:8443", "box.example:8443", false),
                // A page on the visitor's own machine, through such a proxy.
                ("http://127.0.0.1:4788", "127.0.0.1:4788", false),
            ],
        );
        assert_eq!(rules.canonical().as_str(), "https://box.example");
    }

    #[test]
    fn allowed_hosts_have_origins_without_a_port_until_origins_are_named() {
        let before = [
            ("https://box.example", "box.example", true),
            ("http://box.example", "127.0.0.1:4788", true),
            ("https://box.example:8443", "box.example", false),
            ("ftp://box.example", "box.example", false),
            ("http://localhost:5173", "localhost:4788", false),
        ];
        check(&rules(None, &[], &["Box.example"]), &before);
        let after = [
            ("https://box.example", "box.example", false),
            ("http://localhost:5173", "localhost:4788", true),
            ("http://localhost:5174", "localhost:4788", false),
            ("chrome-extension://abc", "localhost:4788", true),
            ("http://localhost:4788", "localhost:4788", true),
        ];
        let named = ["http://localhost:5173", "chrome-extension://abc"];
        check(&rules(None, &named, &["Box.example"]), &after);
    }

    #[test]
    fn loopback_names_lead_to_one_origin_where_there_is_no_proxy() {
        let to =
            |rules: &OriginRules, host: &str| rules.page_redirect(host).map(WebOrigin::to_string);
        let plain = rules(None, &[], &["box.example"]);
        let here = Some("http://127.0.0.1:4788".to_owned());
        assert_eq!(to(&plain, "localhost:4788"), here);
        assert_eq!(to(&plain, "[::1]:4788"), here);
        for host in ["127.0.0.1:4788", "localhost:9999", "localhost", "box.example:4788"] {
            assert_eq!(to(&plain, host), None, "{host}");
        }
        let local = rules(Some("http://localhost:4788"), &[], &[]);
        assert_eq!(to(&local, "127.0.0.1:4788"), Some("http://localhost:4788".into()));
        for public in ["https://box.example", "http://localhost:8080", "https://localhost:4788"] {
            assert_eq!(to(&rules(Some(public), &[], &[]), "127.0.0.1:4788"), None, "{public}");
        }
    }

    #[test]
    fn an_origin_has_one_text() {
        let cases = [
            ("HTTP://Localhost:80", Some("http://localhost")),
            ("https://a.example:443", Some("https://a.example")),
            ("https://a.example:80", Some("https://a.example:80")),
            ("http://[::1]:5173", Some("http://[::1]:5173")),
            ("http://localhost/", None),
            ("http://*.example", None),
            ("*", None),
            ("null", None),
            ("localhost:5173", None),
            ("http://localhost:99999", None),
            ("http://localhost:", None),
            ("http://a b", None),
            ("http://a:1:2", None),
            ("http://::1", None),
            ("http://[::1", None),
        ];
        for (text, expected) in cases {
            let read = text.parse::<WebOrigin>().ok();
            assert_eq!((text, read.as_ref().map(WebOrigin::as_str)), (text, expected));
        }
    }

    #[test]
    fn a_server_on_all_addresses_is_found_on_this_machine() {
        let canonical = |listen: &str| {
            OriginRules::new(listen.parse().unwrap(), None, &[], &[]).canonical().to_string()
        };
        assert_eq!(canonical("0.0.0.0:1"), "http://127.0.0.1:1");
        assert_eq!(canonical("[::]:1"), "http://[::1]:1");
        assert_eq!(canonical("192.168.1.5:4788"), "http://192.168.1.5:4788");
    }
}
