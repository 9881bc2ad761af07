//! The grant of a connection: its tokens, sealed in the vault, and renewed by one caller at a time.

use super::token::{TokenEndpoint, TokenEndpointError};
use super::{client_identity, described, discover, vault_trouble};
use crate::VaultError;
use crate::note_expiry::NoteExpiry;
use crate::{ConnectionKey, ConnectionProof, Credentials};
use crate::{OAuthConfig, OAuthFlow};
use serde::{Deserialize, Serialize};
use tools::envelope::ToolFailure;
use tools::{ToolCredential, scrub};
use url::Url;

/// Maximum number of scopes of one request: those that a source requires are added to those of earlier requests.
const SCOPES_MAX: usize = 200;

/// The error code for a refusal of the authorization server.
const REFUSED: &str = "oauth_refused";

/// The tokens of a connection.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct OAuthGrant {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// When the access token expires; none if the server did not state it.
    #[serde(flatten)]
    pub(super) expiry: Option<NoteExpiry>,
    /// Whether it was renewed because the source refused the token before. If the source refuses this one too, only a
    /// person can help.
    pub(super) is_retried: bool,
    /// Named differently in records.
    #[serde(rename = "counter")]
    pub(super) endpoint: TokenEndpoint,
    /// The scopes that were asked for.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

/// Whether a grant covers the scopes that a source requires.
pub(super) enum ScopeCoverage {
    /// They were requested, and there is a token that the source has not rejected.
    Wide(ToolCredential),
    /// They were requested, and the source rejects the token all the same: another request would not help.
    Exhausted,
    /// They were never requested.
    Narrow,
}

impl OAuthGrant {
    fn is_fresh(&self, credentials: &Credentials, refused: Option<&str>) -> bool {
        let has_passed = self.expiry.is_some_and(|expiry| expiry.has_passed(&*credentials.host));
        !has_passed && refused != Some(self.access_token.as_str())
    }

    /// The credential to send, restricted to the origin that it is for.
    pub(super) fn credential(&self) -> ToolCredential {
        scrub::learn(&self.access_token);
        self.refresh_token.iter().for_each(|token| scrub::learn(token));
        let bearer = ToolCredential::bearer(&self.access_token);
        match Url::parse(&self.endpoint.audience) {
            Ok(audience) => bearer.only_for(&audience),
            Err(_) => ToolCredential::none(),
        }
    }
}

impl Credentials {
    pub(super) async fn grant(
        &self,
        key: &ConnectionKey,
    ) -> Result<Option<OAuthGrant>, VaultError> {
        let text = self.vault.get(&vault_name(key)).await?;
        // A grant in the format of a newer version counts as none.
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    pub(super) async fn save_grant(
        &self,
        key: &ConnectionKey,
        grant: &OAuthGrant,
    ) -> Result<(), VaultError> {
        let text =
            serde_json::to_string(grant).map_err(|error| VaultError::Machine(error.to_string()))?;
        self.vault.put(&vault_name(key), &text).await
    }

    /// Deletes the tokens of a connection.
    pub async fn forget_grant(&self, key: &ConnectionKey) -> Result<(), VaultError> {
        self.vault.remove(&vault_name(key)).await
    }
}

/// A token that is valid as far as is known: the present one, or a new one if that needs no person. `refused` is
/// the token that the source rejected. None if only a person can help. Concurrent callers wait for one renewal.
pub(super) async fn usable_credential(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    refused: Option<&str>,
) -> Result<Option<ToolCredential>, ToolFailure> {
    if let Some(grant) = fresh_grant(proof, refused).await? {
        return Ok(Some(grant.credential()));
    }
    let lock = proof.credentials.connection_lock(&proof.key);
    let _lock = lock.lock().await;
    if let Some(grant) = fresh_grant(proof, refused).await? {
        return Ok(Some(grant.credential()));
    }
    let before = current_grant(proof).await?;
    let renewed = match (&before, described::flow(proof, oauth)) {
        (_, OAuthFlow::ClientCredentials)
            if before.as_ref().is_some_and(|grant| is_exhausted(grant, refused)) =>
        {
            None
        }
        (_, OAuthFlow::ClientCredentials) => Some(own_grant(proof, oauth, &[]).await?),
        (Some(grant), OAuthFlow::Code | OAuthFlow::Device) if !is_exhausted(grant, refused) => {
            refresh(proof, grant).await?
        }
        (Some(_) | None, OAuthFlow::Code | OAuthFlow::Device) => None,
    };
    let Some(mut grant) = renewed else { return Ok(None) };
    grant.is_retried = refused.is_some();
    proof
        .credentials
        .save_grant(&proof.key, &grant)
        .await
        .map_err(|error| vault_trouble(&error))?;
    Ok(Some(grant.credential()))
}

/// The present grant, if it is valid.
pub(super) async fn fresh_grant(
    proof: &ConnectionProof,
    refused: Option<&str>,
) -> Result<Option<OAuthGrant>, ToolFailure> {
    Ok(current_grant(proof).await?.filter(|grant| grant.is_fresh(&proof.credentials, refused)))
}

/// The present grant, if it is for the target of the source's calls.
async fn current_grant(proof: &ConnectionProof) -> Result<Option<OAuthGrant>, ToolFailure> {
    let grant = proof.credentials.grant(&proof.key).await.map_err(|error| vault_trouble(&error))?;
    let Some(grant) = grant else { return Ok(None) };
    // After an edit of the source's address, a token for the old address must not be sent to the new one.
    let oauth = proof.connection.oauth.clone().unwrap_or_default();
    let audience = discover::audience(proof, &oauth)?.origin();
    let is_for_it = Url::parse(&grant.endpoint.audience).is_ok_and(|url| url.origin() == audience);
    Ok(is_for_it.then_some(grant))
}

/// Whether the present grant covers the scopes that the source requires. `refused` is the token that it refused.
pub(super) async fn scope_coverage(
    proof: &ConnectionProof,
    refused: Option<&str>,
    wanted: &[String],
) -> Result<ScopeCoverage, ToolFailure> {
    let grant = current_grant(proof).await?;
    let covers = |grant: &OAuthGrant| wanted.iter().all(|scope| grant.scopes.contains(scope));
    let Some(grant) = grant.filter(covers) else { return Ok(ScopeCoverage::Narrow) };
    Ok(match refused == Some(grant.access_token.as_str()) {
        true => ScopeCoverage::Exhausted,
        false => ScopeCoverage::Wide(grant.credential()),
    })
}

/// The scopes of both lists and of the present grant, without duplicates.
pub(super) async fn union_of_scopes(
    proof: &ConnectionProof,
    lists: [&[String]; 2],
) -> Result<Vec<String>, ToolFailure> {
    let grant = proof.credentials.grant(&proof.key).await.map_err(|error| vault_trouble(&error))?;
    let before = grant.map(|grant| grant.scopes).unwrap_or_default();
    let mut united: Vec<String> = vec![];
    for scope in lists.into_iter().flatten().chain(&before) {
        if !united.contains(scope) && united.len() < SCOPES_MAX {
            united.push(scope.clone());
        }
    }
    Ok(united)
}

/// A token of the client-credentials flow with more scopes; none if the server refuses.
pub(super) async fn widen_own_grant(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    wanted: &[String],
) -> Result<Option<ToolCredential>, ToolFailure> {
    let lock = proof.credentials.connection_lock(&proof.key);
    let _lock = lock.lock().await;
    match own_grant(proof, oauth, wanted).await {
        Ok(grant) => {
            proof
                .credentials
                .save_grant(&proof.key, &grant)
                .await
                .map_err(|error| vault_trouble(&error))?;
            Ok(Some(grant.credential()))
        }
        Err(trouble) if trouble.code == REFUSED => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

fn is_exhausted(grant: &OAuthGrant, refused: Option<&str>) -> bool {
    grant.is_retried && refused == Some(grant.access_token.as_str())
}

/// Renews a grant with its refresh token; none if the server no longer accepts it.
async fn refresh(
    proof: &ConnectionProof,
    grant: &OAuthGrant,
) -> Result<Option<OAuthGrant>, ToolFailure> {
    let Some(token) = &grant.refresh_token else { return Ok(None) };
    scrub::learn(token);
    let members = [("grant_type", "refresh_token"), ("refresh_token", token.as_str())];
    match grant.endpoint.tokens(&proof.credentials, &members).await {
        Ok(mut renewed) => {
            // Servers that do not rotate refresh tokens do not repeat them.
            renewed.refresh_token = renewed.refresh_token.or_else(|| grant.refresh_token.clone());
            renewed.scopes.clone_from(&grant.scopes);
            Ok(Some(renewed))
        }
        // Expired or revoked: a person has to agree again.
        Err(TokenEndpointError::Refused(word)) if word == "invalid_grant" => {
            let gone = OAuthGrant { refresh_token: None, ..grant.clone() };
            proof
                .credentials
                .save_grant(&proof.key, &gone)
                .await
                .map_err(|error| vault_trouble(&error))?;
            Ok(None)
        }
        // The grant itself may be valid: for example, the server no longer knows this client. A person can help.
        Err(TokenEndpointError::Refused(word)) => {
            tracing::warn!(connection = proof.key.display_name(), word, "a token was not renewed");
            let forgotten = client_identity::forget_if_unknown(
                &proof.credentials,
                &grant.endpoint.client,
                &word,
            );
            forgotten.await.map_err(|error| vault_trouble(&error))?;
            Ok(None)
        }
        Err(TokenEndpointError::Failed(why)) => Err(failed(&why)),
    }
}

/// A grant of the client-credentials flow with the configured scopes and `wanted`.
async fn own_grant(
    proof: &ConnectionProof,
    oauth: &OAuthConfig,
    wanted: &[String],
) -> Result<OAuthGrant, ToolFailure> {
    let mut guard = discover::authorization_server(proof, oauth).await?;
    if !wanted.is_empty() {
        guard.scopes = union_of_scopes(proof, [&guard.scopes, wanted]).await?;
    }
    let client = client_identity::identity(proof, oauth, &guard, None).await?;
    let endpoint = super::token_endpoint(&guard, client);
    let scope = guard.scopes.join(" ");
    let mut members = vec![("grant_type", "client_credentials")];
    if !scope.is_empty() {
        members.push(("scope", scope.as_str()));
    }
    let granted =
        endpoint.tokens(&proof.credentials, &members).await.map_err(|denied| match denied {
            TokenEndpointError::Refused(word) => ToolFailure::new(
                REFUSED,
                format!("The authorization server gives this connection no token: {word}."),
            ),
            TokenEndpointError::Failed(why) => failed(&why),
        })?;
    Ok(OAuthGrant { scopes: guard.scopes, ..granted })
}

fn failed(why: &str) -> ToolFailure {
    let why = format!("The connection's token could not be renewed: {why}.");
    ToolFailure { retryable: Some(true), ..ToolFailure::new("oauth_refresh_failed", why) }
}

fn vault_name(key: &ConnectionKey) -> String {
    format!("grant/{key}")
}
