//! Flows in which a person opens a page in a browser: at an authorization server, or a page of this server where they
//! enter a secret. Each is sealed in the vault under the hash of its secret `state`, so that a person who returns
//! after a restart is recognised. A flow ends once. Executions that need the same flow share it.

use crate::note_expiry::NoteExpiry;
use crate::oauth::vault_trouble;
use crate::vault::random;
use crate::{ConnectionKey, ConnectionProof, CredentialHost, Credentials, VaultError};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lifecycle::{Answer, ExecutionId, Failure, ToolPrompt};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tools::envelope::ToolFailure;
use tools::{IntegrationSlug, NoProof, ToolRequest};

/// How long a person may take. Calls that wait for the person wait longer, and then receive another link.
const FLOW_MS_MAX: i64 = 30 * 60 * 1_000;

/// Maximum number of executions that share one flow; further ones start another.
const SHARED_MAX: usize = 100;

/// How long a question may take to appear after its flow has ended: the journal was still appending it.
const QUESTION_WAIT_MAX: Duration = Duration::from_secs(10);

/// A flow that has not ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BrowserFlow {
    slug: String,
    owner: String,
    name: String,
    /// The address that the person opens.
    pub(crate) url: String,
    /// The executions that wait for the end of the flow.
    executions: Vec<ExecutionId>,
    #[serde(flatten)]
    expiry: NoteExpiry,
    /// The data for completing the flow: a JSON text of the module that began it.
    pub(crate) purpose: String,
}

/// The call that waits for a flow; none if a person started it directly.
pub(crate) type WaitingCall<'c> = Option<&'c ToolRequest>;

impl BrowserFlow {
    /// The connection that it is for.
    pub(crate) fn key(&self) -> Option<ConnectionKey> {
        let slug = IntegrationSlug::parse(&self.slug).ok()?;
        Some(ConnectionKey { slug, owner: self.owner.clone(), name: self.name.clone() })
    }

    /// Whether its time has passed.
    pub(crate) fn is_expired(&self, host: &dyn CredentialHost) -> bool {
        self.expiry.has_passed(host)
    }
}

/// A secret for one flow.
fn new_state() -> Result<String, VaultError> {
    let bytes: [u8; 24] = random()?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

impl Credentials {
    /// The flow of this connection: the current one, if `fits` accepts its purpose, or a new one. `prepare` makes the
    /// address and the purpose of a new one from its state. The caller holds the connection's lock.
    pub(crate) async fn join_or_begin_flow(
        &self,
        key: &ConnectionKey,
        waiting: WaitingCall<'_>,
        fits: impl Fn(&str) -> bool,
        prepare: impl AsyncFnOnce(&str) -> Result<(String, String), ToolFailure>,
    ) -> Result<BrowserFlow, ToolFailure> {
        let failed = |error: VaultError| vault_trouble(&error);
        let execution = waiting.map(|call| call.execution);
        let current = self.current_flow(key).await.map_err(failed)?;
        if let Some((state, mut flow)) = current.filter(|(_, flow)| fits(&flow.purpose)) {
            if let Some(execution) =
                execution.filter(|execution| !flow.executions.contains(execution))
            {
                flow.executions.push(execution);
                self.save_flow(&state, &flow).await.map_err(failed)?;
            }
            return Ok(flow);
        }
        let state = new_state().map_err(failed)?;
        let (url, purpose) = prepare(&state).await?;
        let expiry = NoteExpiry::after(&*self.host, FLOW_MS_MAX);
        let (slug, owner, name) = (key.slug.to_string(), key.owner.clone(), key.name.clone());
        let executions = execution.into_iter().collect();
        let flow = BrowserFlow { slug, owner, name, url, executions, expiry, purpose };
        self.save_flow(&state, &flow).await.map_err(failed)?;
        self.vault.put(&state_name(key), &state).await.map_err(failed)?;
        Ok(flow)
    }

    /// The state of the current flow of a connection.
    pub(crate) async fn state_of(&self, key: &ConnectionKey) -> Result<Option<String>, VaultError> {
        self.vault.get(&state_name(key)).await
    }

    async fn current_flow(
        &self,
        key: &ConnectionKey,
    ) -> Result<Option<(String, BrowserFlow)>, VaultError> {
        let Some(state) = self.vault.get(&state_name(key)).await? else { return Ok(None) };
        let text = self.vault.get(&flow_name(&state)).await?;
        let is_open = |flow: &BrowserFlow| flow.executions.len() < SHARED_MAX;
        Ok(self.unexpired(text).filter(is_open).map(|flow| (state, flow)))
    }

    async fn save_flow(&self, state: &str, flow: &BrowserFlow) -> Result<(), VaultError> {
        let text =
            serde_json::to_string(flow).map_err(|error| VaultError::Machine(error.to_string()))?;
        self.vault.put(&flow_name(state), &text).await
    }

    /// The flow of a state. It continues.
    pub(crate) async fn flow(&self, state: &str) -> Result<Option<BrowserFlow>, VaultError> {
        let text = self.vault.get(&flow_name(state)).await?;
        Ok(self.unexpired(text))
    }

    /// Ends the flow of a state. Of concurrent callers, one receives it.
    pub async fn end_flow(&self, state: &str) -> Result<Option<BrowserFlow>, VaultError> {
        let text = self.vault.take(&flow_name(state)).await?;
        let flow = self.unexpired(text);
        if let Some(key) = flow.as_ref().and_then(BrowserFlow::key) {
            self.vault.remove(&state_name(&key)).await?;
        }
        Ok(flow)
    }

    fn unexpired(&self, text: Option<String>) -> Option<BrowserFlow> {
        let flow: BrowserFlow = serde_json::from_str(&text?).ok()?;
        (!flow.is_expired(&*self.host)).then_some(flow)
    }

    /// Ends the current flow of a connection and declines the questions that wait for it. Returns whether there was one.
    pub async fn cancel_flow(self: &Arc<Self>, key: &ConnectionKey) -> Result<bool, VaultError> {
        let Some(state) = self.vault.get(&state_name(key)).await? else { return Ok(false) };
        self.give_up_flow(&state).await
    }

    /// Ends the flow of a state and declines the questions that wait for it. Returns whether there was one.
    pub async fn give_up_flow(self: &Arc<Self>, state: &str) -> Result<bool, VaultError> {
        let flow = self.end_flow(state).await?;
        let was_there = flow.is_some();
        flow.into_iter().for_each(|flow| self.answer_waiting(flow, &Answer::Decline));
        Ok(was_there)
    }

    /// Answers the questions of the executions that wait for a flow. Returns without waiting for that.
    pub fn answer_waiting(&self, flow: BrowserFlow, answer: &Answer) {
        for execution in flow.executions {
            let answering = self.host.answer_link(execution, flow.url.clone(), answer.clone());
            let closing = self.closing.clone();
            self.tasks.spawn(async move {
                closing
                    .run_until_cancelled(tokio::time::timeout(QUESTION_WAIT_MAX, answering))
                    .await
            });
        }
    }
}

/// Sends the person behind a call to a page, and waits until they are back. Nothing has been done for the call yet.
pub(crate) async fn ask_to_sign_in(
    call: &ToolRequest,
    message: String,
    url: String,
) -> Result<(), Failure> {
    call.ask_person(ToolPrompt::Link { message, url, is_prior: true }).await.map(drop)
}

/// Why a call that needs a person fails if no browser can reach this program.
pub(crate) fn no_browser(proof: &ConnectionProof) -> NoProof {
    let why = format!(
        "The connection {} needs a person in a browser, and this program serves none: use `airlock serve`.",
        proof.key.display_name()
    );
    ToolFailure::new("oauth_reauth_required", why).into()
}

/// The vault's name of a flow.
fn flow_name(state: &str) -> String {
    format!("visit/{}", hash_of_state(state))
}

/// The hash of a state, as used in names of the vault.
pub(crate) fn hash_of_state(state: &str) -> String {
    Sha256::digest(state.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The vault's name of the state of a connection's current flow.
fn state_name(key: &ConnectionKey) -> String {
    format!("waits/{key}")
}
