//! When a connection must end because its credential no longer admits it: the browser session or its elevation has
//! ended, the token was removed, or its rights have shrunk.

use super::{BrowserSessions, SessionCredential, elevation};
use crate::auth::scope::{Caller, CallerCredential};
use crate::auth::tokens::TokenRegistry;
use lifecycle::Timestamp;
use std::time::Duration;
use store::StoreError;

/// How soon a connection notices what another server on the same store has ended. Changes by this server are
/// announced.
const RECHECK_INTERVAL: Duration = Duration::from_secs(60);

impl BrowserSessions {
    /// Resolves when `caller`, which was admitted earlier, would no longer be admitted as the same caller with the
    /// same rights. Never resolves if the server requires no credential.
    pub(crate) async fn credential_end(
        &self,
        tokens: &TokenRegistry,
        caller: &Caller,
        clock: &engine::Clock,
    ) {
        let mut endings = self.endings.subscribe();
        loop {
            let wait = match self.valid_time(tokens, caller, clock.now()).await {
                Ok(Some(valid)) => valid.min(RECHECK_INTERVAL),
                Ok(None) => {
                    tracing::info!(caller = %caller.name, "a connection ends with its credential");
                    return;
                }
                // A brief store failure must not disconnect every client; a permanent one stops everything else
                // anyway.
                Err(error) => {
                    tracing::warn!(%error, "could not check the credential of a connection");
                    RECHECK_INTERVAL
                }
            };
            tokio::select! {
                changed = endings.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// How long the credential is valid unless it is ended earlier; none if it no longer admits `caller`.
    async fn valid_time(
        &self,
        tokens: &TokenRegistry,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<Option<Duration>, StoreError> {
        let (current, expires) = match &caller.credential {
            CallerCredential::NotAsked => return Ok(Some(Duration::MAX)),
            CallerCredential::Token(id) => (tokens.caller_by_id(id).await?, None),
            CallerCredential::Session(session) => {
                let current = self.current_caller(tokens, session, now).await?;
                (current, Some(session_expiry(tokens, session, now).await?))
            }
        };
        let left_ms = expires.map(|expires| expires.0.saturating_sub(now.0));
        let left_ms = left_ms.map_or(u64::MAX, |left| u64::try_from(left).unwrap_or(0));
        let lasts = current.is_some_and(|current| current.covers(caller)) && left_ms > 0;
        Ok(lasts.then_some(Duration::from_millis(left_ms)))
    }

    async fn current_caller(
        &self,
        tokens: &TokenRegistry,
        session: &SessionCredential,
        now: Timestamp,
    ) -> Result<Option<Caller>, StoreError> {
        let Some(found) = self.find(tokens, &session.id, now).await? else { return Ok(None) };
        let elevation = session.elevation.clone();
        Self::session_caller(tokens, (session.id.clone(), found), elevation, now).await
    }
}

/// When the session ends, or its elevation, which ends earlier.
async fn session_expiry(
    tokens: &TokenRegistry,
    session: &SessionCredential,
    now: Timestamp,
) -> Result<Timestamp, StoreError> {
    let Some(key) = &session.elevation else { return Ok(session.expires) };
    let found = elevation::find(tokens.records(), key, &session.id, now).await?;
    Ok(Timestamp(found.map_or(now.0, |found| found.expires.0.min(session.expires.0))))
}
