//! The address of a server.

use crate::Error;
use hyper::Uri;
use std::net::IpAddr;

/// The base URL of a server: scheme, host and port, and a path prefix where a proxy added one. No trailing slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaseAddress(String);

impl BaseAddress {
    /// Parses a URL; without a scheme it is `http`.
    pub(crate) fn parse(url: &str) -> Result<Self, Error> {
        let url = url.trim().trim_end_matches('/');
        let bad =
            |why: &str| Err(Error::Unusable(format!("{url} cannot be a server's URL: {why}")));
        let whole = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let Ok(uri) = whole.parse::<Uri>() else {
            return bad("it looks like http://127.0.0.1:4788");
        };
        match (uri.scheme_str(), uri.authority(), uri.query()) {
            (Some("https"), _, _) => bad("only http is spoken so far"),
            (Some("http"), Some(authority), None) if !authority.as_str().contains('@') => {
                Ok(Self(whole))
            }
            _ => bad("it looks like http://127.0.0.1:4788"),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_loopback(&self) -> bool {
        let Ok(uri) = self.0.parse::<Uri>() else { return false };
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Host and port in lowercase, without the default port of `http`.
    pub(crate) fn authority(&self) -> Option<String> {
        let uri = self.0.parse::<Uri>().ok()?;
        let authority = uri.authority()?.as_str().to_ascii_lowercase();
        Some(authority.strip_suffix(":80").map_or(authority.clone(), str::to_owned))
    }

    /// The value of the `Host` header.
    pub(crate) fn host_header(&self) -> String {
        let uri = self.0.parse::<Uri>().ok();
        uri.and_then(|uri| uri.authority().map(ToString::to_string)).unwrap_or_default()
    }

    /// The path on the server with the prefix that a proxy added; `path` begins with a slash.
    pub(crate) fn path(&self, path: &str) -> String {
        let prefix =
            self.0.parse::<Uri>().ok().map(|uri| uri.path().trim_end_matches('/').to_owned());
        format!("{}{path}", prefix.unwrap_or_default())
    }

    /// The URI of `path` on the server; `path` begins with a slash.
    pub(crate) fn join_path(&self, path: &str) -> Result<Uri, Error> {
        let bad = |error| Error::Unusable(format!("{}{path} is no URL: {error}", self.0));
        format!("{}{path}", self.0).parse().map_err(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn good(url: &str, expected: &str) {
        let uri = BaseAddress::parse(url).and_then(|address| address.join_path("/api"));
        assert_eq!(uri.map(|uri| uri.to_string()), Ok(expected.to_owned()));
    }

    #[test]
    fn a_url_may_lack_its_scheme_and_have_a_prefix() {
        good("http://127.0.0.1:4788", "http://127.0.0.1:4788/api");
        good(" localhost:4788/ ", "http://localhost:4788/api");
        good("http://[::1]:80/airlock/", "http://[::1]:80/airlock/api");
    }

    #[test]
    fn a_challenge_goes_to_the_place_that_requests_go_to() {
        let seen = |url: &str| {
            let address = BaseAddress::parse(url).unwrap();
            (address.authority().unwrap(), address.host_header(), address.path("/api/prove"))
        };
        let all =
            |authority: &str, host: &str, path: &str| (authority.into(), host.into(), path.into());
        assert_eq!(seen("http://Box:80/x/"), all("box", "Box:80", "/x/api/prove"));
        assert_eq!(seen("[::1]:8080"), all("[::1]:8080", "[::1]:8080", "/api/prove"));
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let is_loopback = |url: &str| BaseAddress::parse(url).unwrap().is_loopback();
        assert!(["localhost:1", "127.9.9.9", "http://[::1]:80/x"].into_iter().all(is_loopback));
        let others = ["localhost.example.org", "10.0.0.1:80", "127.0.0.1.example.org", "[::2]"];
        assert!(!others.into_iter().any(is_loopback));
    }

    #[test]
    fn what_is_no_url_is_refused_with_an_example() {
        let cases = [
            ("https://x", "https://x cannot be a server's URL: only http is spoken so far"),
            ("", " cannot be a server's URL: it looks like http://127.0.0.1:4788"),
            ("ftp://x", "ftp://x cannot be a server's URL: it looks like http://127.0.0.1:4788"),
            (
                "http://a@b",
                "http://a@b cannot be a server's URL: it looks like http://127.0.0.1:4788",
            ),
            ("a b", "a b cannot be a server's URL: it looks like http://127.0.0.1:4788"),
        ];
        for (url, why) in cases {
            assert_eq!(BaseAddress::parse(url), Err(Error::Unusable(why.into())));
        }
    }
}
