//! Browser steps of a connection: a person signs in at an authorization server, or enters a secret.

use crate::{ConnectionView, SourceError, SourceRegistry};
use credentials::{CallbackOutcome, ConnectionKey, ConnectionProof, FlowStart, HandoffForm};
use lifecycle::Answer;
use std::collections::BTreeMap;
use tools::IntegrationSlug;

impl SourceRegistry {
    /// The page where a person authorizes this connection; none is needed if the server issues a token directly.
    pub async fn authorize(
        &self,
        slug: &IntegrationSlug,
        owner: &str,
        name: &str,
    ) -> Result<FlowStart, SourceError> {
        Ok(self.proof(slug, owner, name).await?.authorize().await?)
    }

    /// Completes the flow of a browser that returned from an authorization server with these parameters.
    pub async fn complete_callback(
        &self,
        query: &[(String, String)],
    ) -> Result<CallbackOutcome, SourceError> {
        let (outcome, key) = self.0.credentials.complete_callback(query).await?;
        if let (CallbackOutcome::Done, Some(key)) = (&outcome, key) {
            self.reread_unreadable(key.slug);
        }
        Ok(outcome)
    }

    /// The connection of a state; none if it is unknown or has expired.
    pub async fn awaited(&self, state: &str) -> Result<Option<ConnectionView>, SourceError> {
        let Some(key) = self.0.credentials.flow_key(state).await? else { return Ok(None) };
        Ok(self.connection_view(&key.slug, &key.owner, &key.name).await)
    }

    /// Ends the current flow of this connection. Returns whether there was one.
    pub async fn cancel_flow(
        &self,
        slug: &IntegrationSlug,
        owner: &str,
        name: &str,
    ) -> Result<bool, SourceError> {
        let proof = self.proof(slug, owner, name).await?;
        Ok(self.0.credentials.cancel_flow(&proof.key).await?)
    }

    /// The address of a page where a person enters this connection's secret, once.
    pub async fn hand_off(
        &self,
        slug: &IntegrationSlug,
        owner: &str,
        name: &str,
    ) -> Result<String, SourceError> {
        Ok(self.proof(slug, owner, name).await?.hand_off().await?)
    }

    /// The form for the person who has this state; none if it is unknown or has expired.
    pub async fn handoff_form(&self, state: &str) -> Result<Option<HandoffForm>, SourceError> {
        Ok(self.handoff_proof(state).await?.map(|proof| proof.handoff_form()))
    }

    /// Connects a source with what a person entered, once. Returns whether the state was known. Calls that wait for it
    /// continue.
    pub async fn enter_secret(
        &self,
        state: &str,
        values: BTreeMap<String, String>,
    ) -> Result<bool, SourceError> {
        let Some(proof) = self.handoff_proof(state).await? else { return Ok(false) };
        // Rejected values do not use up the page.
        let connection = proof.with_entered(values)?;
        // Of concurrent submissions, one is accepted.
        let Some(flow) = self.0.credentials.end_flow(state).await? else { return Ok(false) };
        self.connect(&proof.key.slug, &proof.key.name, connection).await?;
        self.0.credentials.answer_waiting(flow, &Answer::Accept { content: None });
        Ok(true)
    }

    async fn handoff_proof(&self, state: &str) -> Result<Option<ConnectionProof>, SourceError> {
        let Some(key) = self.0.credentials.handoff_key(state).await? else { return Ok(None) };
        let ConnectionKey { slug, owner, name } = key;
        Ok(self.proof(&slug, &owner, &name).await.ok())
    }

    /// Reads a source again that could not be read without a token.
    fn reread_unreadable(&self, slug: IntegrationSlug) {
        let (sources, closing) = (self.clone(), self.0.closing.clone());
        let reading = async move {
            let snapshot = sources.0.setup.engine.catalogue().snapshot();
            let is_unreadable =
                snapshot.card(slug.as_str()).is_some_and(|card| card.trouble.is_some());
            if is_unreadable && let Err(error) = sources.refresh(&slug).await {
                tracing::warn!(source = %slug, "{error}");
            }
        };
        self.0.tasks.spawn(async move { closing.run_until_cancelled(reading).await });
    }
}
