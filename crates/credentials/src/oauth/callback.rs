//! OAuth flows that a person starts outside of a call, and the browser that returns from the authorization server.

use super::grant::OAuthGrant;
use super::token::TokenEndpointError;
use super::{
    OAuthPurpose, TokenNeed, begin_flow, client_identity, described, metadata, sentence,
    with_registered_client,
};
use crate::note_expiry::NoteExpiry;
use crate::oauth_flows::{BrowserFlow, hash_of_state};
use crate::{ConnectionKey, ConnectionProof, CredentialError, Credentials, OAuthFlow, VaultError};
use lifecycle::Answer;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How long the end of a flow can be looked up.
const END_NOTE_MS_MAX: i64 = 10 * 60 * 1_000;

/// The result of a browser's return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackOutcome {
    /// The connection has a grant.
    Done,
    /// The person declined.
    Declined,
    /// No flow has this state, or it has ended.
    Unknown,
    /// The browser was sent by an unexpected server, or the server issued no token.
    Failed(String),
}

/// The result of requesting a token outside of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowStart {
    /// A token is available: no person has to agree.
    Connected,
    /// A person must open a page. The address works for any person who has it.
    Visit {
        /// The address.
        url: String,
        /// The secret that the browser brings back.
        state: String,
    },
}

/// The record of how a flow ended.
#[derive(Serialize, Deserialize)]
struct FlowEndNote {
    /// The error; none if the flow succeeded.
    why: Option<String>,
    #[serde(flatten)]
    expiry: NoteExpiry,
}

impl Credentials {
    /// Completes the flow of a browser that returned with these parameters. Returns the connection, if the flow was
    /// found.
    pub async fn complete_callback(
        self: &Arc<Self>,
        query: &[(String, String)],
    ) -> Result<(CallbackOutcome, Option<ConnectionKey>), VaultError> {
        const UNKNOWN: (CallbackOutcome, Option<ConnectionKey>) = (CallbackOutcome::Unknown, None);
        let one = |name: &str| {
            let mut values = query.iter().filter(|(key, _)| key == name);
            values.next().filter(|_| values.next().is_none()).map(|(_, value)| value.as_str())
        };
        let Some(state) = one("state") else { return Ok(UNKNOWN) };
        let Some(pending) = self.flow(state).await? else { return Ok(UNKNOWN) };
        let purpose = serde_json::from_str::<OAuthPurpose>(&pending.purpose).ok();
        let purpose = purpose.filter(|purpose| purpose.device.is_none());
        let (Some(purpose), Some(key)) = (purpose, pending.key()) else { return Ok(UNKNOWN) };
        // A call that wants to join this flow waits until its end is known.
        let lock = self.connection_lock(&key);
        let _lock = lock.lock().await;
        let Some(flow) = self.end_flow(state).await? else { return Ok(UNKNOWN) };
        let again = Answer::Accept { content: None };
        let is_from =
            metadata::is_from(purpose.issuer.as_deref(), purpose.names_itself, one("iss"));
        let (outcome, answer) = match (one("code"), one("error")) {
            _ if !is_from => {
                (CallbackOutcome::Failed("another server answered than was asked".into()), again)
            }
            (_, Some("access_denied")) => (CallbackOutcome::Declined, Answer::Decline),
            (Some(code), None) => (self.exchange_code(&purpose, &key, code).await?, again),
            (_, _) => (CallbackOutcome::Failed("the server sent no code".into()), again),
        };
        self.answer_waiting(flow, &answer);
        self.save_flow_end(state, &outcome).await?;
        Ok((outcome, Some(key)))
    }

    /// The connection of a state; none if it is unknown or has expired.
    pub async fn flow_key(&self, state: &str) -> Result<Option<ConnectionKey>, VaultError> {
        Ok(self.flow(state).await?.as_ref().and_then(BrowserFlow::key))
    }

    /// How a flow ended. The end can be read once; there is none while the flow continues.
    pub async fn take_flow_end(
        &self,
        state: &str,
    ) -> Result<Option<Result<(), String>>, VaultError> {
        let note = self.vault.take(&end_name(state)).await?;
        let note = note.and_then(|text| serde_json::from_str::<FlowEndNote>(&text).ok());
        let note = note.filter(|note| !note.expiry.has_passed(&*self.host));
        Ok(note.map(|note| note.why.map_or(Ok(()), Err)))
    }

    async fn exchange_code(
        &self,
        purpose: &OAuthPurpose,
        key: &ConnectionKey,
        code: &str,
    ) -> Result<CallbackOutcome, VaultError> {
        let members = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", purpose.redirect.as_deref().unwrap_or_default()),
            ("code_verifier", purpose.verifier.as_deref().unwrap_or_default()),
        ];
        match purpose.endpoint.tokens(self, &members).await {
            Ok(granted) => {
                let grant = OAuthGrant { scopes: purpose.scopes.clone(), ..granted };
                self.save_grant(key, &grant).await?;
                Ok(CallbackOutcome::Done)
            }
            Err(TokenEndpointError::Refused(why) | TokenEndpointError::Failed(why)) => {
                let client = &purpose.endpoint.client;
                client_identity::forget_if_unknown(self, client, &why).await?;
                tracing::warn!(connection = key.display_name(), why, "a code became no token");
                Ok(CallbackOutcome::Failed("the server gave no token for its code".into()))
            }
        }
    }

    /// Records for a while how a flow ended, and deletes expired records.
    async fn save_flow_end(
        &self,
        state: &str,
        outcome: &CallbackOutcome,
    ) -> Result<(), VaultError> {
        let why = match outcome {
            CallbackOutcome::Done => None,
            CallbackOutcome::Declined => Some("the person did not agree".to_owned()),
            CallbackOutcome::Failed(why) => Some(why.clone()),
            CallbackOutcome::Unknown => return Ok(()),
        };
        for name in self.vault.names("ended/").await? {
            let old = self.vault.get(&name).await?;
            let old = old.and_then(|text| serde_json::from_str::<FlowEndNote>(&text).ok());
            if old.is_none_or(|note| note.expiry.has_passed(&*self.host)) {
                self.vault.remove(&name).await?;
            }
        }
        let note = FlowEndNote { why, expiry: NoteExpiry::after(&*self.host, END_NOTE_MS_MAX) };
        let text =
            serde_json::to_string(&note).map_err(|error| VaultError::Machine(error.to_string()))?;
        self.vault.put(&end_name(state), &text).await
    }
}

impl ConnectionProof {
    /// The page where a person agrees to the use of this connection, if that is required. The address works for any person
    /// who has it.
    pub async fn authorize(&self) -> Result<FlowStart, CredentialError> {
        let invalid = CredentialError::Invalid;
        let proof = with_registered_client(self.clone()).await;
        let proof = proof.map_err(|trouble| invalid(trouble.message))?;
        let Some(oauth) = proof.connection.oauth.clone() else {
            return Err(invalid("that connection does not get its tokens by OAuth".into()));
        };
        if described::flow(&proof, &oauth) == OAuthFlow::ClientCredentials {
            let token = super::available(&proof, &oauth).await;
            token.map_err(|trouble| invalid(sentence(trouble.into())))?;
            return Ok(FlowStart::Connected);
        }
        let begun = begin_flow(&proof, &oauth, TokenNeed::default(), None).await;
        let begun = begun.map_err(|none| invalid(sentence(none)))?;
        let state = self.credentials.state_of(&proof.key).await?.unwrap_or_default();
        Ok(begun.map_or(FlowStart::Connected, |(_, url)| FlowStart::Visit { url, state }))
    }
}

/// The vault's name of the record of a flow's end.
fn end_name(state: &str) -> String {
    format!("ended/{}", hash_of_state(state))
}
