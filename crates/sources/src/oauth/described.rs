//! What a source's own description says about its tokens: it counts where the operator says nothing, and leads no
//! further than where the description comes from may lead.

use super::discover::{self, Guard, trouble};
use super::metadata::Server;
use crate::config::{Flow, OAuth};
use crate::proof::Held;
use tools::envelope::Trouble;
use tools::http::{HttpClient, Reach};
use tools::{TokenFlow, TokenFlowKind, TokenSource};
use url::Url;

/// How this connection gets its tokens: as its operator says, or the first way that the description knows.
pub(super) fn flow(held: &Held, oauth: &OAuth) -> Flow {
    oauth.flow.unwrap_or_else(|| {
        let said = tokens(held, oauth).and_then(|said| said.flows.first().map(|flow| flow.kind));
        said.map_or_else(Flow::default, by_name)
    })
}

/// Where its tokens come from, as the description says.
pub(super) fn tokens(held: &Held, oauth: &OAuth) -> Option<TokenSource> {
    let named = oauth.scheme.as_deref();
    let methods = held.trust.methods(&held.key);
    let mut fitting =
        methods.into_iter().filter(|way| named.is_none_or(|name| way.template == name));
    fitting.find_map(|way| way.tokens)
}

/// Who guards the source by its description; none where that does not say enough.
pub(super) async fn guard(
    held: &Held,
    oauth: &OAuth,
    http: &HttpClient,
    audience: &Url,
) -> Result<Option<Guard>, Trouble> {
    let Some(said) = tokens(held, oauth) else { return Ok(None) };
    let reach = held.reach_of_description();
    let known = fitting(held, oauth, &said);
    let (server, reach) = match (&said.metadata, known) {
        (Some(place), _) => match (discover::server_at(http, place, reach).await, known) {
            (Ok(server), _) => (server, reach.within(place)),
            (Err(_), Some(known)) => (named(known), reach),
            (Err(why), None) => return Err(trouble(&why)),
        },
        (None, Some(known)) if oauth.client_id.is_some() => (named(known), reach),
        (None, Some(known)) => match introducing(http, known, reach).await {
            Some(server) => (server, reach.within(&known.token)),
            None => return Ok(None),
        },
        (None, None) => return Ok(None),
    };
    Ok(Some(guarded(oauth, said, (server, audience.clone(), reach))))
}

/// The same where nobody introduces us and nobody else says more: who we are must be said.
pub(super) fn last_resort(held: &Held, oauth: &OAuth, audience: &Url) -> Option<Guard> {
    let said = tokens(held, oauth)?;
    let server = named(fitting(held, oauth, &said)?);
    Some(guarded(oauth, said, (server, audience.clone(), held.reach_of_description())))
}

/// The flow that this connection uses, as it is described.
fn fitting<'s>(held: &Held, oauth: &OAuth, said: &'s TokenSource) -> Option<&'s TokenFlow> {
    let wanted = flow(held, oauth);
    said.flows.iter().find(|known| by_name(known.kind) == wanted)
}

fn guarded(
    oauth: &OAuth,
    said: TokenSource,
    (server, audience, reach): (Server, Url, Reach),
) -> Guard {
    let scopes = if oauth.scopes.is_empty() { said.scopes } else { oauth.scopes.clone() };
    Guard { server, resource: oauth.resource.clone(), audience, scopes, reach }
}

/// The server that a flow names, if it publishes how one introduces oneself there.
async fn introducing(http: &HttpClient, known: &TokenFlow, reach: Reach) -> Option<Server> {
    let issuer = known.token.origin().ascii_serialization();
    let server = discover::server(http, &issuer, reach).await.ok()?;
    (server.token == known.token).then_some(server)
}

fn named(flow: &TokenFlow) -> Server {
    Server {
        authorization: flow.authorization.clone(),
        refresh: flow.refresh.clone(),
        device: flow.device.clone(),
        ..Server::at(flow.token.clone())
    }
}

const fn by_name(kind: TokenFlowKind) -> Flow {
    match kind {
        TokenFlowKind::Code => Flow::Code,
        TokenFlowKind::Device => Flow::Device,
        TokenFlowKind::ClientCredentials => Flow::ClientCredentials,
    }
}
