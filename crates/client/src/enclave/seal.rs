//! The client's end of a sealed session.

use super::{EnclaveError, EncryptionMode};
use protocols::enclave::EnclaveSessionId;
use protocols::enclave::sealing::{
    ClientHello, DirectionKeys, ServerHello, StreamOpener, StreamSealer,
};
use serde_json::Value;

/// The keys and counters that a client stores for a sealed session.
pub(super) struct SealedSessionKeys {
    session: EnclaveSessionId,
    secret: [u8; 32],
    hello: ClientHello,
    pinned: Option<String>,
    ends: Option<(StreamOpener, StreamSealer)>,
    n_said: u64,
}

impl SealedSessionKeys {
    pub(super) fn new(
        encryption: &EncryptionMode,
        session: &EnclaveSessionId,
    ) -> Result<Option<Self>, EnclaveError> {
        let EncryptionMode::Required { pinned } = encryption else { return Ok(None) };
        let no_key = |_| EnclaveError::Unusable("no key could be made".into());
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)
            .map_err(|error| EnclaveError::Unusable(format!("no randomness: {error}")))?;
        let hello = ClientHello::new(&secret).map_err(no_key)?;
        let (session, pinned) = (session.clone(), pinned.clone());
        Ok(Some(Self { session, secret, hello, pinned, ends: None, n_said: 0 }))
    }

    /// Whether the keys have been negotiated.
    pub(super) const fn is_open(&self) -> bool {
        self.ends.is_some()
    }

    /// The member of the request that asks for sealing.
    pub(super) fn wanted(&self) -> Value {
        serde_json::json!({ "mode": "required", "clientHello": self.hello })
    }

    /// Resets the state for a new stream.
    pub(super) fn begin_stream(&mut self) {
        if let Some((opener, _)) = &mut self.ends {
            opener.begin_stream();
        }
    }

    /// Decodes a line's event: the first one is in clear, all others are in envelopes.
    pub(super) fn open(&mut self, event: Value) -> Result<Value, EnclaveError> {
        let untrusted = |why: String| EnclaveError::Untrusted(why);
        if event["type"] == "session_init" {
            self.greet(&event)?;
            return Ok(event);
        }
        let Some((opener, _)) = &mut self.ends else {
            return Err(untrusted("events came before the server's hello".into()));
        };
        let envelope = serde_json::from_value(event)
            .map_err(|_| untrusted("an event came in clear".into()))?;
        let inner = opener.open(&envelope).map_err(|why| untrusted(why.to_string()))?;
        serde_json::from_slice(&inner).map_err(|error| EnclaveError::Nonsense(error.to_string()))
    }

    fn greet(&mut self, event: &Value) -> Result<(), EnclaveError> {
        let untrusted = |why: String| EnclaveError::Untrusted(why);
        if self.ends.is_some() {
            return Ok(()); // received again: the keys are known
        }
        let hello: ServerHello =
            serde_json::from_value(event["payload"]["encryption"]["serverHello"].clone())
                .map_err(|_| untrusted("the server does not seal the session".into()))?;
        hello
            .check_proof(&self.hello.client_key, &self.session, self.pinned.as_deref())
            .map_err(|why| untrusted(why.to_string()))?;
        let keys = DirectionKeys::agree(&self.secret, &hello.server_key, &self.session)
            .map_err(|why| untrusted(why.to_string()))?;
        let mut prefix = [0; 8];
        getrandom::fill(&mut prefix).map_err(|error| untrusted(error.to_string()))?;
        let opener = StreamOpener::streams(&keys.s2c, &hello.key_id, &self.session);
        let sealer = StreamSealer::new(&keys.c2s, prefix, &hello.key_id, &self.session);
        self.ends = Some((opener, sealer));
        Ok(())
    }

    /// Encrypts a message to the server.
    pub(super) fn seal_message(&mut self, message: &Value) -> Result<Vec<u8>, EnclaveError> {
        let Some((_, sealer)) = &mut self.ends else {
            return Err(EnclaveError::Untrusted("there are no keys yet".into()));
        };
        self.n_said += 1;
        let mut message = message.clone();
        message["sessionId"] = self.session.as_str().into();
        message["seq"] = self.n_said.into();
        let envelope = sealer
            .seal(self.n_said, message.to_string().as_bytes())
            .map_err(|spent| EnclaveError::Unusable(spent.to_string()))?;
        Ok(serde_json::to_vec(&envelope).expect("an envelope is made of texts"))
    }
}
