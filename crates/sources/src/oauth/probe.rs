//! What can be found out about who guards an address, before anything is added.

use super::discover;
use super::metadata::Server;
use crate::{SourceError, Sources};
use tools::http::Reach;
use url::Url;

/// What an authorization server says about itself, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// What it calls itself.
    pub issuer: Option<String>,
    /// Where a person agrees.
    pub authorization_url: Option<String>,
    /// Where tokens are given.
    pub token_url: String,
    /// Where one introduces oneself.
    pub registration_url: Option<String>,
    /// What tokens are for.
    pub resource: Option<String>,
    /// What can be allowed.
    pub scopes: Vec<String>,
    /// Whether it reads documents that clients publish about themselves.
    pub takes_documents: bool,
}

impl Sources {
    /// Asks an address who guards it: a resource, or an authorization server.
    pub async fn probe(&self, url: &str) -> Result<Probed, SourceError> {
        let wrong = |why: String| SourceError::Wrong(why);
        let place = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let place = place.ok_or_else(|| wrong("url is a web address".into()))?;
        let http = discover::bounded(&self.0.setup.http);
        let found = discover::probed(&http, &place, Reach::granted_to(&place)).await;
        let (server, resource, scopes) = found.map_err(|trouble| wrong(trouble.message))?;
        let Server { issuer, authorization, token, registration, takes_documents, .. } = server;
        Ok(Probed {
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
