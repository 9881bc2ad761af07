//! Hand-offs: a page where a person enters the secret of a connection, so that no agent sees it. What they type is taken
//! literally, never as a reference to another place.

use crate::auth_template::{method, variables};
use crate::oauth_flows::{self, WaitingCall};
use crate::{
    ConnectionConfig, ConnectionKey, ConnectionProof, CredentialError, Credentials, SecretText,
    VaultError, oauth,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tools::envelope::ToolFailure;
use tools::{NoProof, ToolRequest};

/// The path of the page. The state follows in the fragment, which browsers do not send.
const PAGE: &str = "/connect";

/// Marks a flow as a hand-off.
#[derive(Serialize, Deserialize)]
struct HandoffPurpose {
    handoff: bool,
}

/// The form of a hand-off page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffForm {
    /// The connection, in the form that people read.
    pub connection: String,
    /// The title of the source.
    pub api: String,
    /// The host that receives the values; none if the source has no address.
    pub host: Option<String>,
    /// The source's label of its authentication method.
    pub label: String,
    /// The names of the values.
    pub fields: Vec<String>,
}

/// Asks the person behind a call to enter what is missing.
pub(crate) async fn ask_for_secret(
    proof: &ConnectionProof,
    call: &ToolRequest,
) -> Result<(), NoProof> {
    let url = begin_handoff(proof, Some(call)).await?;
    let message = format!(
        "The connection {} has no secret yet. Enter it on the page behind this link; only the server sees it.",
        proof.key.display_name()
    );
    Ok(oauth_flows::ask_to_sign_in(call, message, url).await?)
}

/// Begins a hand-off, or joins the current one. Returns the address of its page.
async fn begin_handoff(proof: &ConnectionProof, call: WaitingCall<'_>) -> Result<String, NoProof> {
    let credentials = &proof.credentials;
    let origin = credentials.origin().await.ok_or_else(|| oauth_flows::no_browser(proof))?;
    let lock = credentials.connection_lock(&proof.key);
    let _lock = lock.lock().await;
    let prepare = async |state: &str| {
        let page =
            origin.join(PAGE).map_err(|_| ToolFailure::new("internal", "We have no address."))?;
        let purpose = serde_json::to_string(&HandoffPurpose { handoff: true }).unwrap_or_default();
        Ok((format!("{page}#{state}"), purpose))
    };
    Ok(credentials.join_or_begin_flow(&proof.key, call, |_| true, prepare).await?.url)
}

impl Credentials {
    /// The connection of a hand-off; none if the state is unknown or has expired.
    pub async fn handoff_key(&self, state: &str) -> Result<Option<ConnectionKey>, VaultError> {
        let flow = self.flow(state).await?;
        Ok(flow.and_then(|flow| {
            let purpose = serde_json::from_str::<HandoffPurpose>(&flow.purpose).ok();
            purpose.filter(|purpose| purpose.handoff)?;
            flow.key()
        }))
    }
}

impl ConnectionProof {
    /// The address of a page where a person enters this connection's secret, once.
    pub async fn hand_off(&self) -> Result<String, CredentialError> {
        let invalid = CredentialError::Invalid;
        if self.connection.oauth.is_some() {
            return Err(invalid("that connection gets its tokens by OAuth".into()));
        }
        begin_handoff(self, None).await.map_err(|none| invalid(oauth::sentence(none)))
    }

    /// The form of a hand-off page.
    pub fn handoff_form(&self) -> HandoffForm {
        let method = method(&self.credentials.methods(&self.key), self.connection.template_name());
        let fields = method.as_ref().map(variables).unwrap_or_default();
        let label = method.map(|method| method.label).unwrap_or_default();
        let snapshot = self.credentials.host.catalogue();
        let card = snapshot.card(self.key.slug.as_str());
        let api = card.map_or_else(|| self.key.slug.to_string(), |card| card.title.clone());
        let host = self.credentials.target(&self.key).and_then(|url| {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            Some(format!("{}{port}", url.host_str()?))
        });
        HandoffForm { connection: self.key.display_name(), api, host, label, fields }
    }

    /// The connection with the values that a person entered.
    pub fn with_entered(
        &self,
        mut values: BTreeMap<String, String>,
    ) -> Result<ConnectionConfig, CredentialError> {
        let invalid = CredentialError::Invalid;
        let form = self.handoff_form();
        values.retain(|name, value| form.fields.contains(name) && !value.is_empty());
        if let Some(missing) = form.fields.iter().find(|field| !values.contains_key(*field)) {
            return Err(invalid(format!("{missing} is missing")));
        }
        let mut connection = (*self.connection).clone();
        let texts = values.into_iter().map(|(name, value)| (name, SecretText::Plain(value)));
        connection.values.extend(texts);
        connection.template = Some(connection.template_name().to_owned());
        connection.check_members().map_err(invalid)?;
        Ok(connection)
    }
}
