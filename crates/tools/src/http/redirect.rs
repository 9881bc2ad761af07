//! Where a redirect leads, and whether it is followed.

use super::{ApiRequest, HttpError, RequestReach};
use hyper::header::{ACCEPT, HeaderMap, LOCATION, USER_AGENT};
use hyper::{Method, StatusCode};
use url::Url;

/// Which parts of the original request go into the next one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RedirectParts {
    /// Everything, the credential too: same origin.
    All,
    /// Method and address only: another origin.
    Question,
}

/// The next request, if the answer is a redirect. `is_inside` is true if the answer came from a private network: names
/// are judged by their form, and this one may look public.
pub(super) fn follow_redirects(
    sent: &ApiRequest,
    is_inside: bool,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<(ApiRequest, RedirectParts)>, HttpError> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = headers.get(LOCATION).and_then(|value| value.to_str().ok()) else {
        return Ok(None);
    };
    let refused = |why: &str| HttpError::Redirect { host: host(&sent.url), why: why.into() };
    let to = sent.url.join(location).map_err(|_| refused("to something that is not a URL"))?;
    if !matches!(to.scheme(), "http" | "https") {
        return Err(refused("to something that is not a web address"));
    }
    if sent.url.scheme() == "https" && to.scheme() == "http" {
        return Err(refused("from https to http"));
    }
    let mut next = ApiRequest { url: to, ..sent.clone() };
    become_get(&mut next, status);
    if next.url.origin() == sent.url.origin() {
        return Ok(Some((next, RedirectParts::All)));
    }
    // A private machine can be made to redirect: it must not send us to another machine, nor leak what it knows.
    if is_inside || RequestReach::granted_to(&sent.url) == RequestReach::Anywhere {
        return Err(refused(
            "to another origin, and a private source is followed within its own only",
        ));
    }
    if !is_safe(&next.method) {
        return Err(refused("a request that changes something to another origin"));
    }
    // A redirect from the internet may not lead into networks that its server could not reach itself.
    next.reach = RequestReach::Public;
    next.headers.retain_only_harmless();
    Ok(Some((next, RedirectParts::Question)))
}

/// As browsers do: 303 asks for the result, 301 and 302 after a POST too.
fn become_get(next: &mut ApiRequest, status: StatusCode) {
    let is_post = next.method == Method::POST;
    let becomes_get = match status.as_u16() {
        303 => !is_safe(&next.method),
        301 | 302 => is_post,
        _ => false,
    };
    if becomes_get {
        next.method = Method::GET;
        next.body = vec![].into();
        next.headers.remove(hyper::header::CONTENT_TYPE);
    }
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

trait SafeMethod {
    fn retain_only_harmless(&mut self);
}

impl SafeMethod for HeaderMap {
    /// Any other header may contain a credential.
    fn retain_only_harmless(&mut self) {
        let kept = [ACCEPT, USER_AGENT].map(|name| (self.remove(&name), name));
        self.clear();
        for (value, name) in kept {
            self.extend(value.map(|value| (name, value)));
        }
    }
}

/// Host and port, for messages.
pub(super) fn host(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => "nobody".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(method: Method, url: &str) -> ApiRequest {
        let mut sent = ApiRequest::new(method, url.parse().unwrap());
        sent.headers.insert("x-key", "k".parse().unwrap());
        sent.headers.insert(ACCEPT, "a/b".parse().unwrap());
        sent.body = b"body".to_vec().into();
        sent
    }

    fn next(method: Method, from: &str, status: u16, to: &str) -> String {
        next_of(false, (method, from), status, to)
    }

    fn next_of(is_inside: bool, (method, from): (Method, &str), status: u16, to: &str) -> String {
        let headers = HeaderMap::from_iter([(LOCATION, to.parse().unwrap())]);
        let status = StatusCode::from_u16(status).unwrap();
        match follow_redirects(&sent(method, from), is_inside, status, &headers) {
            Ok(None) => "no redirect".into(),
            Ok(Some((next, kept))) => format!(
                "{} {} {kept:?} {:?} key={} body={}",
                next.method,
                next.url,
                next.reach,
                next.headers.contains_key("x-key"),
                next.body.len()
            ),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn the_same_origin_keeps_everything() {
        let same = next(Method::GET, "https://a.com/x?q=1", 302, "/y");
        assert_eq!(same, "GET https://a.com/y All Anywhere key=true body=4");
        let put = next(Method::PUT, "https://a.com/x", 307, "y");
        assert_eq!(put, "PUT https://a.com/y All Anywhere key=true body=4");
        let post = next(Method::POST, "https://a.com/x", 303, "y");
        assert_eq!(post, "GET https://a.com/y All Anywhere key=true body=0");
    }

    #[test]
    fn another_origin_gets_the_bare_question_and_no_way_inside() {
        let other = next(Method::GET, "https://a.com/x", 301, "https://b.com/");
        assert_eq!(other, "GET https://b.com/ Question Public key=false body=4");
    }

    #[test]
    fn a_private_source_is_followed_within_its_own_origin_only() {
        let refused =
            "redirects to another origin, and a private source is followed within its own only";
        for (from, to) in [
            ("http://127.0.0.1:1/x", "http://127.0.0.1:2/"),
            ("http://127.0.0.1:1/x", "http://localhost:1/"),
            ("http://10.0.0.1/x", "http://169.254.169.254/"),
            ("http://10.0.0.1/x", "https://a.com/"),
            ("http://wiki/x", "https://wiki/"),
        ] {
            let shown = next(Method::GET, from, 302, to);
            assert!(shown.ends_with(refused), "{from} {to} {shown}");
        }
        let same = next(Method::GET, "http://127.0.0.1:1/x", 302, "http://127.0.0.1:1/y");
        assert_eq!(same, "GET http://127.0.0.1:1/y All Anywhere key=true body=4");
        // A name that looks public and leads to a machine of ours.
        let inside = |to| next_of(true, (Method::GET, "https://a.com/x"), 302, to);
        assert_eq!(inside("https://b.com/"), format!("a.com {refused}"));
        assert_eq!(inside("/y"), "GET https://a.com/y All Anywhere key=true body=4");
    }

    #[test]
    fn some_redirects_are_not_followed() {
        let cases = [
            (Method::GET, 302, "http://a.com/", "a.com redirects from https to http"),
            (
                Method::GET,
                302,
                "file:///etc/passwd",
                "a.com redirects to something that is not a web address",
            ),
            (
                Method::DELETE,
                307,
                "https://b.com/",
                "a.com redirects a request that changes something to another origin",
            ),
            (
                Method::POST,
                308,
                "https://b.com/",
                "a.com redirects a request that changes something to another origin",
            ),
            (Method::GET, 304, "/y", "no redirect"),
        ];
        for (method, status, to, expected) in cases {
            assert_eq!(next(method, "https://a.com/x", status, to), expected);
        }
    }
}
