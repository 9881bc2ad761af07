//! Where tokens come from according to a description. The addresses are as trustworthy as the description, no more.

use url::Url;

/// Where the tokens of one authentication method come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenSource {
    /// The URL of the authorization server's metadata (OpenID Connect or RFC 8414).
    pub metadata: Option<Url>,
    /// The flows, the most usual first.
    pub flows: Vec<TokenFlow>,
    /// The scopes that the operations require; if none requires any, all scopes of the scheme.
    pub scopes: Vec<String>,
}

/// One flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFlow {
    /// The kind of the flow.
    pub kind: TokenFlowKind,
    /// The authorization endpoint.
    pub authorization: Option<Url>,
    /// The token endpoint.
    pub token: Url,
    /// The refresh endpoint, if it is a different one.
    pub refresh: Option<Url>,
    /// The device authorization endpoint.
    pub device: Option<Url>,
}

/// A kind of flow. Implicit and password grants are not supported: both expose secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFlowKind {
    /// Authorization code: a person agrees in a browser that is redirected back.
    Code,
    /// Device code: a person agrees in any browser.
    Device,
    /// Client credentials: no person is involved.
    ClientCredentials,
}

impl TokenFlowKind {
    /// The name in OpenAPI.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "authorizationCode",
            Self::Device => "deviceAuthorization",
            Self::ClientCredentials => "clientCredentials",
        }
    }
}
