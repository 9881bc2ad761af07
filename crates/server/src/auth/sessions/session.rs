//! Browser sessions as they are stored: started with a code, ended by a person, by time, or with their token.

use super::expiring::{ExpiringKind, ExpiringValue, ExpiryTime, remove, secret_key};
use crate::auth::tokens::{MintedSecret, TokenError, TokenId};
use lifecycle::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use store::{RecordStore, StoreError};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Maximum number of sessions; those that expire first are removed to make space.
const SESSIONS_MAX: usize = 1_000;

const NAME: &str = "browser_session";

/// A session whose key cannot be extracted from the browser. It is not renewed.
const KEY_SESSION: ExpiringKind =
    ExpiringKind { name: NAME, age_ms_max: 7 * DAY_MS, retained_ms: 0, n_max: SESSIONS_MAX };

/// A session of one tab, whose bearer secret scripts can read: valid for a working day.
const TAB_SESSION: ExpiringKind = ExpiringKind { age_ms_max: DAY_MS / 2, ..KEY_SESSION };

/// The prefix of session ids.
const ID_PREFIX: &str = "web_";

/// The prefix of tabs' bearer secrets, by which people and scanners recognise a leaked one.
const BEARER_PREFIX: &str = "alb_";

/// Maximum length of a stored browser description.
const AGENT_CHARS_MAX: usize = 200;

/// Identifies a session. Not a secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct BrowserSessionId(String);

impl fmt::Display for BrowserSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl BrowserSessionId {
    pub(super) fn from_header(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A session as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SessionRecord {
    /// The token that the session acts for.
    pub(super) token: TokenId,
    pub(super) proof: SessionProof,
    pub(super) created: i64,
    /// The port on which the server listened. A process that listens there later could forward requests to this
    /// server at its new port; such requests are not valid.
    pub(super) port: u16,
    /// The browser's description of itself.
    pub(super) agent: String,
}

/// How requests prove that they belong to a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SessionProof {
    /// Signed with the private half of this key, in base64url.
    Key(String),
    /// A bearer secret with this digest, for browsers without keys.
    Tab(String),
}

/// The values that a browser sends to start a session.
pub(crate) struct NewSession<'a> {
    /// Its public key; none if it has no keys.
    pub(crate) key: Option<&'a str>,
    pub(crate) agent: &'a str,
}

/// A session that was just started.
pub(crate) struct StartedSession {
    pub(crate) id: BrowserSessionId,
    pub(crate) expires: Timestamp,
    /// The bearer secret, for a tab without keys.
    pub(crate) bearer: Option<String>,
}

/// A session as it is listed.
pub(crate) struct ListedSession {
    pub(crate) id: BrowserSessionId,
    pub(crate) token: TokenId,
    pub(crate) created: Timestamp,
    pub(crate) expires: Timestamp,
    pub(crate) has_key: bool,
    pub(crate) agent: String,
}

pub(super) async fn start(
    records: &dyn RecordStore,
    token: TokenId,
    new: NewSession<'_>,
    port: u16,
    now: Timestamp,
) -> Result<StartedSession, TokenError> {
    let id = BrowserSessionId(format!("{ID_PREFIX}{}", MintedSecret::bare()?));
    let (kind, proof, bearer) = match new.key {
        Some(key) => (KEY_SESSION, SessionProof::Key(key.to_owned()), None),
        None => {
            let secret = MintedSecret::bare()?;
            let bearer = format!("{BEARER_PREFIX}{id}.{secret}");
            (TAB_SESSION, SessionProof::Tab(secret_key(&secret)), Some(bearer))
        }
    };
    let agent = new.agent.chars().take(AGENT_CHARS_MAX).collect();
    let record = SessionRecord { token, proof, created: now.0, port, agent };
    let expires = kind.add(records, &id.0, record, now).await?;
    Ok(StartedSession { id, expires, bearer })
}

/// Returns the session of this id while it is valid.
pub(super) async fn find(
    records: &dyn RecordStore,
    id: &BrowserSessionId,
    now: Timestamp,
) -> Result<Option<ExpiringValue<SessionRecord>>, StoreError> {
    KEY_SESSION.valid(records, &id.0, now).await
}

/// Returns every valid session, newest first.
pub(super) async fn list_stored(
    records: &dyn RecordStore,
    now: Timestamp,
) -> Result<Vec<ListedSession>, StoreError> {
    let now = ExpiryTime::read(records, now).await?;
    let mut sessions: Vec<_> = records
        .all(NAME)
        .await?
        .into_iter()
        .filter_map(|record| {
            let stored =
                serde_json::from_str::<ExpiringValue<SessionRecord>>(&record.value).ok()?;
            stored.is_valid(now).then_some(ListedSession {
                id: BrowserSessionId(record.key),
                token: stored.value.token,
                created: Timestamp(stored.value.created),
                expires: Timestamp(stored.expires),
                has_key: matches!(stored.value.proof, SessionProof::Key(_)),
                agent: stored.value.agent,
            })
        })
        .collect();
    sessions.sort_by_key(|session| std::cmp::Reverse(session.created.0));
    Ok(sessions)
}

/// Ends a session; false if it does not exist.
pub(super) async fn end_stored(
    records: &dyn RecordStore,
    id: &BrowserSessionId,
) -> Result<bool, StoreError> {
    match records.get(NAME, &id.0).await? {
        Some(record) => remove(records, NAME, &record.key, record.version).await,
        None => Ok(false),
    }
}

/// Whether a bearer secret is that of a tab.
pub(super) fn is_tab_bearer(secret: &str) -> bool {
    secret.starts_with(BEARER_PREFIX)
}

/// Returns the session that a tab's bearer secret names, and the digest to compare.
pub(super) fn read_tab_bearer(bearer: &str) -> Option<(BrowserSessionId, String)> {
    let (id, secret) = bearer.strip_prefix(BEARER_PREFIX)?.split_once('.')?;
    Some((BrowserSessionId(id.to_owned()), secret_key(secret)))
}
