//! A real OpenID Connect server (npm `oidc-provider`), and a browser of a hundred lines that consents to everything.

use crate::npm;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// More pages than this mean a redirect loop.
const PAGES_MAX: usize = 20;

/// A running server. Dropping it ends it.
pub(crate) struct Issuer {
    child: Child,
    pub(crate) port: u16,
    pub(crate) url: String,
}

impl Issuer {
    /// A server whose tokens are for `resource` and expire after this many seconds.
    #[expect(clippy::disallowed_methods, reason = "dropping the server ends this child")]
    pub(crate) fn start(port: u16, seconds: u32, resource: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/issuer/provider.mjs");
        let package = npm::file("oidc-provider/package.json");
        let mut command = Command::new("node");
        command.arg(script).arg(package.parent().unwrap());
        command.args([port.to_string(), seconds.to_string(), resource.to_owned()]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listens = lines.by_ref().flatten().any(|line| line.contains("listening"));
        assert!(listens, "the authorization server did not start");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port, url: format!("http://127.0.0.1:{port}") }
    }

    /// The number of token refreshes.
    pub(crate) fn n_refreshes(&self) -> u64 {
        json(self.port, "/count")["refreshes"].as_u64().unwrap()
    }

    /// Every token and code that it ever issued.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let told = json(self.port, "/secrets");
        told.as_array().unwrap().iter().map(|secret| secret.as_str().unwrap().to_owned()).collect()
    }

    /// Whether the server received a request to this path.
    pub(crate) fn heard(&self, path: &str) -> bool {
        let path: String = path.bytes().map(|byte| format!("%{byte:02X}")).collect();
        json(self.port, &format!("/heard?path={path}"))["heard"] == true
    }

    /// Makes it resolve `name`, which is not on this machine, to `at`.
    pub(crate) fn finds(&self, name: &str, at: &str) {
        json(self.port, &format!("/finds?name={name}&at={at}"));
    }

    /// Revokes every grant.
    pub(crate) fn revoke_all(&self) {
        json(self.port, "/revoke-all");
    }

    /// Forgets its dynamically registered clients, as a restarted server does that holds them in memory.
    pub(crate) fn forget_clients(&self) {
        json(self.port, "/forget-clients");
    }

    /// Sets whether it temporarily issues no tokens.
    pub(crate) fn is_troubled(&self, troubled: bool) {
        json(self.port, if troubled { "/trouble?on=1" } else { "/trouble?on=0" });
    }

    /// Sets whether its person refuses consent from now on.
    pub(crate) fn refuses(&self, refuses: bool) {
        json(self.port, if refuses { "/refuse?on=1" } else { "/refuse?on=0" });
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port on which no server listens.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whether the server at `port` considers a token valid.
pub(crate) fn is_valid(port: u16, token: &str) -> bool {
    json(port, &format!("/valid?token={token}"))["valid"] == true
}

/// The scopes of a token.
pub(crate) fn scopes(port: u16, token: &str) -> Vec<String> {
    let told = json(port, &format!("/valid?token={token}"))["scopes"].clone();
    told.as_str().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn json(port: u16, path: &str) -> Value {
    let page = fetch(&format!("127.0.0.1:{port}"), "GET", path, "", "");
    serde_json::from_str(&page.body).unwrap_or_else(|_| panic!("{path} says {}", page.body))
}

/// A browser with cookies, which follows redirects and submits forms.
#[derive(Default)]
pub(crate) struct Browser {
    cookies: BTreeMap<String, String>,
}

struct Page {
    location: Option<String>,
    cookies: Vec<String>,
    body: String,
}

impl Browser {
    /// Opens an address and consents to everything until it is redirected to `home`. Returns that address, or `None`.
    pub(crate) fn visit(&mut self, url: &str, home: &str) -> Option<String> {
        let (mut url, mut form) = (url.to_owned(), None::<String>);
        for _ in 0..PAGES_MAX {
            if url.starts_with(home) {
                return Some(url);
            }
            let rest = url.strip_prefix("http://").unwrap().split('#').next().unwrap().to_owned();
            let (host, path) = rest.split_once('/').unwrap_or((&rest, ""));
            let cookies: Vec<_> =
                self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let method = if form.is_some() { "POST" } else { "GET" };
            let body = form.take().unwrap_or_default();
            let page = fetch(host, method, &format!("/{path}"), &cookies.join("; "), &body);
            for cookie in &page.cookies {
                let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
            let absolute = |to: &str| match to.starts_with("http") {
                true => to.to_owned(),
                false => format!("http://{host}{to}"),
            };
            match (page.location, filled(&page.body)) {
                (Some(to), _) => url = absolute(&to),
                (None, Some((to, fields))) => (url, form) = (absolute(&to), Some(fields)),
                (None, None) => return None,
            }
        }
        None
    }
}

/// The target and the fields of a page's first form.
fn filled(html: &str) -> Option<(String, String)> {
    let value = |tag: &str, name: &str| {
        let rest = tag.split_once(&format!("{name}=\""))?.1;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let form = html.split_once("<form")?.1.split_once("</form>")?.0;
    let action = value(form, "action")?;
    let mut fields = vec!["confirm=yes".to_owned()];
    for input in form.split("<input").skip(1) {
        let tag = input.split('>').next()?;
        if let (Some(name), Some(text)) = (value(tag, "name"), value(tag, "value")) {
            fields.push(format!("{name}={text}"));
        }
    }
    Some((action, fields.join("&")))
}

fn fetch(host: &str, method: &str, path: &str, cookies: &str, body: &str) -> Page {
    let mut stream = TcpStream::connect(host).unwrap();
    let cookie = if cookies.is_empty() { String::new() } else { format!("Cookie: {cookies}\r\n") };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{cookie}Connection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = vec![];
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let values = |name: &str| -> Vec<String> {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
            .collect()
    };
    let location = values("location").pop();
    Page { location, cookies: values("set-cookie"), body: body.to_owned() }
}
