//! The device flow (RFC 8628): a person agrees in any browser, and we ask until they have. Goes on after a restart.

use super::grant::Grant;
use super::token::{Counter, Denied};
use super::{Purpose, vault_trouble};
use crate::proof::Trust;
use crate::vault::VaultError;
use lifecycle::Answer;
use std::sync::Arc;
use std::time::Duration;
use tools::envelope::Trouble;
use url::Url;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// How often we ask where the server does not say, and the bounds of what it may say.
const INTERVAL_USUALLY: u64 = 5;
const INTERVAL_MAX: u64 = 60;

/// What is added whenever we are told that we ask too often.
const SLOWER: Duration = Duration::from_secs(5);

/// What a device begins with.
pub(super) struct Begun {
    pub(super) device_code: String,
    pub(super) interval: u64,
    /// Where the person goes.
    pub(super) url: String,
    /// What they type there, where the address does not say it.
    pub(super) user_code: String,
}

/// Begins: what the person visits, and what we ask with.
pub(super) async fn begin(
    trust: &Trust,
    counter: &Counter,
    endpoint: &Url,
    scopes: &[String],
) -> Result<Begun, Trouble> {
    let scope = scopes.join(" ");
    let members: Vec<_> =
        (!scope.is_empty()).then_some(("scope", scope.as_str())).into_iter().collect();
    let said = counter.post(trust, endpoint.as_str(), &members).await.map_err(|denied| {
        let (Denied::Refused(why) | Denied::Failed(why)) = denied;
        super::discover::trouble(&format!("its authorization server begins no device flow: {why}"))
    })?;
    let text = |name: &str| said[name].as_str().map(str::to_owned);
    let url = text("verification_uri_complete").or_else(|| text("verification_uri"));
    let (Some(device_code), Some(user_code), Some(url)) =
        (text("device_code"), text("user_code"), url)
    else {
        return Err(super::discover::trouble("its authorization server says no device code"));
    };
    tools::scrub::learn(&device_code);
    let interval = said["interval"].as_u64().unwrap_or(INTERVAL_USUALLY).min(INTERVAL_MAX);
    Ok(Begun { device_code, interval, url, user_code })
}

/// Asks until the person has agreed or not, beside everything else.
pub(super) fn poll(trust: &Arc<Trust>, state: String, purpose: Purpose) {
    let (polling, closing) = (Arc::clone(trust), trust.closing.clone());
    let task = async move {
        if let Err(error) = ask(&polling, &state, &purpose).await {
            tracing::warn!("a device flow ended: {error}");
        }
    };
    trust.tasks.spawn(async move { closing.run_until_cancelled(task).await });
}

async fn ask(trust: &Arc<Trust>, state: &str, purpose: &Purpose) -> Result<(), VaultError> {
    let Some((device_code, interval)) = &purpose.device else { return Ok(()) };
    let mut pause = Duration::from_secs((*interval).clamp(1, INTERVAL_MAX));
    let members = [("grant_type", GRANT), ("device_code", device_code.as_str())];
    loop {
        tokio::time::sleep(pause).await;
        // The visit's end is the end of this: it is called off, or over.
        let Some(visit) = trust.expected(state).await? else { return Ok(()) };
        let Some(key) = visit.key() else { return Ok(()) };
        let answer = match purpose.counter.tokens(trust, &members).await {
            Ok(granted) => {
                let grant = Grant { scopes: purpose.scopes.clone(), ..granted };
                let turn = trust.turn(&key);
                let _turn = turn.lock().await;
                trust.keep_grant(&key, &grant).await?;
                Answer::Accept { content: None }
            }
            Err(Denied::Refused(word)) if word == "authorization_pending" => continue,
            Err(Denied::Refused(word)) if word == "slow_down" => {
                pause += SLOWER;
                continue;
            }
            Err(Denied::Refused(word)) if word == "access_denied" => Answer::Decline,
            // Too late, or unknown: those who wait ask anew.
            Err(Denied::Refused(_)) => Answer::Accept { content: None },
            Err(Denied::Failed(_)) => {
                pause = (pause + SLOWER).min(Duration::from_secs(INTERVAL_MAX));
                continue;
            }
        };
        if let Some(visit) = trust.end(state).await? {
            trust.wake(visit, &answer);
        }
        return Ok(());
    }
}

/// Goes on with what was under way when the server stopped.
pub(crate) async fn resume(trust: &Arc<Trust>) -> Result<(), Trouble> {
    let names = trust.vault.names("visit/").await.map_err(|error| vault_trouble(&error))?;
    for name in names {
        let known = trust.vault.get(&name).await.map_err(|error| vault_trouble(&error))?;
        let visit = known.and_then(|text| serde_json::from_str::<crate::visits::Visit>(&text).ok());
        if visit.as_ref().is_some_and(|visit| visit.is_over(&trust.engine)) {
            // Nobody came, and nobody is expected any more.
            trust.vault.remove(&name).await.map_err(|error| vault_trouble(&error))?;
            continue;
        }
        let purpose = visit.and_then(|visit| serde_json::from_str::<Purpose>(&visit.purpose).ok());
        if let Some(purpose) = purpose.filter(|purpose| purpose.device.is_some()) {
            poll(trust, purpose.state.clone(), purpose);
        }
    }
    Ok(())
}
