//! `requestState`: the state that a client carries between the two halves of a call. It is sealed, valid for one
//! caller, one call and one use, and expires. rmcp computes the seal; this module defines the content.

use crate::error::RequestError;
use lifecycle::{ExecutionId, QuestionId, Timestamp};
use rmcp::model::{JsonObject, RequestStateCodec, SealOptions};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::{RecordStore, StoreError};
use tokio::sync::OnceCell;

/// How long a state is valid. The question stays open longer and is then answered elsewhere.
const STATE_MS_MAX: u64 = 24 * 3_600_000;

/// Number of used states that are remembered; above it, the one that expires first is forgotten. The journal records
/// them too.
const USED_MAX: usize = 10_000;

/// The kind of the record that holds the key.
const KIND: &str = "mcp";
const KEY: &str = "request-state-key";

/// The content of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestStateClaims {
    nonce: String,
    pub(super) execution: ExecutionId,
    /// The questions that were open when it was created.
    pub(super) questions: Vec<QuestionId>,
    expires: Timestamp,
}

/// Why a state is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestStateError {
    /// It was modified, or belongs to another caller or call.
    Forged,
    /// It has expired.
    Expired,
    /// It was used before.
    Used,
}

/// Seals and opens states.
pub(super) struct RequestStateSealer {
    records: Arc<dyn RecordStore>,
    codec: OnceCell<RequestStateCodec>,
    used: Mutex<BTreeMap<String, Timestamp>>,
}

impl RequestStateClaims {
    pub(super) fn new(
        execution: ExecutionId,
        questions: Vec<QuestionId>,
        now: Timestamp,
    ) -> Result<Self, RequestError> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(|error| RequestError::broken(&error))?;
        let nonce = nonce.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { nonce, execution, questions, expires: now.after_ms(STATE_MS_MAX) })
    }

    fn written(&self) -> Vec<u8> {
        let Self { nonce, execution, questions, expires } = self;
        json!([nonce, execution, questions, expires.0]).to_string().into_bytes()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (nonce, execution, questions, expires) = serde_json::from_slice(bytes).ok()?;
        Some(Self { nonce, execution, questions, expires: Timestamp(expires) })
    }
}

impl RequestStateSealer {
    /// Stores its key in these records.
    pub(super) fn new(records: Arc<dyn RecordStore>) -> Self {
        Self { records, codec: OnceCell::new(), used: Mutex::default() }
    }

    pub(super) async fn close(
        &self,
        binding: &[u8],
        state: &RequestStateClaims,
    ) -> Result<String, RequestError> {
        let codec = self.codec().await?;
        Ok(codec.seal_with(&state.written(), &SealOptions::new().associated_data(binding)))
    }

    /// Opens a state without using it up; [`Self::use_up`] does that.
    pub(super) async fn open(
        &self,
        binding: &[u8],
        sealed: &str,
        now: Timestamp,
    ) -> Result<Result<RequestStateClaims, RequestStateError>, RequestError> {
        let opened = self.codec().await?.open_with(sealed, binding);
        let Some(state) = opened.ok().and_then(|bytes| RequestStateClaims::read(&bytes)) else {
            return Ok(Err(RequestStateError::Forged));
        };
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        // A state that expires later than any valid one is from before the clock was set back.
        let is_expired = state.expires < now || state.expires > now.after_ms(STATE_MS_MAX);
        Ok(match (is_expired, used.contains_key(&state.nonce)) {
            (true, _) => Err(RequestStateError::Expired),
            (false, true) => Err(RequestStateError::Used),
            (false, false) => Ok(state),
        })
    }

    /// Marks a state as used; false if another request was first.
    pub(super) fn use_up(&self, state: &RequestStateClaims, now: Timestamp) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.insert(state.nonce.clone(), state.expires).is_some() {
            return false;
        }
        if used.len() > USED_MAX {
            used.retain(|_, expires| *expires >= now);
            let first = used.iter().min_by_key(|(_, expires)| **expires);
            if let (true, Some(first)) =
                (used.len() > USED_MAX, first.map(|(nonce, _)| nonce.clone()))
            {
                used.remove(&first);
            }
        }
        true
    }

    async fn codec(&self) -> Result<&RequestStateCodec, RequestError> {
        let codec = self.codec.get_or_try_init(async || {
            let key = key(self.records.as_ref()).await.map_err(engine::Fault::from)?;
            RequestStateCodec::try_new(key).map_err(|error| RequestError::broken(&error))
        });
        codec.await
    }
}

/// The sealing key, the same after a restart. The first request that needs it creates it.
async fn key(records: &dyn RecordStore) -> Result<Vec<u8>, StoreError> {
    loop {
        if let Some(record) = records.get(KIND, KEY).await? {
            return Ok(record.value.into_bytes());
        }
        let mut key = [0; 32];
        // Without randomness nothing could be sealed safely; uuids, which all requests need, fail as well.
        getrandom::fill(&mut key).expect("the system has randomness");
        let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        match records.put(KIND, KEY, Value::String(text).to_string(), 0).await {
            Ok(_) | Err(StoreError::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
}

/// What a state is bound to: this caller and this call.
pub(super) fn binding(caller: &lifecycle::CallerName, tool: &str, args: &JsonObject) -> Vec<u8> {
    json!([caller, tool, args]).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::CallerName;
    use store::sqlite::SqliteStore;

    fn caller(name: &str) -> CallerName {
        CallerName(name.into())
    }

    fn args(code: &str) -> JsonObject {
        JsonObject::from_iter([("code".to_owned(), code.into())])
    }

    #[tokio::test]
    async fn a_state_is_good_for_one_caller_one_call_one_use_and_one_day() {
        let store = SqliteStore::temporary().unwrap();
        let (seal, now) = (RequestStateSealer::new(Arc::new(store.clone())), Timestamp(1_000));
        let execution = "run_00000000-0000-0000-0000-000000000001".parse().unwrap();
        let question = "exec_00000000-0000-0000-0000-000000000002".parse().unwrap();
        let state = RequestStateClaims::new(execution, vec![question], now).unwrap();
        let ann = binding(&caller("ann"), "execute", &args("1"));
        let sealed = seal.close(&ann, &state).await.unwrap();
        let open = async |binding: &[u8], sealed: &str, now| {
            seal.open(binding, sealed, now).await.unwrap()
        };
        assert_eq!(open(&ann, &sealed, now).await, Ok(state.clone()));
        for other in [
            binding(&caller("bob"), "execute", &args("1")),
            binding(&caller("ann"), "resume", &args("1")),
            binding(&caller("ann"), "execute", &args("2")),
        ] {
            assert_eq!(open(&other, &sealed, now).await, Err(RequestStateError::Forged));
        }
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let tampered = String::from_utf8(bytes).unwrap();
            // The last letter of base64 contains unused bits; rmcp may or may not ignore them.
            if open(&ann, &tampered, now).await.is_ok() {
                assert_eq!(open(&ann, &tampered, now).await, Ok(state.clone()), "{at}");
                assert!(at + 1 == sealed.len() || sealed.as_bytes()[at + 1] == b'.', "{at}");
            }
        }
        assert_eq!(open(&ann, "", now).await, Err(RequestStateError::Forged));
        assert_eq!(
            open(&ann, &sealed, Timestamp(999)).await,
            Err(RequestStateError::Expired),
            "the clock went back"
        );
        let tomorrow = now.after_ms(STATE_MS_MAX + 1);
        assert_eq!(open(&ann, &sealed, tomorrow).await, Err(RequestStateError::Expired));
        assert!(seal.use_up(&state, now));
        assert!(!seal.use_up(&state, now));
        assert_eq!(open(&ann, &sealed, now).await, Err(RequestStateError::Used));
        // Another server on the same store, or the same one after a restart, has the same key.
        let restarted = RequestStateSealer::new(Arc::new(store));
        let opened = restarted.open(&ann, &sealed, now).await.unwrap();
        assert_eq!(opened, Ok(state));
    }
}
