//! What an API, an MCP server or a program offers, before a connection binds it into the tree.
//!
//! An integration is imported once and never changes: a refreshed description is a new integration that
//! replaces the old one. A [`Connection`](crate::Connection) binds it at
//! `<integration>.<owner>.<connection>`, and each of its tools is found below that.

use crate::{PlacementKind, SharedSchema, TokenSource, ToolCredential, ToolRequest};
use futures_util::future::BoxFuture;
use lifecycle::{Failure, Json};
use std::fmt;

/// Longest name of an integration or connection; three of them and a tool make a path.
const NAME_BYTES_MAX: usize = 64;

/// An imported source of any kind.
pub trait Integration: Send + Sync {
    /// `openapi`, `graphql`, `mcp` or `command`.
    fn kind(&self) -> &'static str;

    /// Its tools, in any order. Called once.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Where calls go, such as a base URL: part of every tool's revision, because an approval given for
    /// one server must not count for another.
    fn target(&self) -> String;

    /// Why its server cannot be reached now, where the integration itself notices that. Its calls wait
    /// meanwhile.
    fn outage(&self) -> Option<String> {
        None
    }

    /// The supported ways to authenticate; empty if the API needs none.
    fn auth_methods(&self) -> Vec<AuthMethod> {
        vec![]
    }

    /// The arguments as the tool's schema has them, where a program may put them otherwise as well; none
    /// where they stay as they are.
    fn arranged(&self, _tool: &str, _args: &Json) -> Option<Json> {
        None
    }

    /// An argument that is missing, in a sentence that clients match on; none if the schema's own words are enough.
    fn missing_argument(&self, _tool: &str, _args: &Json) -> Option<String> {
        None
    }

    /// What is wrong with arguments that match their schema: they form no valid request, or one that is too large.
    /// Checked before a person is asked to approve.
    fn objection(&self, _tool: &str, _credential: &ToolCredential, _args: &Json) -> Option<String> {
        None
    }

    /// Performs a call of the tool `spec.name` with `request.args`, which match its schema. Returns an envelope: see
    /// [`crate::envelope`]. A [`Failure`] is for errors that are not an answer of the tool. Stops when
    /// `request.cancelled` is triggered.
    fn call(
        &self,
        tool: &str,
        credential: &ToolCredential,
        request: ToolRequest,
    ) -> BoxFuture<'static, Result<Option<Json>, Failure>>;
}

/// One tool of an integration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its path below the connection; dots are fine: `issues.create`.
    pub name: String,
    /// What it does, for the author of the program.
    pub description: String,
    /// The schema of its arguments; none accepts anything.
    pub input: Option<SharedSchema>,
    /// The schema of `data` in its envelope. Shown, never enforced: servers often deviate from their descriptions,
    /// and a call that has happened must not look as if it had not.
    pub output: Option<SharedSchema>,
    /// Calling it twice does no harm.
    pub read_only: bool,
    /// Whether a person must approve calls if no policy applies.
    pub asks: bool,
    /// What that person reads first, such as `POST /issues`; none names the tool.
    pub about: Option<String>,
    /// Whether it takes so long that callers should poll if they can.
    pub job: bool,
}

impl ToolSpec {
    /// A tool without schemas that needs no approval, and is not safe to repeat.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            input: None,
            output: None,
            read_only: false,
            asks: false,
            about: None,
            job: false,
        }
    }
}

/// One way to authenticate: which values a connection needs and where they go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthMethod {
    /// The name that connections refer to, such as `apikey-0`.
    pub template: String,
    /// The authentication scheme.
    pub kind: AuthKind,
    /// The label for people.
    pub label: String,
    /// Where each value goes.
    pub placements: Vec<PlacementTemplate>,
    /// Where OAuth 2 tokens come from, if the source describes it.
    pub tokens: Option<TokenSource>,
}

/// An authentication scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthKind {
    /// A key in a header, the query or a variable.
    ApiKey,
    /// `Authorization: Bearer …`.
    Bearer,
    /// `Authorization: Basic …`.
    Basic,
    /// A token of an authorization server.
    OAuth2,
    /// No authentication.
    None,
}

impl AuthKind {
    /// Its name in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "apiKey",
            Self::Bearer => "bearer",
            Self::Basic => "basic",
            Self::OAuth2 => "oauth2",
            Self::None => "none",
        }
    }
}

impl AuthMethod {
    /// No authentication.
    pub fn none() -> Self {
        let (template, label) = ("none".into(), "None".into());
        Self { template, kind: AuthKind::None, label, placements: vec![], tokens: None }
    }

    /// `Authorization: Bearer …`, under this name.
    pub fn bearer(template: &str) -> Self {
        let placement = PlacementTemplate {
            place: PlacementKind::Header,
            name: "authorization".into(),
            prefix: "Bearer ".into(),
            variable: "value".into(),
        };
        let (template, label) = (template.into(), "Bearer token".into());
        Self { template, kind: AuthKind::Bearer, label, placements: vec![placement], tokens: None }
    }
}

/// Where one value of a credential goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementTemplate {
    /// Header, query or environment.
    pub place: PlacementKind,
    /// Name of the header, parameter or variable.
    pub name: String,
    /// The prefix of the value, such as `Bearer `.
    pub prefix: String,
    /// The name of the value in the connection; `value` if it is the only one.
    pub variable: String,
}

/// The name of an integration in paths: letters, digits, `_` or `-`, beginning with a letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntegrationSlug(String);

/// A text that cannot be an integration's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name has 1 to {NAME_BYTES_MAX} letters, digits, `_` or `-`, begins with a letter, and is not taken by us"
)]
pub struct BadSlug;

/// First names of Airlock's own tools.
const TAKEN: [&str; 5] = ["search", "describe", "executor", "tools", "process"];

impl IntegrationSlug {
    /// Parses and checks a name.
    pub fn parse(text: &str) -> Result<Self, BadSlug> {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic());
        let fits = text.len() <= NAME_BYTES_MAX && text.chars().all(is_fine);
        if begins_well && fits && !TAKEN.contains(&text) {
            Ok(Self(text.into()))
        } else {
            Err(BadSlug)
        }
    }

    /// The nearest valid name to a title or host, in camel case.
    pub fn resembling(text: &str) -> Option<Self> {
        Self::parse(&camel_case(text)).ok()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IntegrationSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `My Conn-1!` is `myConn1`.
pub(crate) fn camel_case(text: &str) -> String {
    let mut name = String::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        let mut chars = word.chars();
        let first = chars.next().map(|c| match name.is_empty() {
            true => c.to_ascii_lowercase(),
            false => c.to_ascii_uppercase(),
        });
        name.extend(first.into_iter().chain(chars));
    }
    name.truncate(NAME_BYTES_MAX);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_ours_are_taken() {
        for good in ["github", "a", "my-api_2"] {
            assert!(IntegrationSlug::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "2a", "a.b", "a b", "ä", "search", "executor", &"x".repeat(65)] {
            assert!(IntegrationSlug::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_title_becomes_a_name() {
        assert_eq!(camel_case("My Conn-1!"), "myConn1");
        assert_eq!(
            IntegrationSlug::resembling("GitHub v3 REST API").unwrap().as_str(),
            "gitHubV3RESTAPI"
        );
        assert_eq!(IntegrationSlug::resembling("…"), None);
    }
}
