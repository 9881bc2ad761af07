//! The door's own data about a session, in addition to what every execution has. It is stored in the
//! journal's first entry.

use super::sealing::{BadKey, DirectionKeys, ServerHello};
use super::{EnclaveSessionId, sealing};
use lifecycle::{CallRules, Json};
use serde::{Deserialize, Serialize};

/// The door's own data about a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnclaveSessionRecord {
    /// The session's name.
    enclave: String,
    /// The interval of heartbeats; 0 for none.
    pub heartbeat_ms: u64,
    /// The sealing state, if the session is sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<SealingRecord>,
}

/// The state for sealing and opening, also after a restart. It is as secret as the journal that contains
/// it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealingRecord {
    /// Whether the session must not be sent unsealed.
    pub required: bool,
    /// The server's hello, as it was sent to the client.
    pub hello: ServerHello,
    /// The client's public key.
    pub client_key: String,
    /// Our private key.
    secret: String,
}

impl EnclaveSessionRecord {
    /// A note for a session that is not sealed.
    pub fn new(session: &EnclaveSessionId, heartbeat_ms: u64) -> Self {
        Self { enclave: session.as_str().to_owned(), heartbeat_ms, sealed: None }
    }

    /// Parses the note in a door's call rules, if it is ours.
    pub fn read(terms: &CallRules) -> Option<(EnclaveSessionId, Self)> {
        let note: Self = serde_json::from_str(terms.note.as_ref()?.as_text()).ok()?;
        Some((EnclaveSessionId::parse(&note.enclave).ok()?, note))
    }

    /// The note as stored JSON.
    pub fn json(&self) -> Json {
        Json::from_value(self).expect("texts, numbers and truths have a JSON form")
    }
}

impl SealingRecord {
    /// Records what is needed to continue the handshake later.
    pub fn new(required: bool, hello: ServerHello, client_key: String, secret: &[u8; 32]) -> Self {
        Self { required, hello, client_key, secret: sealing::base64(secret) }
    }

    /// Derives the keys of the session.
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
