//! One-use codes: a sign-in code starts a browser session, an elevation code raises one for an hour.
//!
//! A code is sent behind `#` in a link, which no server and no log sees. A used code is retained until it would have
//! expired, so that the page can explain why a link does not work.

use super::expiring::{ExpiringKind, ExpiringValue, ExpiryTime, secret_key, to_json};
use crate::auth::tokens::{MintedSecret, TokenError, TokenId};
use lifecycle::Timestamp;
use serde::{Deserialize, Serialize};
use store::{RecordStore, StoreError};

/// How long a used or expired code can be distinguished from an unknown one.
const RETAINED_MS: i64 = 24 * 60 * 60 * 1_000;

/// Maximum number of codes, including used ones.
const CODES_MAX: usize = 1_000;

/// Kinds of records of the previous version, whose sessions were bound to the name of a token.
const PREVIOUS_KINDS: [&str; 2] = ["browser_code", "browser_bearer"];

/// The purpose of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodePurpose {
    /// Starts a session.
    SignIn,
    /// Raises a session to the rights of the token that created the code.
    Elevation,
}

impl CodePurpose {
    const fn kind(self) -> ExpiringKind {
        let (name, age_ms_max) = match self {
            // A link that is not used soon was printed for another browser, or forgotten.
            Self::SignIn => ("sign_in_code", 15 * 60 * 1_000),
            // A person copies it from one window to the next.
            Self::Elevation => ("elevation_code", 5 * 60 * 1_000),
        };
        ExpiringKind { name, age_ms_max, retained_ms: RETAINED_MS, n_max: CODES_MAX }
    }
}

/// A code that has not been used yet.
pub(crate) struct MintedCode {
    pub(crate) code: String,
    pub(crate) expires: Timestamp,
}

/// Why a code is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeRefusal {
    /// This server never created it, or did so long ago.
    Unknown,
    /// Used before.
    Used,
    /// Older than its lifetime.
    Expired,
    /// The token that made it was removed.
    TokenRemoved,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct CodeRecord {
    token: TokenId,
    #[serde(default)]
    is_used: bool,
}

/// Creates a code that acts for a token.
pub(crate) async fn mint_code(
    records: &dyn RecordStore,
    purpose: CodePurpose,
    token: &TokenId,
    now: Timestamp,
) -> Result<MintedCode, TokenError> {
    let code = MintedSecret::bare()?;
    let record = CodeRecord { token: token.clone(), is_used: false };
    let expires = purpose.kind().add(records, &secret_key(&code), record, now).await?;
    Ok(MintedCode { code, expires })
}

/// Marks a code as used, and returns the token that created it.
pub(super) async fn redeem(
    records: &dyn RecordStore,
    purpose: CodePurpose,
    code: &str,
    now: Timestamp,
) -> Result<Result<TokenId, CodeRefusal>, TokenError> {
    let (kind, key) = (purpose.kind(), secret_key(code));
    let Some((found, version)) = kind.get::<CodeRecord>(records, &key).await? else {
        return Ok(Err(CodeRefusal::Unknown));
    };
    if found.value.is_used {
        return Ok(Err(CodeRefusal::Used));
    }
    if !found.is_valid(ExpiryTime::read(records, now).await?) {
        return Ok(Err(CodeRefusal::Expired));
    }
    let used = CodeRecord { is_used: true, ..found.value.clone() };
    let used = to_json(&ExpiringValue { value: used, ..found.clone() });
    match records.put(kind.name, &key, used, version).await {
        Ok(_) => Ok(Ok(found.value.token)),
        // Another request used it in between.
        Err(StoreError::Conflict) => Ok(Err(CodeRefusal::Used)),
        Err(error) => Err(error.into()),
    }
}

/// Ends every browser session, and removes all codes that could start or raise one: after the store lost entries, it
/// is unknown which sessions were ended before.
pub async fn end_all_sessions(records: &dyn RecordStore) -> Result<(), StoreError> {
    for kind in super::SESSION_KINDS {
        for record in records.all(kind).await? {
            super::expiring::remove(records, kind, &record.key, record.version).await?;
        }
    }
    Ok(())
}

/// Removes codes and sessions of the previous version.
pub(crate) async fn remove_previous_sessions(records: &dyn RecordStore) -> Result<(), StoreError> {
    for kind in PREVIOUS_KINDS {
        for record in records.all(kind).await? {
            super::expiring::remove(records, kind, &record.key, record.version).await?;
        }
    }
    Ok(())
}
