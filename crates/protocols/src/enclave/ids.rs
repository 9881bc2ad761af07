//! Enclave's names: `s_…` for sessions, `c_…` for calls, ISO dates that end in Z. Its client drops any other
//! form.

use lifecycle::{CallId, CallerName, ExecutionId, Timestamp, UtcTime};
use sha2::{Digest as _, Sha256};
use std::fmt;
use uuid::Uuid;

/// A session's name, chosen by its caller or by us.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnclaveSessionId(String);

/// A text that is no valid session name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a session id is s_ and 1 to {} letters, digits, dots, colons, dashes and underscores",
    EnclaveSessionId::BYTES_MAX - 2
)]
pub struct BadSessionId;

impl EnclaveSessionId {
    /// Longest name. A UUID needs 38.
    pub const BYTES_MAX: usize = 128;

    /// Parses and validates a name.
    pub fn parse(text: &str) -> Result<Self, BadSessionId> {
        let rest = text.strip_prefix("s_").ok_or(BadSessionId)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        let good = !rest.is_empty() && text.len() <= Self::BYTES_MAX && rest.chars().all(fits);
        good.then(|| Self(text.to_owned())).ok_or(BadSessionId)
    }

    /// Creates a name from a random UUID.
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(format!("s_{uuid}"))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EnclaveSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The execution id of a caller's session. Names of different callers never collide: a caller can neither
/// take another's name nor find out that it is in use.
pub fn execution_of(caller: &CallerName, session: &EnclaveSessionId) -> ExecutionId {
    let mut hash = Sha256::new();
    hash.update(b"enclave session\0");
    hash.update((caller.0.len() as u64).to_be_bytes());
    hash.update(caller.0.as_bytes());
    hash.update(session.0.as_bytes());
    let whole = hash.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&whole[..16]);
    // The version bits of a UUID for custom formats, version 8.
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    ExecutionId::from_uuid(Uuid::from_bytes(bytes))
}

/// Whether an execution's id was made by [`execution_of`]. All others contain a time.
pub fn is_session(execution: ExecutionId) -> bool {
    execution.uuid().get_version_num() == 8
}

/// A call's globally unique name on the wire: some clients name a call and no session.
pub fn call_name(execution: ExecutionId, call: CallId) -> String {
    format!("c_{}-{call}", execution.uuid())
}

/// Parses a call's name.
pub fn parse_call_name(name: &str) -> Option<(ExecutionId, CallId)> {
    let (uuid, call) = name.strip_prefix("c_")?.rsplit_once('-')?;
    let uuid = Uuid::try_parse(uuid).ok().filter(|_| uuid.len() == 36)?;
    let digits = !call.is_empty() && call.bytes().all(|byte| byte.is_ascii_digit());
    let call = call.parse().ok().filter(|_| digits)?;
    Some((ExecutionId::from_uuid(uuid), CallId(call)))
}

/// A time in enclave's format: `2026-11-15T19:58:09.126Z`.
pub fn iso(at: Timestamp) -> String {
    let at = at.0.clamp(-62_135_596_800_000, 253_402_300_799_999); // years 1 to 9999
    UtcTime::from(Timestamp(at)).exact()
}
