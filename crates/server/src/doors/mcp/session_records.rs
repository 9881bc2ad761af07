//! Records that restore a session of native mode after a restart: its opener and its `initialize`. The client
//! continues with its session and notices nothing.

use super::routes::SESSIONS_MAX;
use futures_util::future::BoxFuture;
use lifecycle::{CallerName, Timestamp};
use rmcp::model::InitializeRequestParams;
use rmcp::transport::streamable_http_server::session::{
    SessionState, SessionStore, SessionStoreError,
};
use serde_json::{Value, json};
use std::sync::Arc;
use store::{RecordStore, StoreError};

/// One record per session, by its id.
const KIND: &str = "mcp-session";

/// How long a session can be restored. A client with an older one opens another.
const SESSION_MS_MAX: u64 = 24 * 3_600_000;

/// Maximum size of a recorded `initialize`; those of real clients have a few hundred bytes. A larger one opens a
/// session that ends with the server.
const HELLO_BYTES_MAX: usize = 16 << 10;

/// The records of sessions.
#[derive(Clone)]
pub(super) struct SessionRecords(Arc<dyn RecordStore>);

impl SessionRecords {
    pub(super) fn new(records: Arc<dyn RecordStore>) -> Self {
        Self(records)
    }

    /// Records a session that this `initialize` opened. Without the record, the session ends with the server.
    pub(super) async fn add(&self, id: &str, caller: &CallerName, hello: &[u8], now: Timestamp) {
        let hello = serde_json::from_slice::<Value>(hello).unwrap_or_default();
        let record = json!({ "caller": caller, "opened": now.0, "initialize": hello["params"] });
        let text = record.to_string();
        if text.len() > HELLO_BYTES_MAX {
            return;
        }
        let added = async {
            self.remove_oldest(now).await?;
            self.0.put(KIND, id, text, 0).await
        };
        if let Err(error) = added.await {
            tracing::warn!(%error, "a session of /mcp is not recorded: it ends with the server");
        }
    }

    /// Removes records that are too old to be restored, and makes space for one more.
    async fn remove_oldest(&self, now: Timestamp) -> Result<(), StoreError> {
        let mut sessions: Vec<_> = self
            .0
            .all(KIND)
            .await?
            .into_iter()
            .map(|record| (read(&record.value)["opened"].as_i64().unwrap_or(0), record))
            .collect();
        sessions.sort_by_key(|(opened, _)| *opened);
        let n_over = (sessions.len() + 1).saturating_sub(SESSIONS_MAX);
        for (session_idx, (opened, record)) in sessions.into_iter().enumerate() {
            let is_old = Timestamp(opened).after_ms(SESSION_MS_MAX) < now;
            if !is_old && session_idx >= n_over {
                break;
            }
            match self.0.remove(KIND, &record.key, record.version).await {
                // Another request has removed it.
                Ok(()) | Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the opener of a session.
    pub(super) async fn owner(&self, id: &str) -> Result<Option<CallerName>, StoreError> {
        let record = self.0.get(KIND, id).await?;
        Ok(record
            .and_then(|record| serde_json::from_value(read(&record.value)["caller"].take()).ok()))
    }

    async fn state(&self, id: &str) -> Result<Option<SessionState>, StoreError> {
        let record = self.0.get(KIND, id).await?;
        let params = record.and_then(|record| {
            let hello = read(&record.value)["initialize"].take();
            serde_json::from_value::<InitializeRequestParams>(hello).ok()
        });
        Ok(params.map(SessionState::new))
    }

    async fn remove_session(&self, id: &str) -> Result<(), StoreError> {
        let Some(record) = self.0.get(KIND, id).await? else { return Ok(()) };
        self.0.remove(KIND, id, record.version).await
    }
}

fn read(record: &str) -> Value {
    serde_json::from_str(record).unwrap_or_default()
}

/// The session store that rmcp requires.
impl SessionStore for SessionRecords {
    fn load<'a, 'b, 'c>(
        &'a self,
        id: &'b str,
    ) -> BoxFuture<'c, Result<Option<SessionState>, SessionStoreError>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        Box::pin(async move { self.state(id).await.map_err(Into::into) })
    }

    /// [`Self::add`] has already recorded it, together with its owner.
    fn store<'a, 'b, 'c, 'd>(
        &'a self,
        _: &'b str,
        _: &'c SessionState,
    ) -> BoxFuture<'d, Result<(), SessionStoreError>>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
        Self: 'd,
    {
        Box::pin(async { Ok(()) })
    }

    fn delete<'a, 'b, 'c>(&'a self, id: &'b str) -> BoxFuture<'c, Result<(), SessionStoreError>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        Box::pin(async move { self.remove_session(id).await.map_err(Into::into) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::sqlite::SqliteStore;

    fn hello() -> Vec<u8> {
        let client = json!({ "name": "t", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
                             "clientInfo": client });
        json!({ "method": "initialize", "params": params }).to_string().into_bytes()
    }

    #[tokio::test]
    async fn a_session_is_brought_back_for_its_owner_until_it_is_deleted_or_a_day_old() {
        let store = Arc::new(SqliteStore::temporary().unwrap());
        let records = SessionRecords::new(Arc::clone(&store) as _);
        let ann = CallerName("ann".into());
        for id in ["a", "b"] {
            records.add(id, &ann, &hello(), Timestamp(0)).await;
        }
        let state = records.load("a").await.unwrap().unwrap();
        assert!(state.initialize_params.capabilities.elicitation.is_some());
        assert_eq!(records.owner("a").await.unwrap(), Some(ann.clone()));
        records.delete("a").await.unwrap();
        assert!(records.load("a").await.unwrap().is_none());
        assert!(records.load("never").await.unwrap().is_none());
        records.add("c", &ann, &hello(), Timestamp(1).after_ms(SESSION_MS_MAX)).await;
        let left: Vec<_> = store.all(KIND).await.unwrap().into_iter().map(|it| it.key).collect();
        assert_eq!(left, ["c"]);
    }
}
