//! OAuth 2 for connections: finds out who guards a source, introduces itself, sends a person there, takes what they
//! bring back, and keeps the tokens good. A token goes to the one origin that it was asked for.

mod apps;
mod callback;
mod client;
mod described;
mod device;
mod discover;
mod grant;
mod metadata;
mod pkce;
mod probe;
mod token;

pub(crate) use apps::named;
pub use apps::{App, AppOrigin};
pub use callback::{Begun, Returned};
pub(crate) use device::resume;
pub use probe::Probed;

use crate::config::{Flow, OAuth};
use crate::proof::{ASKS_MAX, Held};
use crate::vault::VaultError;
use crate::visits::{self, Waiting};
use discover::Guard;
use grant::{Breadth, breadth, fresh, united, usable};
use serde::{Deserialize, Serialize};
use token::{Client, Counter};
use tools::envelope::Trouble;
use tools::http::Reach;
use tools::{Credential, NoProof, Place, Request};
use url::Url;

/// Where browsers come back to.
const CALLBACK: &str = "/api/oauth/callback";

/// What the end of a visit to an authorization server needs.
#[derive(Clone, Serialize, Deserialize)]
struct Purpose {
    state: String,
    counter: Counter,
    issuer: Option<String>,
    names_itself: bool,
    /// Where the browser must come back to, to the letter.
    redirect: Option<String>,
    verifier: Option<String>,
    /// The device code, and how often to ask with it in seconds.
    device: Option<(String, u64)>,
    /// What is asked to be allowed.
    #[serde(default)]
    scopes: Vec<String>,
}

/// What is wrong with the token there is.
#[derive(Clone, Copy, Default)]
struct Need<'n> {
    /// It was not taken.
    refused: Option<&'n str>,
    /// It must allow these.
    scopes: &'n [String],
}

/// The token there is, where nobody has to be asked.
pub(crate) async fn at_hand(held: &Held, oauth: &OAuth) -> Result<Credential, Trouble> {
    usable(held, oauth, None).await?.ok_or_else(|| {
        let why = format!("The connection {} is not authorized yet.", held.key.shown());
        Trouble::new("oauth_connection_missing", why)
    })
}

/// A token, whoever must be asked for it.
pub(crate) async fn credential(
    held: &Held,
    oauth: &OAuth,
    call: &Request,
) -> Result<Credential, NoProof> {
    granted(held, oauth, None, call).await
}

/// Another token after one was not taken.
pub(crate) async fn renewed(
    held: &Held,
    oauth: &OAuth,
    refused: &Credential,
    call: &Request,
) -> Result<Credential, NoProof> {
    granted(held, oauth, token_of(refused), call).await
}

/// Another token after one that allows too little; none where asking for it would not help.
pub(crate) async fn widened(
    held: &Held,
    oauth: &OAuth,
    (refused, scopes): (&Credential, &[String]),
    call: &Request,
) -> Result<Option<Credential>, NoProof> {
    let need = Need { refused: token_of(refused), scopes };
    for n_asked in 0..=ASKS_MAX {
        match breadth(held, need.refused, scopes).await? {
            Breadth::Wide(credential) => return Ok(Some(credential)),
            Breadth::Exhausted => return Ok(None),
            Breadth::Narrow if described::flow(held, oauth) == Flow::ClientCredentials => {
                return Ok(grant::ours_widened(held, oauth, scopes).await?);
            }
            Breadth::Narrow if n_asked == ASKS_MAX => {}
            Breadth::Narrow => {
                if let Some((message, url)) = begin(held, oauth, need, Some(call)).await? {
                    visits::ask(call, message, url).await?;
                }
            }
        }
    }
    Ok(None)
}

fn token_of(credential: &Credential) -> Option<&str> {
    credential.at(Place::Header).find_map(|(_, value)| value.strip_prefix("Bearer "))
}

async fn granted(
    held: &Held,
    oauth: &OAuth,
    refused: Option<&str>,
    call: &Request,
) -> Result<Credential, NoProof> {
    for _ in 0..ASKS_MAX {
        if let Some(credential) = usable(held, oauth, refused).await? {
            return Ok(credential);
        }
        let need = Need { refused, ..Need::default() };
        if let Some((message, url)) = begin(held, oauth, need, Some(call)).await? {
            visits::ask(call, message, url).await?;
        }
    }
    match usable(held, oauth, refused).await? {
        Some(credential) => Ok(credential),
        None => {
            let why =
                format!("The connection {} must be authorized by a person.", held.key.shown());
            Err(Trouble::new("oauth_reauth_required", why).into())
        }
    }
}

impl Need<'_> {
    /// Whether somebody else has seen to it.
    async fn is_met(self, held: &Held) -> Result<bool, Trouble> {
        match self.scopes {
            [] => Ok(fresh(held, self.refused).await?.is_some()),
            scopes => Ok(matches!(breadth(held, self.refused, scopes).await?, Breadth::Wide(_))),
        }
    }
}

/// Begins a visit to the authorization server, or joins the one that is under way: what the person reads and where
/// they go. None where a grant came meanwhile.
async fn begin(
    held: &Held,
    oauth: &OAuth,
    need: Need<'_>,
    waiting: Waiting<'_>,
) -> Result<Option<(String, String)>, NoProof> {
    if described::flow(held, oauth) == Flow::ClientCredentials {
        let why = "The authorization server's tokens are not taken by the source.";
        return Err(Trouble::new("oauth_reauth_required", why).into());
    }
    let origin = held.trust.origin().await.ok_or_else(|| visits::nobody_comes(held))?;
    let turn = held.trust.turn(&held.key);
    let _turn = turn.lock().await;
    if waiting.is_some() && need.is_met(held).await? {
        return Ok(None);
    }
    let asks_for = |purpose: &str| {
        let begun = serde_json::from_str::<Purpose>(purpose).ok();
        begun.is_some_and(|begun| need.scopes.iter().all(|scope| begun.scopes.contains(scope)))
    };
    let prepare = async |state: &str| prepared(held, oauth, (&origin, need.scopes), state).await;
    let visit = held.trust.visit(&held.key, waiting, asks_for, prepare).await?;
    let host = Url::parse(&visit.url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let host = host.unwrap_or_default();
    let more = match need.scopes {
        [] => String::new(),
        scopes => format!(" for more ({})", scopes.join(", ")),
    };
    let message = format!(
        "The connection {} needs your permission{more}. Open the link and agree at {host}; the call then goes on by itself.",
        held.key.shown()
    );
    Ok(Some((message, visit.url)))
}

/// The address of a new visit, and what its end needs.
async fn prepared(
    held: &Held,
    oauth: &OAuth,
    (origin, wanted): (&Url, &[String]),
    state: &str,
) -> Result<(String, String), Trouble> {
    let mut guard = discover::guard(held, oauth).await?;
    if !wanted.is_empty() {
        guard.scopes = united(held, [&guard.scopes, wanted]).await?;
    }
    let (purpose, url) = match described::flow(held, oauth) {
        Flow::Device => {
            let endpoint = guard.server.device.clone();
            let endpoint = endpoint
                .ok_or_else(|| discover::trouble("its authorization server has no device flow"))?;
            let client = client::client(held, oauth, &guard, None).await?;
            let counter = counter(&guard, client);
            let begun = device::begin(&held.trust, &counter, &endpoint, &guard.scopes).await?;
            let mut purpose = purpose(state, counter, &guard);
            purpose.device = Some((begun.device_code, begun.interval));
            let mut url = begun.url;
            if !url.contains(&begun.user_code) {
                // Pages ignore fragments, and people can read them.
                url = format!("{url}#{}", begun.user_code);
            }
            device::poll(&held.trust, state.to_owned(), purpose.clone());
            (purpose, url)
        }
        Flow::Code | Flow::ClientCredentials => {
            let redirect =
                origin.join(CALLBACK).map_err(|_| discover::trouble("we have no address"))?;
            let client = client::client(held, oauth, &guard, Some(&redirect)).await?;
            let mut purpose = purpose(state, counter(&guard, client), &guard);
            let verifier = pkce::verifier().map_err(|error| vault_trouble(&error))?;
            let url = authorization(&guard, &purpose, &redirect, &pkce::challenge(&verifier))?;
            purpose.redirect = Some(redirect.into());
            tools::scrub::learn(&verifier);
            purpose.verifier = Some(verifier);
            (purpose, url)
        }
    };
    let purpose =
        serde_json::to_string(&purpose).map_err(|_| discover::trouble("it is too large"))?;
    Ok((url, purpose))
}

fn purpose(state: &str, counter: Counter, guard: &Guard) -> Purpose {
    Purpose {
        state: state.to_owned(),
        counter,
        issuer: guard.server.issuer.clone(),
        names_itself: guard.server.names_itself,
        redirect: None,
        verifier: None,
        device: None,
        scopes: guard.scopes.clone(),
    }
}

fn counter(guard: &Guard, client: Client) -> Counter {
    Counter {
        token_url: guard.server.token.to_string(),
        refresh_url: guard.server.refresh.as_ref().map(Url::to_string),
        client,
        resource: guard.resource.clone(),
        audience: guard.audience.to_string(),
        is_near: guard.reach == Reach::Anywhere,
    }
}

/// Where the person agrees.
fn authorization(
    guard: &Guard,
    purpose: &Purpose,
    redirect: &Url,
    challenge: &str,
) -> Result<String, Trouble> {
    let url = guard.server.authorization.clone();
    let mut url = url.ok_or_else(|| discover::trouble("nobody said where people agree"))?;
    let scope = guard.scopes.join(" ");
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("response_type", "code");
        query.append_pair("client_id", &purpose.counter.client.id);
        query.append_pair("redirect_uri", redirect.as_str());
        query.append_pair("state", &purpose.state);
        query.append_pair("code_challenge", challenge);
        query.append_pair("code_challenge_method", "S256");
        if !scope.is_empty() {
            query.append_pair("scope", &scope);
        }
        if scope.split(' ').any(|scope| scope == "offline_access") {
            // OpenID servers give refresh tokens to those who were asked in earnest.
            query.append_pair("prompt", "consent");
        }
        if let Some(resource) = &guard.resource {
            query.append_pair("resource", resource);
        }
    }
    Ok(url.into())
}

/// What a vault that does not open means to a call.
pub(crate) fn vault_trouble(error: &VaultError) -> Trouble {
    tracing::error!("a call needs a secret: {error}");
    let why = "The connection's secret cannot be opened. Its operator finds out why with `airlock vault status`.";
    Trouble::new("connection_value_locked", why)
}

/// Why there is no proof, for a person.
pub(crate) fn sentence(none: NoProof) -> String {
    match none {
        NoProof::Trouble(trouble) => trouble.message.trim_end_matches('.').to_owned(),
        NoProof::Refused(failure) => failure.message,
    }
}
