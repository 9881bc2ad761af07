//! Who we are at an authorization server: as its operator says, or as we introduced ourselves (RFC 7591).

use super::described;
use super::discover::{Guard, bounded, trouble};
use super::token::Client;
use super::{CALLBACK, vault_trouble};
use crate::Sources;
use crate::config::{Flow, OAuth};
use crate::proof::{Held, Trust};
use crate::vault::VaultError;
use hyper::Method;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tools::envelope::Trouble;
use tools::http::{Outgoing, Reach};
use tools::{CancelSignal, Credential, scrub};
use url::Url;

/// Where the vault keeps who we are at servers that we introduced ourselves to.
const KEPT: &str = "client/";

/// Where we publish who we are.
const DOCUMENT: &str = "/api/oauth/client-id-metadata.json";

/// Who we are there. `redirect` is where browsers come back to, where any do.
pub(super) async fn client(
    held: &Held,
    oauth: &OAuth,
    guard: &Guard,
    redirect: Option<&Url>,
) -> Result<Client, Trouble> {
    let secret_in_body = guard.server.secret_in_body;
    if let Some(id) = &oauth.client_id {
        let secret = match &oauth.client_secret {
            Some(text) => Some(held.trust.secret(text).await?),
            None => None,
        };
        return Ok(Client { id: id.clone(), secret, secret_in_body });
    }
    if let Some(client) = published(guard, redirect) {
        return Ok(client);
    }
    let Some(registration) = &guard.server.registration else {
        return Err(trouble(
            "its authorization server lets nobody introduce themselves; say client_id, and client_secret if there is one",
        ));
    };
    let flow = described::flow(held, oauth);
    let name = kept_as(guard, flow, redirect);
    let known = held.trust.vault.get(&name).await.map_err(|error| vault_trouble(&error))?;
    if let Some(client) = known.and_then(|text| serde_json::from_str::<Client>(&text).ok()) {
        client.secret.iter().for_each(|secret| scrub::learn(secret));
        return Ok(client);
    }
    let place = (registration, guard.reach);
    let client =
        introduced(&held.trust, (flow, guard.server.secret_in_body), place, redirect).await?;
    let text = serde_json::to_string(&client).unwrap_or_default();
    held.trust.vault.put(&name, &text).await.map_err(|error| vault_trouble(&error))?;
    Ok(client)
}

/// A server that no longer knows whom it once took must be told again who we are: next time we introduce ourselves anew.
pub(super) async fn forget_if_unknown(
    trust: &Trust,
    client: &Client,
    word: &str,
) -> Result<(), VaultError> {
    if word != "invalid_client" {
        return Ok(());
    }
    for name in trust.vault.names(KEPT).await? {
        let kept = trust.vault.get(&name).await?;
        let kept = kept.and_then(|text| serde_json::from_str::<Client>(&text).ok());
        if kept.is_some_and(|kept| kept.id == client.id) {
            trust.vault.remove(&name).await?;
        }
    }
    Ok(())
}

/// Ourselves by the document that we publish, where the server reads it and can reach it.
fn published(guard: &Guard, redirect: Option<&Url>) -> Option<Client> {
    let redirect =
        redirect.filter(|url| url.scheme() == "https" && guard.server.takes_documents)?;
    let is_reachable =
        guard.reach == Reach::Anywhere || Reach::granted_to(redirect) == Reach::Public;
    let id = redirect.join(DOCUMENT).ok().filter(|_| is_reachable)?;
    Some(Client { id: id.into(), secret: None, secret_in_body: false })
}

impl Sources {
    /// What we publish about ourselves as a client (Client ID Metadata Document); none until we are found somewhere.
    pub async fn client_document(&self) -> Option<Value> {
        let origin = self.0.trust.origin().await?;
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

/// Introduces ourselves where somebody said that one does.
pub(super) async fn introduced_at(
    trust: &Trust,
    flow: Flow,
    registration: &Url,
) -> Result<Client, Trouble> {
    let redirect = trust.origin().await.and_then(|origin| origin.join(CALLBACK).ok());
    let place = (registration, Reach::granted_to(registration));
    introduced(trust, (flow, false), place, redirect.as_ref()).await
}

async fn introduced(
    trust: &Trust,
    (flow, secret_in_body): (Flow, bool),
    (registration, reach): (&Url, Reach),
    redirect: Option<&Url>,
) -> Result<Client, Trouble> {
    let mut about = json!({
        "client_name": "Airlock",
        "grant_types": match flow {
            Flow::Code => json!(["authorization_code", "refresh_token"]),
            Flow::Device => json!(["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"]),
            Flow::ClientCredentials => json!(["client_credentials"]),
        },
        "token_endpoint_auth_method": match (flow, secret_in_body) {
            (Flow::Code | Flow::Device, _) => "none",
            (Flow::ClientCredentials, true) => "client_secret_post",
            (Flow::ClientCredentials, false) => "client_secret_basic",
        },
        "redirect_uris": redirect.iter().map(|url| url.as_str()).collect::<Vec<_>>(),
        "response_types": if flow == Flow::Code { json!(["code"]) } else { json!([]) },
    });
    if let Some("127.0.0.1" | "[::1]" | "localhost") = redirect.and_then(Url::host_str) {
        about["application_type"] = "native".into();
    }
    let mut request = Outgoing { reach, ..Outgoing::new(Method::POST, registration.clone()) };
    request.body = about.to_string().into();
    request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let sent =
        bounded(&trust.http).send(request, &Credential::none(), &CancelSignal::never()).await;
    let answer = sent.map_err(|error| trouble(&error.to_string()))?;
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let Some(id) = said["client_id"].as_str().filter(|_| answer.status.is_success()) else {
        let word = said["error"].as_str().unwrap_or("it does not say why");
        let word: String = word.chars().take(64).collect();
        return Err(trouble(&format!("its authorization server does not take us: {word}")));
    };
    let is_public = said["token_endpoint_auth_method"] == "none";
    let secret = said["client_secret"].as_str().filter(|_| !is_public).map(str::to_owned);
    secret.iter().for_each(|secret| scrub::learn(secret));
    let secret_in_body = said["token_endpoint_auth_method"] == "client_secret_post";
    Ok(Client { id: id.to_owned(), secret, secret_in_body })
}

fn kept_as(guard: &Guard, flow: Flow, redirect: Option<&Url>) -> String {
    let redirect = redirect.map(Url::as_str).unwrap_or_default();
    let issuer = guard.server.issuer.as_deref().unwrap_or_else(|| guard.server.token.as_str());
    let whole = Sha256::digest(format!("{issuer} {flow:?} {redirect}").as_bytes());
    let hash: String = whole.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{KEPT}{hash}")
}
