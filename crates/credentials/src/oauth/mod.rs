//! The OAuth 2 client of connections: discovers the authorization server of a source, registers there, sends a person
//! to it, exchanges the code that comes back, and renews tokens. A token is sent only to the origin that it was asked for.

mod callback;
mod client_identity;
mod described;
mod device;
mod discover;
mod grant;
mod metadata;
mod pkce;
mod probe;
mod registered_clients;
mod token;

pub use callback::{CallbackOutcome, FlowStart};
pub use probe::ServerProbe;
pub(crate) use registered_clients::with_registered_client;
pub use registered_clients::{ClientOrigin, RegisteredClient};

use crate::connection_proof::ASKS_MAX;
use crate::oauth_flows::{self, WaitingCall};
use crate::{ConnectionProof, OAuthConfig, OAuthFlow, VaultError};
use discover::AuthorizationServer;
use grant::{ScopeCoverage, fresh_grant, scope_coverage, union_of_scopes, usable_credential};
use serde::{Deserialize, Serialize};
use token::{ClientIdentity, TokenEndpoint};
use tools::envelope::ToolFailure;
use tools::http::RequestReach;
use tools::{NoProof, PlacementKind, ToolCredential, ToolRequest};
use url::Url;

/// The path that browsers are redirected to.
const CALLBACK: &str = "/api/oauth/callback";

/// What the end of a flow at an authorization server needs.
#[derive(Clone, Serialize, Deserialize)]
struct OAuthPurpose {
    state: String,
    /// Named differently in records.
    #[serde(rename = "counter")]
    endpoint: TokenEndpoint,
    issuer: Option<String>,
    names_itself: bool,
    /// The redirect URI, byte for byte as sent.
    redirect: Option<String>,
    verifier: Option<String>,
    /// The device code, and the polling interval in seconds.
    device: Option<(String, u64)>,
    /// The requested scopes.
    #[serde(default)]
    scopes: Vec<String>,
}

/// Why the present token is not sufficient.
#[derive(Clone, Copy, Default)]
struct TokenNeed<'n> {
    /// The source refused it.
    refused: Option<&'n str>,
    /// The source requires these scopes.
    scopes: &'n [String],
}

/// The present token, if it is available without asking a person.
pub(crate) async fn available(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
) -> Result<ToolCredential, ToolFailure> {
    usable_credential(proof, oauth, None).await?.ok_or_else(|| {
        let why = format!("The connection {} is not authorized yet.", proof.key.display_name());
        ToolFailure::new("oauth_connection_missing", why)
    })
}

/// A token. Asks a person if necessary.
pub(crate) async fn credential(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    call: &ToolRequest,
) -> Result<ToolCredential, NoProof> {
    obtain_token(proof, oauth, None, call).await
}

/// Another token after the source refused one.
pub(crate) async fn renewed(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    refused: &ToolCredential,
    call: &ToolRequest,
) -> Result<ToolCredential, NoProof> {
    obtain_token(proof, oauth, token_of(refused), call).await
}

/// A token with more scopes; none if a request would not help.
pub(crate) async fn widened(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    (refused, scopes): (&ToolCredential, &[String]),
    call: &ToolRequest,
) -> Result<Option<ToolCredential>, NoProof> {
    let need = TokenNeed { refused: token_of(refused), scopes };
    for n_asked in 0..=ASKS_MAX {
        match scope_coverage(proof, need.refused, scopes).await? {
            ScopeCoverage::Wide(credential) => return Ok(Some(credential)),
            ScopeCoverage::Exhausted => return Ok(None),
            ScopeCoverage::Narrow
                if described::flow(proof, oauth) == OAuthFlow::ClientCredentials =>
            {
                return Ok(grant::widen_own_grant(proof, oauth, scopes).await?);
            }
            ScopeCoverage::Narrow if n_asked == ASKS_MAX => {}
            ScopeCoverage::Narrow => {
                if let Some((message, url)) = begin_flow(proof, oauth, need, Some(call)).await? {
                    oauth_flows::ask_to_sign_in(call, message, url).await?;
                }
            }
        }
    }
    Ok(None)
}

fn token_of(credential: &ToolCredential) -> Option<&str> {
    credential.value_at(PlacementKind::Header).find_map(|(_, value)| value.strip_prefix("Bearer "))
}

async fn obtain_token(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    refused: Option<&str>,
    call: &ToolRequest,
) -> Result<ToolCredential, NoProof> {
    for _ in 0..ASKS_MAX {
        if let Some(credential) = usable_credential(proof, oauth, refused).await? {
            return Ok(credential);
        }
        let need = TokenNeed { refused, ..TokenNeed::default() };
        if let Some((message, url)) = begin_flow(proof, oauth, need, Some(call)).await? {
            oauth_flows::ask_to_sign_in(call, message, url).await?;
        }
    }
    match usable_credential(proof, oauth, refused).await? {
        Some(credential) => Ok(credential),
        None => {
            let why = format!(
                "The connection {} must be authorized by a person.",
                proof.key.display_name()
            );
            Err(ToolFailure::new("oauth_reauth_required", why).into())
        }
    }
}

impl TokenNeed<'_> {
    /// Whether a concurrent call has already obtained what is needed.
    async fn is_met(self, proof: &ConnectionProof) -> Result<bool, ToolFailure> {
        match self.scopes {
            [] => Ok(fresh_grant(proof, self.refused).await?.is_some()),
            scopes => Ok(matches!(
                scope_coverage(proof, self.refused, scopes).await?,
                ScopeCoverage::Wide(_)
            )),
        }
    }
}

/// Begins a flow at the authorization server, or joins the current one. Returns the message for the person and the address
/// that they open; none if a grant arrived meanwhile.
async fn begin_flow(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    need: TokenNeed<'_>,
    waiting: WaitingCall<'_>,
) -> Result<Option<(String, String)>, NoProof> {
    if described::flow(proof, oauth) == OAuthFlow::ClientCredentials {
        let why = "The authorization server's tokens are not taken by the source.";
        return Err(ToolFailure::new("oauth_reauth_required", why).into());
    }
    let origin = proof.credentials.origin().await.ok_or_else(|| oauth_flows::no_browser(proof))?;
    let lock = proof.credentials.connection_lock(&proof.key);
    let _lock = lock.lock().await;
    if waiting.is_some() && need.is_met(proof).await? {
        return Ok(None);
    }
    let asks_for = |purpose: &str| {
        let begun = serde_json::from_str::<OAuthPurpose>(purpose).ok();
        begun.is_some_and(|begun| need.scopes.iter().all(|scope| begun.scopes.contains(scope)))
    };
    let prepare =
        async |state: &str| prepare_flow(proof, oauth, (&origin, need.scopes), state).await;
    let flow = proof.credentials.join_or_begin_flow(&proof.key, waiting, asks_for, prepare).await?;
    let host = Url::parse(&flow.url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let host = host.unwrap_or_default();
    let more = match need.scopes {
        [] => String::new(),
        scopes => format!(" for more ({})", scopes.join(", ")),
    };
    let message = format!(
        "The connection {} needs your permission{more}. Open the link and agree at {host}; the call then goes on by itself.",
        proof.key.display_name()
    );
    Ok(Some((message, flow.url)))
}

/// The address of a new flow, and what its end needs.
async fn prepare_flow(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    (origin, wanted): (&Url, &[String]),
    state: &str,
) -> Result<(String, String), ToolFailure> {
    let mut guard = discover::authorization_server(proof, oauth).await?;
    if !wanted.is_empty() {
        guard.scopes = union_of_scopes(proof, [&guard.scopes, wanted]).await?;
    }
    let (purpose, url) = match described::flow(proof, oauth) {
        OAuthFlow::Device => {
            let device_url = guard.server.device.clone();
            let device_url = device_url
                .ok_or_else(|| discover::trouble("its authorization server has no device flow"))?;
            let client = client_identity::identity(proof, oauth, &guard, None).await?;
            let endpoint = token_endpoint(&guard, client);
            let begun = device::begin_device_flow(
                &proof.credentials,
                &endpoint,
                &device_url,
                &guard.scopes,
            )
            .await?;
            let mut purpose = purpose(state, endpoint, &guard);
            purpose.device = Some((begun.device_code, begun.interval));
            let mut url = begun.url;
            if !url.contains(&begun.user_code) {
                // Pages ignore fragments, and people can read them.
                url = format!("{url}#{}", begun.user_code);
            }
            device::poll(&proof.credentials, state.to_owned(), purpose.clone());
            (purpose, url)
        }
        OAuthFlow::Code | OAuthFlow::ClientCredentials => {
            let redirect =
                origin.join(CALLBACK).map_err(|_| discover::trouble("we have no address"))?;
            let client = client_identity::identity(proof, oauth, &guard, Some(&redirect)).await?;
            let mut purpose = purpose(state, token_endpoint(&guard, client), &guard);
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

fn purpose(state: &str, endpoint: TokenEndpoint, guard: &AuthorizationServer) -> OAuthPurpose {
    OAuthPurpose {
        state: state.to_owned(),
        endpoint,
        issuer: guard.server.issuer.clone(),
        names_itself: guard.server.names_itself,
        redirect: None,
        verifier: None,
        device: None,
        scopes: guard.scopes.clone(),
    }
}

fn token_endpoint(guard: &AuthorizationServer, client: ClientIdentity) -> TokenEndpoint {
    TokenEndpoint {
        token_url: guard.server.token.to_string(),
        refresh_url: guard.server.refresh.as_ref().map(Url::to_string),
        client,
        resource: guard.resource.clone(),
        audience: guard.audience.to_string(),
        is_near: guard.reach == RequestReach::Anywhere,
    }
}

/// The address where the person agrees.
fn authorization(
    guard: &AuthorizationServer,
    purpose: &OAuthPurpose,
    redirect: &Url,
    challenge: &str,
) -> Result<String, ToolFailure> {
    let url = guard.server.authorization.clone();
    let mut url = url.ok_or_else(|| discover::trouble("it names no authorization page"))?;
    let scope = guard.scopes.join(" ");
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("response_type", "code");
        query.append_pair("client_id", &purpose.endpoint.client.id);
        query.append_pair("redirect_uri", redirect.as_str());
        query.append_pair("state", &purpose.state);
        query.append_pair("code_challenge", challenge);
        query.append_pair("code_challenge_method", "S256");
        if !scope.is_empty() {
            query.append_pair("scope", &scope);
        }
        if scope.split(' ').any(|scope| scope == "offline_access") {
            // OpenID servers issue refresh tokens only after an explicit consent.
            query.append_pair("prompt", "consent");
        }
        if let Some(resource) = &guard.resource {
            query.append_pair("resource", resource);
        }
    }
    Ok(url.into())
}

/// The error of a call whose secret cannot be opened.
pub(crate) fn vault_trouble(error: &VaultError) -> ToolFailure {
    tracing::error!("a call needs a secret: {error}");
    let why = "The connection's secret cannot be opened. Its operator finds out why with `airlock vault status`.";
    ToolFailure::new("connection_value_locked", why)
}

/// Why there is no credential, for a person.
pub(crate) fn sentence(none: NoProof) -> String {
    match none {
        NoProof::Trouble(trouble) => trouble.message.trim_end_matches('.').to_owned(),
        NoProof::Refused(failure) => failure.message,
    }
}
