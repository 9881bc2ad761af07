//! Where a description says that tokens come from. It speaks for whoever wrote it, no further.

use url::Url;

/// Where the tokens of one way to prove who calls come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenSource {
    /// A document about the authorization server, of OpenID Connect or RFC 8414.
    pub metadata: Option<Url>,
    /// The ways to get them, the most usual first.
    pub flows: Vec<TokenFlow>,
    /// What the operations want to be allowed, and where none says so everything that can be.
    pub scopes: Vec<String>,
}

/// One way to get tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFlow {
    /// Which.
    pub kind: TokenFlowKind,
    /// Where a person agrees.
    pub authorization: Option<Url>,
    /// Where tokens are given.
    pub token: Url,
    /// Where they are renewed, if that is elsewhere.
    pub refresh: Option<Url>,
    /// Where devices begin.
    pub device: Option<Url>,
}

/// How tokens are got. Implicit grants and passwords are not among them: both hand secrets around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFlowKind {
    /// A person agrees in a browser that comes back.
    Code,
    /// A person agrees in any browser.
    Device,
    /// Nobody has to agree.
    ClientCredentials,
}

impl TokenFlowKind {
    /// As OpenAPI names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "authorizationCode",
            Self::Device => "deviceAuthorization",
            Self::ClientCredentials => "clientCredentials",
        }
    }
}
