//! Elevations: for an hour, a browser tab has the rights of the token that created its code. The browser holds the id
//! in the memory of one tab and stores it nowhere.

use super::expiring::{ExpiringKind, secret_key};
use super::session::BrowserSessionId;
use crate::auth::tokens::{MintedSecret, TokenError, TokenId};
use lifecycle::Timestamp;
use serde::{Deserialize, Serialize};
use store::{RecordStore, StoreError};

const ELEVATION: ExpiringKind = ExpiringKind {
    name: "browser_elevation",
    age_ms_max: 60 * 60 * 1_000,
    retained_ms: 0,
    n_max: 1_000,
};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ElevationRecord {
    session: BrowserSessionId,
    token: TokenId,
}

/// The key of an elevation's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ElevationKey(String);

impl ElevationKey {
    pub(super) fn of_secret(secret: &str) -> Self {
        Self(secret_key(secret))
    }
}

/// An elevation that was just granted.
pub(crate) struct GrantedElevation {
    pub(crate) elevation: String,
    pub(crate) expires: Timestamp,
}

pub(super) async fn grant(
    records: &dyn RecordStore,
    session: &BrowserSessionId,
    token: TokenId,
    now: Timestamp,
) -> Result<GrantedElevation, TokenError> {
    let elevation = MintedSecret::bare()?;
    let record = ElevationRecord { session: session.clone(), token };
    let expires = ELEVATION.add(records, &secret_key(&elevation), record, now).await?;
    Ok(GrantedElevation { elevation, expires })
}

/// The token that a session is raised to, and until when.
pub(super) struct ValidElevation {
    pub(super) token: TokenId,
    pub(super) expires: Timestamp,
}

/// Returns the elevation under a key; none if it ended or belongs to another session.
pub(super) async fn find(
    records: &dyn RecordStore,
    key: &ElevationKey,
    session: &BrowserSessionId,
    now: Timestamp,
) -> Result<Option<ValidElevation>, StoreError> {
    let found = ELEVATION.valid::<ElevationRecord>(records, &key.0, now).await?;
    let found = found.filter(|found| found.value.session == *session);
    Ok(found.map(|found| ValidElevation {
        token: found.value.token,
        expires: Timestamp(found.expires),
    }))
}
