//! Parses `WWW-Authenticate: Bearer …` (RFC 6750, RFC 9728). Ignores what it does not understand.

use hyper::header::{HeaderMap, WWW_AUTHENTICATE};

/// Scopes of one challenge: real ones name a handful.
const SCOPES_MAX: usize = 50;

/// Longest scope: the longest of large clouds are addresses of a hundred letters.
const SCOPE_BYTES_MAX: usize = 256;

/// What a resource requires of its callers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthChallenge {
    /// The URL of the resource's metadata, which names its authorization server.
    pub resource_metadata: Option<String>,
    /// The error code of the specification, such as `insufficient_scope`.
    pub error: Option<String>,
    /// The required scopes.
    pub scopes: Vec<String>,
}

impl AuthChallenge {
    /// The bearer challenge among these headers, if there is one.
    pub fn among(headers: &HeaderMap) -> Option<Self> {
        let values =
            headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        values.filter_map(Self::parse).next()
    }

    /// Reads one header.
    pub fn parse(header: &str) -> Option<Self> {
        let (mut found, mut is_bearer) = (None, false);
        for item in items(header) {
            let (scheme, parameter) = scheme(item);
            if let Some(scheme) = scheme {
                is_bearer = scheme.eq_ignore_ascii_case("bearer");
            }
            if is_bearer {
                found.get_or_insert_with(Self::default).add_parameter(parameter);
            }
        }
        found
    }

    /// The scopes that would suffice, if the caller is known and lacks permissions.
    pub fn wants_scopes(&self) -> Option<&[String]> {
        let is_narrow = self.error.as_deref() == Some("insufficient_scope");
        (is_narrow && !self.scopes.is_empty()).then_some(&self.scopes)
    }

    fn add_parameter(&mut self, parameter: &str) {
        let Some((name, value)) = parameter.split_once('=') else { return };
        let value = unquoted(value.trim());
        match name.trim().to_ascii_lowercase().as_str() {
            "resource_metadata" => self.resource_metadata = Some(value),
            "error" => self.error = Some(value),
            "scope" => self.scopes = scopes(&value),
            _ => {}
        }
    }
}

/// The scopes in a text, without duplicates. Invalid scopes are skipped.
pub fn scopes(text: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    for scope in text.split(' ').filter(|scope| is_scope(scope)).take(SCOPES_MAX) {
        if !found.iter().any(|known| known == scope) {
            found.push(scope.to_owned());
        }
    }
    found
}

/// As defined in RFC 6749: visible characters without quotes and backslashes.
fn is_scope(text: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    (1..=SCOPE_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_fine)
}

/// The parts between commas, but for those inside quotes.
fn items(header: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = header.split(move |c: char| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' => return !is_quoted,
            _ => {}
        }
        false
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// A part may begin with the name of a scheme: `Bearer realm="x"`, `Negotiate`.
fn scheme(item: &str) -> (Option<&str>, &str) {
    let word = item.split([' ', '=']).next().unwrap_or_default();
    let rest = item[word.len()..].trim_start();
    match rest.starts_with('=') {
        true => (None, item),
        false => (Some(word), rest),
    }
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"') else { return value.to_owned() };
    let (mut text, mut chars) = (String::new(), inner.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => text.extend(chars.next()),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_names_its_metadata_and_scopes() {
        let said = AuthChallenge::parse(
            r#"Bearer realm="x, y", error=insufficient_scope, resource_metadata="https://a/b", scope="read write read""#,
        );
        let expected = AuthChallenge {
            resource_metadata: Some("https://a/b".into()),
            error: Some("insufficient_scope".into()),
            scopes: vec!["read".into(), "write".into()],
        };
        assert_eq!(said, Some(expected));
    }

    #[test]
    fn other_schemes_and_odd_parts_are_passed_by() {
        assert_eq!(AuthChallenge::parse("Bearer"), Some(AuthChallenge::default()));
        assert_eq!(AuthChallenge::parse("Basic realm=\"Bearer scope=x\""), None);
        let mixed = AuthChallenge::parse(
            "Basic realm=\"a\", bearer error = \"x\\\"y\", Digest scope=\"z\"",
        );
        assert_eq!(
            mixed,
            Some(AuthChallenge { error: Some("x\"y".into()), ..AuthChallenge::default() })
        );
        for odd in
            ["", ",,,", "=", "Bearer x_scope=\"no\", scope=", "Bearer scope=\"\u{7f}\\", "Bearer ="]
        {
            assert_eq!(
                AuthChallenge::parse(odd).unwrap_or_default(),
                AuthChallenge::default(),
                "{odd}"
            );
        }
    }

    #[test]
    fn only_who_is_known_and_may_too_little_can_be_allowed_more() {
        let wants = |text: &str| {
            AuthChallenge::parse(text).and_then(|said| said.wants_scopes().map(<[_]>::to_vec))
        };
        assert_eq!(
            wants("Bearer error=\"insufficient_scope\", scope=\"a\""),
            Some(vec!["a".into()])
        );
        assert_eq!(
            wants("Bearer error=\"insufficient_scope\""),
            None,
            "nobody knows what to ask for"
        );
        assert_eq!(wants("Bearer error=\"invalid_token\", scope=\"a\""), None);
    }

    #[test]
    fn scopes_are_few_and_plain() {
        let many: String = (0..100).map(|n| format!("s{n} ")).collect();
        assert_eq!(scopes(&many).len(), SCOPES_MAX);
        assert_eq!(scopes(&format!("a\u{1}b \"c\" {} d", "x".repeat(300))), ["d"]);
    }
}
