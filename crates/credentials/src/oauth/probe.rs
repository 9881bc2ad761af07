//! Probes an address for its authorization server before a source is added.

use super::discover;
use super::metadata::ServerMetadata;
use crate::{CredentialError, Credentials};
use tools::http::RequestReach;
use url::Url;

/// What an authorization server publishes about itself, and the resource that it guards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProbe {
    /// Its issuer.
    pub issuer: Option<String>,
    /// The authorization endpoint.
    pub authorization_url: Option<String>,
    /// The token endpoint.
    pub token_url: String,
    /// The registration endpoint.
    pub registration_url: Option<String>,
    /// The resource that tokens are for.
    pub resource: Option<String>,
    /// The scopes that it offers.
    pub scopes: Vec<String>,
    /// Whether it supports Client ID Metadata Documents.
    pub takes_documents: bool,
}

impl Credentials {
    /// Looks up the authorization server of a resource, or the metadata of the address if it is one itself.
    pub async fn probe(&self, url: &str) -> Result<ServerProbe, CredentialError> {
        let wrong = |why: String| CredentialError::Invalid(why);
        let place = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let place = place.ok_or_else(|| wrong("url is a web address".into()))?;
        let http = discover::bounded(&self.http);
        let found = discover::probed(&http, &place, RequestReach::granted_to(&place)).await;
        let (server, resource, scopes) = found.map_err(|trouble| wrong(trouble.message))?;
        let ServerMetadata { issuer, authorization, token, registration, takes_documents, .. } =
            server;
        Ok(ServerProbe {
            issuer,
            authorization_url: authorization.map(String::from),
            token_url: token.into(),
            registration_url: registration.map(String::from),
            resource,
            scopes,
            takes_documents,
        })
    }
}
