//! The client's identity at an authorization server: configured by the operator, published as a document, or obtained by
//! dynamic registration (RFC 7591).

use super::described;
use super::discover::{AuthorizationServer, bounded, trouble};
use super::token::ClientIdentity;
use super::{CALLBACK, vault_trouble};
use crate::VaultError;
use crate::{ConnectionProof, Credentials};
use crate::{OAuthConfig, OAuthFlow};
use hyper::Method;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tools::envelope::ToolFailure;
use tools::http::{ApiRequest, RequestReach};
use tools::{CancelSignal, ToolCredential, scrub};
use url::Url;

/// Prefix of the vault's names of identities that were registered dynamically.
const NAME_PREFIX: &str = "client/";

/// The path of the document that describes this client.
const DOCUMENT: &str = "/api/oauth/client-id-metadata.json";

/// The identity to use at `guard`. `redirect` is the redirect URI, if the flow has one.
pub(super) async fn identity(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    guard: &AuthorizationServer,
    redirect: Option<&Url>,
) -> Result<ClientIdentity, ToolFailure> {
    let secret_in_body = guard.server.secret_in_body;
    if let Some(id) = &oauth.client_id {
        let secret = match &oauth.client_secret {
            Some(text) => Some(proof.credentials.secret(text).await?),
            None => None,
        };
        return Ok(ClientIdentity { id: id.clone(), secret, secret_in_body });
    }
    if let Some(client) = published_identity(guard, redirect) {
        return Ok(client);
    }
    let Some(registration) = &guard.server.registration else {
        return Err(trouble(
            "its authorization server lets nobody introduce themselves; say client_id, and client_secret if there is one",
        ));
    };
    let flow = described::flow(proof, oauth);
    let name = vault_name(guard, flow, redirect);
    let known = proof.credentials.vault.get(&name).await.map_err(|error| vault_trouble(&error))?;
    if let Some(client) = known.and_then(|text| serde_json::from_str::<ClientIdentity>(&text).ok())
    {
        client.secret.iter().for_each(|secret| scrub::learn(secret));
        return Ok(client);
    }
    let place = (registration, guard.reach);
    let client =
        register_client(&proof.credentials, (flow, guard.server.secret_in_body), place, redirect)
            .await?;
    let text = serde_json::to_string(&client).unwrap_or_default();
    proof.credentials.vault.put(&name, &text).await.map_err(|error| vault_trouble(&error))?;
    Ok(client)
}

/// Deletes an identity that its server no longer knows, so that the next flow registers again.
pub(super) async fn forget_if_unknown(
    credentials: &Credentials,
    client: &ClientIdentity,
    word: &str,
) -> Result<(), VaultError> {
    if word != "invalid_client" {
        return Ok(());
    }
    for name in credentials.vault.names(NAME_PREFIX).await? {
        let text = credentials.vault.get(&name).await?;
        let known = text.and_then(|text| serde_json::from_str::<ClientIdentity>(&text).ok());
        if known.is_some_and(|known| known.id == client.id) {
            credentials.vault.remove(&name).await?;
        }
    }
    Ok(())
}

/// The identity of the published document, if the server supports such documents and can reach it.
fn published_identity(
    guard: &AuthorizationServer,
    redirect: Option<&Url>,
) -> Option<ClientIdentity> {
    let redirect =
        redirect.filter(|url| url.scheme() == "https" && guard.server.takes_documents)?;
    let is_reachable = guard.reach == RequestReach::Anywhere
        || RequestReach::granted_to(redirect) == RequestReach::Public;
    let id = redirect.join(DOCUMENT).ok().filter(|_| is_reachable)?;
    Some(ClientIdentity { id: id.into(), secret: None, secret_in_body: false })
}

impl Credentials {
    /// The Client ID Metadata Document that describes this client; none until the server's address is known.
    pub async fn client_document(&self) -> Option<Value> {
        let origin = self.origin().await?;
        let (id, redirect) = (origin.join(DOCUMENT).ok()?, origin.join(CALLBACK).ok()?);
        Some(json!({
            "client_id": id.as_str(),
            "client_name": "Airlock",
            "client_uri": origin.as_str(),
            "redirect_uris": [redirect.as_str()],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        }))
    }
}

/// Registers at an address that a person named.
pub(super) async fn register_at(
    credentials: &Credentials,
    flow: OAuthFlow,
    registration: &Url,
) -> Result<ClientIdentity, ToolFailure> {
    let redirect = credentials.origin().await.and_then(|origin| origin.join(CALLBACK).ok());
    let place = (registration, RequestReach::granted_to(registration));
    register_client(credentials, (flow, false), place, redirect.as_ref()).await
}

async fn register_client(
    credentials: &Credentials,
    (flow, secret_in_body): (OAuthFlow, bool),
    (registration, reach): (&Url, RequestReach),
    redirect: Option<&Url>,
) -> Result<ClientIdentity, ToolFailure> {
    let mut about = json!({
        "client_name": "Airlock",
        "grant_types": match flow {
            OAuthFlow::Code => json!(["authorization_code", "refresh_token"]),
            OAuthFlow::Device => json!(["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"]),
            OAuthFlow::ClientCredentials => json!(["client_credentials"]),
        },
        "token_endpoint_auth_method": match (flow, secret_in_body) {
            (OAuthFlow::Code | OAuthFlow::Device, _) => "none",
            (OAuthFlow::ClientCredentials, true) => "client_secret_post",
            (OAuthFlow::ClientCredentials, false) => "client_secret_basic",
        },
        "redirect_uris": redirect.iter().map(|url| url.as_str()).collect::<Vec<_>>(),
        "response_types": if flow == OAuthFlow::Code { json!(["code"]) } else { json!([]) },
    });
    if let Some("127.0.0.1" | "[::1]" | "localhost") = redirect.and_then(Url::host_str) {
        about["application_type"] = "native".into();
    }
    let mut request = ApiRequest { reach, ..ApiRequest::new(Method::POST, registration.clone()) };
    request.body = about.to_string().into();
    request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let sent = bounded(&credentials.http)
        .send(request, &ToolCredential::none(), &CancelSignal::never())
        .await;
    let answer = sent.map_err(|error| trouble(&error.to_string()))?;
    let response: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let Some(id) = response["client_id"].as_str().filter(|_| answer.status.is_success()) else {
        let word = response["error"].as_str().unwrap_or("it does not say why");
        let word: String = word.chars().take(64).collect();
        return Err(trouble(&format!("its authorization server does not take us: {word}")));
    };
    let is_public = response["token_endpoint_auth_method"] == "none";
    let secret = response["client_secret"].as_str().filter(|_| !is_public).map(str::to_owned);
    secret.iter().for_each(|secret| scrub::learn(secret));
    let secret_in_body = response["token_endpoint_auth_method"] == "client_secret_post";
    Ok(ClientIdentity { id: id.to_owned(), secret, secret_in_body })
}

fn vault_name(guard: &AuthorizationServer, flow: OAuthFlow, redirect: Option<&Url>) -> String {
    let redirect = redirect.map(Url::as_str).unwrap_or_default();
    let issuer = guard.server.issuer.as_deref().unwrap_or_else(|| guard.server.token.as_str());
    let whole = Sha256::digest(format!("{issuer} {flow:?} {redirect}").as_bytes());
    let hash: String = whole.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{NAME_PREFIX}{hash}")
}
