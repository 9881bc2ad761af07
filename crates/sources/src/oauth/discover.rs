//! Finds out who guards a source. Addresses that others name are followed only as far as they may lead: who speaks from
//! the internet does not send us into our own networks.

use super::metadata::{self, Challenge, Resource, Server};
use crate::config::OAuth;
use crate::proof::Held;
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderValue, WWW_AUTHENTICATE};
use std::time::Duration;
use tools::envelope::Trouble;
use tools::http::{HttpClient, HttpLimits, Incoming, Outgoing, Reach};
use tools::{CancelSignal, Credential};
use url::Url;

/// Largest document of metadata, and how long one may take.
const DOCUMENT_BYTES_MAX: usize = 256 << 10;
const DOCUMENT_TIME_MAX: Duration = Duration::from_secs(15);

/// Who guards a source, and how we speak with them.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    pub(super) server: Server,
    /// What tokens are asked for, where that can be said (RFC 8707).
    pub(super) resource: Option<String>,
    /// The only origin that tokens are sent to.
    pub(super) audience: Url,
    pub(super) scopes: Vec<String>,
    pub(super) reach: Reach,
}

/// The same client under the limits of metadata and tokens.
pub(super) fn bounded(http: &HttpClient) -> HttpClient {
    let limits = HttpLimits {
        total: DOCUMENT_TIME_MAX,
        response_bytes_max: DOCUMENT_BYTES_MAX,
        ..http.limits()
    };
    http.limited(limits)
}

/// Finds out who guards this connection's source: what its operator says, or what the source says.
pub(super) async fn guard(held: &Held, oauth: &OAuth) -> Result<Guard, Trouble> {
    let audience = audience(held, oauth)?;
    let resource = oauth.resource.clone();
    let scopes = oauth.scopes.clone();
    if let Some(token) = &oauth.token_url {
        let server = named(oauth, token)?;
        // The operator named these addresses: they may be anywhere.
        return Ok(Guard { server, resource, audience, scopes, reach: Reach::Anywhere });
    }
    let http = bounded(&held.trust.http);
    if let Some(issuer) = &oauth.issuer {
        let reach = Reach::granted_to(&parse(issuer)?);
        let server = server(&http, issuer, reach).await?;
        return Ok(Guard { server, resource, audience, scopes, reach });
    }
    let reach = Reach::granted_to(&audience);
    let (challenge, said) = asked(&http, &audience, reach).await;
    let (issuer, resource, offered) = match said {
        Some(said) => (said.issuer, resource.or(Some(said.resource)), said.scopes),
        // Servers that say nothing about it are guarded by their own origin.
        None => (audience.origin().ascii_serialization(), resource, vec![]),
    };
    let server = server(&http, &issuer, reach).await?;
    let wanted = challenge.scope.map(|scope| scope.split(' ').map(str::to_owned).collect());
    let scopes = if scopes.is_empty() { wanted.unwrap_or(offered) } else { scopes };
    Ok(Guard { server, resource, audience, scopes, reach })
}

/// The only origin that tokens are sent to: where the source's calls go.
pub(super) fn audience(held: &Held, oauth: &OAuth) -> Result<Url, Trouble> {
    if let Some(resource) = &oauth.resource {
        return parse(resource);
    }
    let known = held.trust.target(&held.key).or_else(|| held.address.clone());
    known.ok_or_else(|| trouble("its source has no address that tokens could be sent to"))
}

fn named(oauth: &OAuth, token: &str) -> Result<Server, Trouble> {
    let some = |url: &Option<String>| url.as_deref().map(parse).transpose();
    Ok(Server {
        issuer: oauth.issuer.clone(),
        authorization: some(&oauth.authorization_url)?,
        token: parse(token)?,
        registration: None,
        device: some(&oauth.device_url)?,
        names_itself: false,
        secret_in_body: false,
    })
}

/// What the source says about itself when somebody comes without a token.
async fn asked(http: &HttpClient, source: &Url, reach: Reach) -> (Challenge, Option<Resource>) {
    let refused = get(http, source, reach).await.ok();
    let headers = refused.iter().flat_map(|answer| answer.headers.get_all(WWW_AUTHENTICATE));
    let bearer = headers
        .filter_map(|value| value.to_str().ok())
        .find(|value| value.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("bearer")));
    let challenge = bearer.map(metadata::challenge).unwrap_or_default();
    let named = challenge.resource_metadata.as_deref().and_then(|url| Url::parse(url).ok());
    // A source speaks about itself from its own origin.
    let named = named.filter(|url| url.origin() == source.origin());
    for place in named.into_iter().chain(metadata::resource_places(source)) {
        if let Ok(text) = document(http, &place, reach).await
            && let Ok(resource) = metadata::resource(&text, source)
        {
            return (challenge, Some(resource));
        }
    }
    (challenge, None)
}

async fn server(http: &HttpClient, issuer: &str, reach: Reach) -> Result<Server, Trouble> {
    let url = parse(issuer)?;
    let mut why = "it says nothing about itself".to_owned();
    for place in metadata::server_places(&url) {
        match document(http, &place, reach).await {
            Ok(text) => match metadata::server(&text, issuer) {
                Ok(server) => return Ok(server),
                Err(wrong) => why = wrong,
            },
            Err(Some(refused)) => why = refused,
            Err(None) => {}
        }
    }
    let host = url.host_str().unwrap_or("it").to_owned();
    Err(trouble(&format!("the authorization server {host} cannot be used: {why}")))
}

/// A document; none where there is none, and what is wrong where it cannot be had.
async fn document(http: &HttpClient, url: &Url, reach: Reach) -> Result<String, Option<String>> {
    let answer = get(http, url, reach).await.map_err(Some)?;
    if !answer.status.is_success() {
        return Err(None);
    }
    String::from_utf8(answer.body).map_err(|_| Some("it is not text".into()))
}

async fn get(http: &HttpClient, url: &Url, reach: Reach) -> Result<Incoming, String> {
    let mut request = Outgoing { reach, ..Outgoing::new(Method::GET, url.clone()) };
    request.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let sent = http.send(request, &Credential::none(), &CancelSignal::never()).await;
    sent.map_err(|error| error.to_string())
}

fn parse(text: &str) -> Result<Url, Trouble> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| trouble("an address of its authorization server is none"))
}

pub(super) fn trouble(why: &str) -> Trouble {
    Trouble::new("oauth_discovery_failed", format!("The connection cannot be authorized: {why}."))
}
