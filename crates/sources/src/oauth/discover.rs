//! Finds out who guards a source. Addresses that others name are followed only as far as they may lead: who speaks from
//! the internet does not send us into our own networks.

use super::described;
use super::metadata::{self, Resource, Server};
use crate::config::OAuth;
use crate::proof::Held;
use hyper::Method;
use hyper::header::{ACCEPT, HeaderValue};
use std::time::Duration;
use tools::envelope::Trouble;
use tools::http::{Challenge, HttpClient, HttpLimits, Incoming, Outgoing, Reach};
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

/// Finds out who guards this connection's source: what its operator says, what its description says, or what the
/// source itself says.
pub(super) async fn guard(held: &Held, oauth: &OAuth) -> Result<Guard, Trouble> {
    let audience = audience(held, oauth)?;
    let resource = oauth.resource.clone();
    let scopes = match oauth.scopes.as_slice() {
        [] => described::tokens(held, oauth).map(|said| said.scopes).unwrap_or_default(),
        said => said.to_vec(),
    };
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
    if let Some(guard) = described::guard(held, oauth, &http, &audience).await? {
        return Ok(guard);
    }
    let found = found_out(held, oauth, &http, &audience).await;
    found.or_else(|trouble| described::last_resort(held, oauth, &audience).ok_or(trouble))
}

/// Asks the source who guards it.
async fn found_out(
    held: &Held,
    oauth: &OAuth,
    http: &HttpClient,
    audience: &Url,
) -> Result<Guard, Trouble> {
    let reach = match &oauth.resource {
        Some(_) => Reach::granted_to(audience),
        None => held.reach_of_target(audience),
    };
    let (challenge, said) = asked(http, audience, reach).await;
    let (issuer, resource, offered) = match said {
        Some(said) => (said.issuer, Some(said.resource), said.scopes),
        // Servers that say nothing about it are guarded by their own origin.
        None => (audience.origin().ascii_serialization(), None, vec![]),
    };
    // Who guards a machine of ours from the internet does not send us inside either.
    let reach = reach.within(&parse(&issuer)?);
    let server = server(http, &issuer, reach).await?;
    let scopes = [&oauth.scopes, &challenge.scopes, &offered];
    let scopes = scopes.into_iter().find(|scopes| !scopes.is_empty()).cloned().unwrap_or_default();
    let resource = oauth.resource.clone().or(resource);
    Ok(Guard { server, resource, audience: audience.clone(), scopes, reach })
}

/// Who guards an address: the server, the resource it speaks of, and what can be allowed.
pub(super) async fn probed(
    http: &HttpClient,
    place: &Url,
    reach: Reach,
) -> Result<(Server, Option<String>, Vec<String>), Trouble> {
    let (challenge, said) = asked(http, place, reach).await;
    let (issuer, resource, offered) = match said {
        Some(said) => (said.issuer, Some(said.resource), said.scopes),
        // It may be the server itself.
        None => (place.as_str().trim_end_matches('/').to_owned(), None, vec![]),
    };
    let reach = reach.within(&parse(&issuer)?);
    let server = server(http, &issuer, reach).await?;
    let scopes = if offered.is_empty() { challenge.scopes } else { offered };
    Ok((server, resource, scopes))
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
        refresh: some(&oauth.refresh_url)?,
        device: some(&oauth.device_url)?,
        ..Server::at(parse(token)?)
    })
}

/// What the source says about itself when somebody comes without a token.
async fn asked(http: &HttpClient, source: &Url, reach: Reach) -> (Challenge, Option<Resource>) {
    let refused = get(http, source, reach).await.ok();
    let challenge =
        refused.and_then(|answer| Challenge::among(&answer.headers)).unwrap_or_default();
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

/// The server that a document at `place` is about.
pub(super) async fn server_at(
    http: &HttpClient,
    place: &Url,
    reach: Reach,
) -> Result<Server, String> {
    let text = document(http, place, reach).await;
    let text =
        text.map_err(|why| why.unwrap_or_else(|| "its description names no document".into()))?;
    metadata::server_found_at(&text, place)
}

/// The server that calls itself `issuer`.
pub(super) async fn server(
    http: &HttpClient,
    issuer: &str,
    reach: Reach,
) -> Result<Server, Trouble> {
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
