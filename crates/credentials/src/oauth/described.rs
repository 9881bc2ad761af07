//! The OAuth settings in the description of a source. They apply if the operator configured nothing, and the
//! reach of their addresses is limited to that of the description itself.

use super::discover::{self, AuthorizationServer, trouble};
use super::metadata::ServerMetadata;
use crate::ConnectionProof;
use crate::{OAuthConfig, OAuthFlow};
use tools::envelope::ToolFailure;
use tools::http::{ApiClient, RequestReach};
use tools::{TokenFlow, TokenFlowKind, TokenSource};
use url::Url;

/// How this connection gets its tokens: as configured, or the first flow that the description names.
pub(super) fn flow(proof: &ConnectionProof, oauth: &OAuthConfig) -> OAuthFlow {
    oauth.flow.unwrap_or_else(|| {
        let described = tokens(proof, oauth)
            .and_then(|described| described.flows.first().map(|flow| flow.kind));
        described.map_or_else(OAuthFlow::default, flow_of_kind)
    })
}

/// The token settings in the description.
pub(super) fn tokens(proof: &ConnectionProof, oauth: &OAuthConfig) -> Option<TokenSource> {
    let named = oauth.scheme.as_deref();
    let methods = proof.credentials.methods(&proof.key);
    let mut fitting =
        methods.into_iter().filter(|way| named.is_none_or(|name| way.template == name));
    fitting.find_map(|way| way.tokens)
}

/// The authorization server in the description; none if the description is incomplete.
pub(super) async fn authorization_server(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    http: &ApiClient,
    audience: &Url,
) -> Result<Option<AuthorizationServer>, ToolFailure> {
    let Some(described) = tokens(proof, oauth) else { return Ok(None) };
    let reach = proof.reach_of_description();
    let known = flow_in_use(proof, oauth, &described);
    let (server, reach) = match (&described.metadata, known) {
        (Some(place), _) => match (discover::server_at(http, place, reach).await, known) {
            (Ok(server), _) => (server, reach.within(place)),
            (Err(_), Some(known)) => (find_flow(known), reach),
            (Err(why), None) => return Err(trouble(&why)),
        },
        (None, Some(known)) if oauth.client_id.is_some() => (find_flow(known), reach),
        (None, Some(known)) => match self_registration_server(http, known, reach).await {
            Some(server) => (server, reach.within(&known.token)),
            None => return Ok(None),
        },
        (None, None) => return Ok(None),
    };
    Ok(Some(from_description(oauth, described, (server, audience.clone(), reach))))
}

/// The same, for a server without registration after discovery failed: a client identity must be
/// configured.
pub(super) fn last_resort(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    audience: &Url,
) -> Option<AuthorizationServer> {
    let described = tokens(proof, oauth)?;
    let server = find_flow(flow_in_use(proof, oauth, &described)?);
    Some(from_description(
        oauth,
        described,
        (server, audience.clone(), proof.reach_of_description()),
    ))
}

/// The description's entry of the flow that this connection uses.
fn flow_in_use<'s>(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    described: &'s TokenSource,
) -> Option<&'s TokenFlow> {
    let wanted = flow(proof, oauth);
    described.flows.iter().find(|known| flow_of_kind(known.kind) == wanted)
}

fn from_description(
    oauth: &OAuthConfig,
    described: TokenSource,
    (server, audience, reach): (ServerMetadata, Url, RequestReach),
) -> AuthorizationServer {
    let scopes = if oauth.scopes.is_empty() { described.scopes } else { oauth.scopes.clone() };
    AuthorizationServer { server, resource: oauth.resource.clone(), audience, scopes, reach }
}

/// The server of a flow, if it publishes metadata with a registration endpoint.
async fn self_registration_server(
    http: &ApiClient,
    known: &TokenFlow,
    reach: RequestReach,
) -> Option<ServerMetadata> {
    let issuer = known.token.origin().ascii_serialization();
    let server = discover::server(http, &issuer, reach).await.ok()?;
    (server.token == known.token).then_some(server)
}

fn find_flow(flow: &TokenFlow) -> ServerMetadata {
    ServerMetadata {
        authorization: flow.authorization.clone(),
        refresh: flow.refresh.clone(),
        device: flow.device.clone(),
        ..ServerMetadata::with_endpoints(flow.token.clone())
    }
}

const fn flow_of_kind(kind: TokenFlowKind) -> OAuthFlow {
    match kind {
        TokenFlowKind::Code => OAuthFlow::Code,
        TokenFlowKind::Device => OAuthFlow::Device,
        TokenFlowKind::ClientCredentials => OAuthFlow::ClientCredentials,
    }
}
