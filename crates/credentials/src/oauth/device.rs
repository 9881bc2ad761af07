//! The device flow (RFC 8628): a person agrees in any browser, and the server polls until they have. It continues after
//! a restart.

use super::grant::OAuthGrant;
use super::token::{TokenEndpoint, TokenEndpointError};
use super::{OAuthPurpose, vault_trouble};
use crate::oauth_flows::BrowserFlow;
use crate::{Credentials, VaultError};
use lifecycle::Answer;
use std::sync::Arc;
use std::time::Duration;
use tools::envelope::ToolFailure;
use url::Url;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The polling interval where the server names none, and the longest that it may name, in seconds.
const INTERVAL_USUALLY: u64 = 5;
const INTERVAL_MAX: u64 = 60;

/// What `slow_down` adds to the interval.
const SLOWER: Duration = Duration::from_secs(5);

/// The answer to a device authorization request.
pub(super) struct DeviceStart {
    pub(super) device_code: String,
    pub(super) interval: u64,
    /// The address that the person opens.
    pub(super) url: String,
    /// The code that the person types there, if the address does not contain it.
    pub(super) user_code: String,
}

/// Sends the device authorization request.
pub(super) async fn begin_device_flow(
    credentials: &Credentials,
    endpoint: &TokenEndpoint,
    device_url: &Url,
    scopes: &[String],
) -> Result<DeviceStart, ToolFailure> {
    let scope = scopes.join(" ");
    let members: Vec<_> =
        (!scope.is_empty()).then_some(("scope", scope.as_str())).into_iter().collect();
    let response =
        endpoint.post(credentials, device_url.as_str(), &members).await.map_err(|denied| {
            let (TokenEndpointError::Refused(why) | TokenEndpointError::Failed(why)) = denied;
            super::discover::trouble(&format!(
                "its authorization server begins no device flow: {why}"
            ))
        })?;
    let text = |name: &str| response[name].as_str().map(str::to_owned);
    let url = text("verification_uri_complete").or_else(|| text("verification_uri"));
    let (Some(device_code), Some(user_code), Some(url)) =
        (text("device_code"), text("user_code"), url)
    else {
        return Err(super::discover::trouble("its authorization server sent no device code"));
    };
    tools::scrub::learn(&device_code);
    let interval = response["interval"].as_u64().unwrap_or(INTERVAL_USUALLY).min(INTERVAL_MAX);
    Ok(DeviceStart { device_code, interval, url, user_code })
}

/// Polls in a task until the person has agreed or declined.
pub(super) fn poll(credentials: &Arc<Credentials>, state: String, purpose: OAuthPurpose) {
    let (polling, closing) = (Arc::clone(credentials), credentials.closing.clone());
    let task = async move {
        if let Err(error) = poll_token(&polling, &state, &purpose).await {
            tracing::warn!("a device flow ended: {error}");
        }
    };
    credentials.tasks.spawn(async move { closing.run_until_cancelled(task).await });
}

async fn poll_token(
    credentials: &Arc<Credentials>,
    state: &str,
    purpose: &OAuthPurpose,
) -> Result<(), VaultError> {
    let Some((device_code, interval)) = &purpose.device else { return Ok(()) };
    let mut pause = Duration::from_secs((*interval).clamp(1, INTERVAL_MAX));
    let members = [("grant_type", GRANT), ("device_code", device_code.as_str())];
    loop {
        tokio::time::sleep(pause).await;
        // The flow was cancelled, or it has expired.
        let Some(flow) = credentials.flow(state).await? else { return Ok(()) };
        let Some(key) = flow.key() else { return Ok(()) };
        let answer = match purpose.endpoint.tokens(credentials, &members).await {
            Ok(granted) => {
                let grant = OAuthGrant { scopes: purpose.scopes.clone(), ..granted };
                let lock = credentials.connection_lock(&key);
                let _lock = lock.lock().await;
                credentials.save_grant(&key, &grant).await?;
                Answer::Accept { content: None }
            }
            Err(TokenEndpointError::Refused(word)) if word == "authorization_pending" => continue,
            Err(TokenEndpointError::Refused(word)) if word == "slow_down" => {
                pause += SLOWER;
                continue;
            }
            Err(TokenEndpointError::Refused(word)) if word == "access_denied" => Answer::Decline,
            // Expired or unknown: the waiting calls start another flow.
            Err(TokenEndpointError::Refused(_)) => Answer::Accept { content: None },
            Err(TokenEndpointError::Failed(_)) => {
                pause = (pause + SLOWER).min(Duration::from_secs(INTERVAL_MAX));
                continue;
            }
        };
        if let Some(flow) = credentials.end_flow(state).await? {
            credentials.answer_waiting(flow, &answer);
        }
        return Ok(());
    }
}

impl Credentials {
    /// Continues the device flows that were open when the server stopped, and deletes expired flows.
    pub async fn resume_flows(self: &Arc<Self>) -> Result<(), ToolFailure> {
        let failed = |error: VaultError| vault_trouble(&error);
        for name in self.vault.names("visit/").await.map_err(failed)? {
            let text = self.vault.get(&name).await.map_err(failed)?;
            let flow = text.and_then(|text| serde_json::from_str::<BrowserFlow>(&text).ok());
            if flow.as_ref().is_some_and(|flow| flow.is_expired(&*self.host)) {
                self.vault.remove(&name).await.map_err(failed)?;
                continue;
            }
            let purpose =
                flow.and_then(|flow| serde_json::from_str::<OAuthPurpose>(&flow.purpose).ok());
            if let Some(purpose) = purpose.filter(|purpose| purpose.device.is_some()) {
                poll(self, purpose.state.clone(), purpose);
            }
        }
        Ok(())
    }
}
