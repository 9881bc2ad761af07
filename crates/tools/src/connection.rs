//! One configured credential for an integration.

use crate::integration::camel_case;
use crate::{CredentialProvider, scrub};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::sync::Arc;
use url::{Origin, Url};

/// Whose connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConnectionOwner {
    /// Shared by all users.
    Org,
    /// Belongs to one user.
    User,
}

impl ConnectionOwner {
    /// `org` or `user`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "org" => Some(Self::Org),
            "user" => Some(Self::User),
            _ => None,
        }
    }

    /// The form used in paths.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Org => "org",
            Self::User => "user",
        }
    }
}

impl fmt::Display for ConnectionOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a connection is called in paths: an identifier in camel case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionName(String);

impl ConnectionName {
    /// The nearest identifier: `My Conn-1!` is `myConn1`. None if nothing is left, or a digit comes first.
    pub fn normalised(text: &str) -> Option<Self> {
        let name = camel_case(text);
        name.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(Self(name))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConnectionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Binds an integration into the tree.
#[derive(Clone)]
pub struct Connection {
    /// Who may use it.
    pub owner: ConnectionOwner,
    /// Its name in paths.
    pub name: ConnectionName,
    /// Provides the credential when a call needs it.
    pub proof: Arc<dyn CredentialProvider>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({}.{})", self.owner, self.name)
    }
}

/// A credential: values, and where they go. Nothing here is ever shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCredential {
    placements: Vec<CredentialPlacement>,
    /// The only origin that it may be sent to; none allows every target of the source.
    audience: Option<Origin>,
}

/// One value of a credential, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialPlacement {
    /// Where it goes.
    pub place: PlacementKind,
    /// The name of the header, parameter or variable.
    pub name: String,
    /// The value, with its prefix.
    pub value: SecretString,
}

/// Where a value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementKind {
    /// A header of each request.
    Header,
    /// A parameter of each request's query.
    Query,
    /// An environment variable of a program that is started.
    Environment,
}

impl ToolCredential {
    /// No proof at all.
    pub const fn none() -> Self {
        Self::new(vec![])
    }

    /// Any values, anywhere.
    pub const fn new(placements: Vec<CredentialPlacement>) -> Self {
        Self { placements, audience: None }
    }

    /// The same, never to be sent to another origin than that of `url`.
    #[must_use]
    pub fn only_for(self, url: &Url) -> Self {
        Self { audience: Some(url.origin()), ..self }
    }

    /// Whether it may be sent to `url`.
    pub fn is_for(&self, url: &Url) -> bool {
        self.audience.as_ref().is_none_or(|audience| *audience == url.origin())
    }

    /// `Authorization: Bearer …`.
    pub fn bearer(token: &str) -> Self {
        Self::header("authorization", &format!("Bearer {token}"))
    }

    /// `Authorization: Basic …`.
    pub fn basic(user: &str, password: &str) -> Self {
        let pair = STANDARD.encode(format!("{user}:{password}"));
        Self::header("authorization", &format!("Basic {pair}"))
    }

    /// A header with a value.
    pub fn header(name: &str, value: &str) -> Self {
        Self::new(vec![CredentialPlacement {
            place: PlacementKind::Header,
            name: name.into(),
            value: value.into(),
        }])
    }

    /// A parameter with a value.
    pub fn query(name: &str, value: &str) -> Self {
        Self::new(vec![CredentialPlacement {
            place: PlacementKind::Query,
            name: name.into(),
            value: value.into(),
        }])
    }

    /// Names and values that go to `place`.
    pub fn value_at(&self, place: PlacementKind) -> impl Iterator<Item = (&str, &str)> {
        let here = self.placements.iter().filter(move |placement| placement.place == place);
        here.map(|placement| (placement.name.as_str(), placement.value.reveal()))
    }

    /// Registers the values as secrets, so that they are redacted wherever a peer repeats them.
    pub(crate) fn learn(&self) {
        for CredentialPlacement { value, .. } in &self.placements {
            // `Bearer key` may come back as `key`, and `sid=key` too. A short key must not make its prefix a secret.
            let whole = value.reveal();
            let bare = whole.rsplit([' ', '=']).find(|part| !part.is_empty()).unwrap_or(whole);
            if bare.len() >= scrub::SECRET_BYTES_MIN {
                [whole, bare].into_iter().for_each(scrub::learn);
            }
        }
    }

    /// Whether it has no values.
    pub fn is_none(&self) -> bool {
        self.placements.is_empty()
    }
}

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretString(String);

impl SecretString {
    /// The text, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SecretString {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_goes_where_it_belongs_and_is_never_printed() {
        let basic = ToolCredential::basic("ann", "secret");
        let sent: Vec<_> = basic.value_at(PlacementKind::Header).collect();
        assert_eq!(sent, [("authorization", "Basic YW5uOnNlY3JldA==")]);
        assert_eq!(basic.value_at(PlacementKind::Query).count(), 0);
        assert!(!format!("{basic:?}").contains("YW5u"));
    }

    #[test]
    fn a_token_is_for_the_origin_it_was_asked_for_and_no_other() {
        let url = |text: &str| Url::parse(text).unwrap();
        let token = ToolCredential::bearer("t").only_for(&url("https://a.example/mcp"));
        assert!(token.is_for(&url("https://a.example/other")));
        for other in ["https://b.example/mcp", "http://a.example/mcp", "https://a.example:8443/"] {
            assert!(!token.is_for(&url(other)), "{other}");
        }
        assert!(ToolCredential::bearer("t").is_for(&url("https://b.example")));
    }

    #[test]
    fn a_name_becomes_an_identifier() {
        assert_eq!(ConnectionName::normalised("My Conn-1!").unwrap().as_str(), "myConn1");
        assert_eq!(ConnectionName::normalised("42"), None);
        assert_eq!(ConnectionName::normalised("…"), None);
    }
}
