//! Discovers the authorization server of a source. The reach of an address that another server names is limited by the reach
//! of that server: a server on the internet cannot send requests into private networks.

use super::described;
use super::metadata::{self, ResourceMetadata, ServerMetadata};
use crate::{ConnectionProof, OAuthConfig};
use hyper::Method;
use hyper::header::{ACCEPT, HeaderValue};
use std::time::Duration;
use tools::envelope::ToolFailure;
use tools::http::{ApiClient, ApiRequest, ApiResponse, AuthChallenge, HttpLimits, RequestReach};
use tools::{CancelSignal, ToolCredential};
use url::Url;

/// Maximum size of a metadata document, and the time limit for fetching one.
const DOCUMENT_BYTES_MAX: usize = 256 << 10;
const DOCUMENT_TIME_MAX: Duration = Duration::from_secs(15);

/// The authorization server of a source, and how to use it.
#[derive(Debug, Clone)]
pub(super) struct AuthorizationServer {
    pub(super) server: ServerMetadata,
    /// The resource indicator of token requests (RFC 8707), if there is one.
    pub(super) resource: Option<String>,
    /// The only origin that tokens are sent to.
    pub(super) audience: Url,
    pub(super) scopes: Vec<String>,
    pub(super) reach: RequestReach,
}

/// The same HTTP client with the limits of metadata and tokens.
pub(super) fn bounded(http: &ApiClient) -> ApiClient {
    let limits = HttpLimits {
        total: DOCUMENT_TIME_MAX,
        response_bytes_max: DOCUMENT_BYTES_MAX,
        ..http.limits()
    };
    http.limited(limits)
}

/// Discovers the authorization server of a connection: by its configuration, the description of its source, or the
/// metadata that the source publishes.
pub(super) async fn authorization_server(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
) -> Result<AuthorizationServer, ToolFailure> {
    let audience = audience(proof, oauth)?;
    let resource = oauth.resource.clone();
    let scopes = match oauth.scopes.as_slice() {
        [] => described::tokens(proof, oauth).map(|described| described.scopes).unwrap_or_default(),
        scopes => scopes.to_vec(),
    };
    if let Some(token) = &oauth.token_url {
        let server = configured_server(oauth, token)?;
        // The operator named these addresses: their reach is unlimited.
        return Ok(AuthorizationServer {
            server,
            resource,
            audience,
            scopes,
            reach: RequestReach::Anywhere,
        });
    }
    let http = bounded(&proof.credentials.http);
    if let Some(issuer) = &oauth.issuer {
        let reach = RequestReach::granted_to(&parse(issuer)?);
        let server = server(&http, issuer, reach).await?;
        return Ok(AuthorizationServer { server, resource, audience, scopes, reach });
    }
    if let Some(guard) = described::authorization_server(proof, oauth, &http, &audience).await? {
        return Ok(guard);
    }
    let found = discover_from_source(proof, oauth, &http, &audience).await;
    found.or_else(|trouble| described::last_resort(proof, oauth, &audience).ok_or(trouble))
}

/// Reads the metadata that the source publishes.
async fn discover_from_source(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    http: &ApiClient,
    audience: &Url,
) -> Result<AuthorizationServer, ToolFailure> {
    let reach = match &oauth.resource {
        Some(_) => RequestReach::granted_to(audience),
        None => proof.reach_of_target(audience),
    };
    let (challenge, metadata) = request_metadata(http, audience, reach).await;
    let (issuer, resource, offered) = match metadata {
        Some(metadata) => (metadata.issuer, Some(metadata.resource), metadata.scopes),
        // A source without metadata is its own authorization server.
        None => (audience.origin().ascii_serialization(), None, vec![]),
    };
    // An authorization server on the internet must not name addresses in private networks either.
    let reach = reach.within(&parse(&issuer)?);
    let server = server(http, &issuer, reach).await?;
    let scopes = [&oauth.scopes, &challenge.scopes, &offered];
    let scopes = scopes.into_iter().find(|scopes| !scopes.is_empty()).cloned().unwrap_or_default();
    let resource = oauth.resource.clone().or(resource);
    Ok(AuthorizationServer { server, resource, audience: audience.clone(), scopes, reach })
}

/// The authorization server of an address, the resource that it names, and its scopes.
pub(super) async fn probed(
    http: &ApiClient,
    place: &Url,
    reach: RequestReach,
) -> Result<(ServerMetadata, Option<String>, Vec<String>), ToolFailure> {
    let (challenge, metadata) = request_metadata(http, place, reach).await;
    let (issuer, resource, offered) = match metadata {
        Some(metadata) => (metadata.issuer, Some(metadata.resource), metadata.scopes),
        // It may be the server itself.
        None => (place.as_str().trim_end_matches('/').to_owned(), None, vec![]),
    };
    let reach = reach.within(&parse(&issuer)?);
    let server = server(http, &issuer, reach).await?;
    let scopes = if offered.is_empty() { challenge.scopes } else { offered };
    Ok((server, resource, scopes))
}

/// The only origin that tokens are sent to: the target of the source's calls.
pub(super) fn audience(proof: &ConnectionProof, oauth: &OAuthConfig) -> Result<Url, ToolFailure> {
    if let Some(resource) = &oauth.resource {
        return parse(resource);
    }
    let known = proof.credentials.target(&proof.key).or_else(|| proof.address.clone());
    known.ok_or_else(|| trouble("its source has no address that tokens could be sent to"))
}

fn configured_server(oauth: &OAuthConfig, token: &str) -> Result<ServerMetadata, ToolFailure> {
    let some = |url: &Option<String>| url.as_deref().map(parse).transpose();
    Ok(ServerMetadata {
        issuer: oauth.issuer.clone(),
        authorization: some(&oauth.authorization_url)?,
        refresh: some(&oauth.refresh_url)?,
        device: some(&oauth.device_url)?,
        ..ServerMetadata::with_endpoints(parse(token)?)
    })
}

/// The source's challenge to a request without a token, and the metadata that it publishes.
async fn request_metadata(
    http: &ApiClient,
    source: &Url,
    reach: RequestReach,
) -> (AuthChallenge, Option<ResourceMetadata>) {
    let refused = get(http, source, reach).await.ok();
    let challenge =
        refused.and_then(|answer| AuthChallenge::among(&answer.headers)).unwrap_or_default();
    let named = challenge.resource_metadata.as_deref().and_then(|url| Url::parse(url).ok());
    // Metadata count only from the source's own origin.
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

/// Fetches the metadata document at `place`.
pub(super) async fn server_at(
    http: &ApiClient,
    place: &Url,
    reach: RequestReach,
) -> Result<ServerMetadata, String> {
    let text = document(http, place, reach).await;
    let text =
        text.map_err(|why| why.unwrap_or_else(|| "its description names no document".into()))?;
    metadata::server_found_at(&text, place)
}

/// The metadata of the server `issuer`.
pub(super) async fn server(
    http: &ApiClient,
    issuer: &str,
    reach: RequestReach,
) -> Result<ServerMetadata, ToolFailure> {
    let url = parse(issuer)?;
    let mut why = "it publishes no metadata".to_owned();
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

/// Fetches a document. `Err(None)` if there is none, `Err(Some(_))` if it cannot be fetched.
async fn document(
    http: &ApiClient,
    url: &Url,
    reach: RequestReach,
) -> Result<String, Option<String>> {
    let answer = get(http, url, reach).await.map_err(Some)?;
    if !answer.status.is_success() {
        return Err(None);
    }
    String::from_utf8(answer.body).map_err(|_| Some("it is not text".into()))
}

async fn get(http: &ApiClient, url: &Url, reach: RequestReach) -> Result<ApiResponse, String> {
    let mut request = ApiRequest { reach, ..ApiRequest::new(Method::GET, url.clone()) };
    request.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let sent = http.send(request, &ToolCredential::none(), &CancelSignal::never()).await;
    sent.map_err(|error| error.to_string())
}

fn parse(text: &str) -> Result<Url, ToolFailure> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| trouble("an address of its authorization server is none"))
}

pub(super) fn trouble(why: &str) -> ToolFailure {
    ToolFailure::new(
        "oauth_discovery_failed",
        format!("The connection cannot be authorized: {why}."),
    )
}
