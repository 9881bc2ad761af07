//! What the door remembers about a session, beside what every execution has. It lies in the journal's first entry.

use super::sealing::{BadKey, DirectionKeys, ServerHello};
use super::{EnclaveSessionId, sealing};
use lifecycle::{CallRules, Json};
use serde::{Deserialize, Serialize};

/// What the door remembers about a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnclaveSessionRecord {
    /// What the caller calls it.
    enclave: String,
    /// How often a reader hears that the server is there; 0 for never.
    pub heartbeat_ms: u64,
    /// What it takes to seal and open, where the session is sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<SealingRecord>,
}

/// What it takes to seal and open after a restart too. It is as secret as the journal that it lies in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealingRecord {
    /// Whether nothing may be said in clear.
    pub required: bool,
    /// What the client was told.
    pub hello: ServerHello,
    /// The client's public key.
    pub client_key: String,
    /// Our private one.
    secret: String,
}

impl EnclaveSessionRecord {
    /// A note for a session that is told in clear.
    pub fn new(session: &EnclaveSessionId, heartbeat_ms: u64) -> Self {
        Self { enclave: session.as_str().to_owned(), heartbeat_ms, sealed: None }
    }

    /// The note among a door's terms, if it is ours.
    pub fn read(terms: &CallRules) -> Option<(EnclaveSessionId, Self)> {
        let note: Self = serde_json::from_str(terms.note.as_ref()?.as_text()).ok()?;
        Some((EnclaveSessionId::parse(&note.enclave).ok()?, note))
    }

    /// As it is kept.
    pub fn json(&self) -> Json {
        Json::from_value(self).expect("texts, numbers and truths have a JSON form")
    }
}

impl SealingRecord {
    /// What is needed to go on with a handshake later.
    pub fn new(required: bool, hello: ServerHello, client_key: String, secret: &[u8; 32]) -> Self {
        Self { required, hello, client_key, secret: sealing::base64(secret) }
    }

    /// The keys of the session.
    pub fn keys(&self, session: &EnclaveSessionId) -> Result<DirectionKeys, BadKey> {
        let secret = sealing::bytes(&self.secret).ok_or(BadKey)?;
        DirectionKeys::agree(&secret, &self.client_key, session)
    }
}

impl std::fmt::Debug for SealingRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealed").field("hello", &self.hello).finish_non_exhaustive()
    }
}
