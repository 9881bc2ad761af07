//! The readers of sessions, and the expiry of sessions without readers. This state may be lost: the journal has the
//! sessions.

use super::follow::grace_ms;
use super::tape::SessionTape;
use engine::{Clock, Engine, Fault};
use futures_util::StreamExt as _;
use lifecycle::{ExecutionId, ExecutionPhase, LimitKind, Seq, Timestamp, ToolPath};
use protocols::enclave::sealing::{DirectionKeys, StreamOpener};
use protocols::enclave::{EnclaveSessionId, SealingRecord, is_session};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use store::{ListFilter, RecordStore, StoreError};
use tokio::sync::{Notify, OnceCell};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Number of executions that are read in one step to find sessions that an earlier server left.
const LISTED_PER_READ_MAX: usize = 1_000;

/// How often a lost race for the identity is retried.
const IDENTITY_TRIES_MAX: usize = 10;

/// Readers of a session that is removed can receive its end for this long; slower ones find it gone.
const HEARING_MAX: Duration = Duration::from_secs(2);

/// All sessions that have readers, or whose last reader has left.
pub(crate) struct EnclaveSessions {
    pub(super) aliases: BTreeMap<ToolPath, ToolPath>,
    live: Mutex<HashMap<ExecutionId, LiveSession>>,
    changed: Notify,
    /// Notified when the last reader of a session has left.
    unread: Notify,
    records: Arc<dyn RecordStore>,
    identity: OnceCell<[u8; 32]>,
    clock: Clock,
}

struct LiveSession {
    n_readers: usize,
    /// When the grace period without readers ends.
    until: Option<Timestamp>,
    /// Opens the client's sealed messages. Boxed: it is large, and most sessions have none.
    opener: Option<Box<StreamOpener>>,
    /// The lines that its readers share.
    tape: Option<Arc<Mutex<SessionTape>>>,
}

/// One reader of a session. The session continues while it has one.
pub(super) struct ReaderLease {
    sessions: Arc<EnclaveSessions>,
    execution: ExecutionId,
    grace_ms: u64,
    /// Whether the session is over.
    pub(super) over: bool,
    /// The lines that all readers of the session share.
    pub(super) tape: Arc<Mutex<SessionTape>>,
}

impl EnclaveSessions {
    pub(crate) fn new(
        aliases: BTreeMap<ToolPath, ToolPath>,
        records: Arc<dyn RecordStore>,
        clock: Clock,
    ) -> Arc<Self> {
        Arc::new(Self {
            aliases,
            live: Mutex::default(),
            changed: Notify::new(),
            unread: Notify::new(),
            records,
            identity: OnceCell::new(),
            clock,
        })
    }

    /// Ends sessions that have had no reader for too long, until the server stops.
    pub(crate) async fn watch(self: Arc<Self>, engine: Engine, stopping: CancellationToken) {
        if let Err(fault) = self.take_over(&engine).await {
            tracing::warn!(%fault, "could not list sessions without readers");
        }
        loop {
            let next = self.lock().values().filter_map(|live| live.until).min();
            let due = async {
                match next {
                    Some(due) => self.clock.wait_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stopping.cancelled() => return,
                () = self.changed.notified() => {}
                () = due => self.end_abandoned(&engine).await,
            }
        }
    }

    /// Readers from before a restart get the grace period to return.
    async fn take_over(&self, engine: &Engine) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let phases = vec![ExecutionPhase::Running, ExecutionPhase::Paused];
            let n_max = LISTED_PER_READ_MAX;
            let listed =
                engine.list_executions(ListFilter { phases, caller: None, after, n_max }).await?;
            let Some(last) = listed.last() else { return Ok(()) };
            after = Some(last.execution);
            for execution in
                listed.iter().map(|listed| listed.execution).filter(|id| is_session(*id))
            {
                let first = engine.follow(execution, Seq(0)).next().await.transpose()?;
                let grace_ms = first.as_ref().map_or(0, grace_ms);
                let until = self.clock.now().after_ms(grace_ms);
                let live =
                    LiveSession { n_readers: 0, until: Some(until), opener: None, tape: None };
                self.lock().entry(execution).or_insert(live);
            }
        }
    }

    async fn end_abandoned(&self, engine: &Engine) {
        let now = self.clock.now();
        let is_due =
            |live: &LiveSession| live.n_readers == 0 && live.until.is_some_and(|due| due <= now);
        let due: Vec<_> =
            self.lock().iter().filter(|(_, live)| is_due(live)).map(|(id, _)| *id).collect();
        for execution in due {
            match engine.expire(execution, LimitKind::Grace).await {
                Ok(()) | Err(engine::Error::Rejected(_)) => {}
                Err(error) => tracing::warn!(%execution, %error, "could not end an idle session"),
            }
            self.lock().remove(&execution);
        }
    }

    /// Registers a reader.
    pub(super) fn read(self: &Arc<Self>, execution: ExecutionId, grace_ms: u64) -> ReaderLease {
        let mut live = self.lock();
        let nobody = LiveSession { n_readers: 0, until: None, opener: None, tape: None };
        let entry = live.entry(execution).or_insert(nobody);
        entry.n_readers += 1;
        entry.until = None;
        let tape = Arc::clone(entry.tape.get_or_insert_default());
        drop(live);
        ReaderLease { sessions: Arc::clone(self), execution, grace_ms, over: false, tape }
    }

    /// Waits until every reader has received the end, or the time limit has passed.
    pub(super) async fn until_unread(&self, execution: ExecutionId) {
        let unread = async {
            loop {
                let left = self.unread.notified();
                if self.lock().get(&execution).is_none_or(|live| live.n_readers == 0) {
                    return;
                }
                left.await;
            }
        };
        let _ = tokio::time::timeout(HEARING_MAX, unread).await;
    }

    /// Returns the content of an envelope from the client.
    pub(super) fn open(
        &self,
        execution: ExecutionId,
        session: &EnclaveSessionId,
        sealed: &SealingRecord,
        envelope: &protocols::enclave::sealing::SealedEnvelope,
    ) -> Result<Vec<u8>, super::refusals::EnclaveRequestError> {
        let DirectionKeys { c2s, .. } = sealed.keys(session)?;
        let mut live = self.lock();
        let new = || Box::new(StreamOpener::messages(&c2s, &sealed.hello.key_id, session));
        match live.get_mut(&execution) {
            Some(live) => Ok(live.opener.get_or_insert_with(new).open(envelope)?),
            // There is no reader, so nothing is remembered; the journal accepts each result only once anyway.
            None => Ok(new().open(envelope)?),
        }
    }

    /// The server's own key, the same after every restart.
    pub(super) async fn identity(&self) -> Result<[u8; 32], Fault> {
        self.identity.get_or_try_init(async || self.kept_identity().await).await.copied()
    }

    async fn kept_identity(&self) -> Result<[u8; 32], Fault> {
        const KIND: &str = "enclave_identity";
        for _ in 0..IDENTITY_TRIES_MAX {
            if let Some(record) = self.records.get(KIND, "p256").await? {
                let text = serde_json::from_str::<String>(&record.value).unwrap_or_default();
                let kept = protocols::enclave::sealing::bytes(&text);
                return kept
                    .ok_or_else(|| Fault::new("the record", "enclave's identity is broken"));
            }
            let fresh = secret()?;
            let text = protocols::enclave::sealing::base64(&fresh);
            let value = serde_json::Value::String(text).to_string();
            match self.records.put(KIND, "p256", value, 0).await {
                Ok(_) => return Ok(fresh),
                Err(StoreError::Conflict) => {} // another server was first: take its
                Err(error) => return Err(error.into()),
            }
        }
        Err(Fault::new("the record keeps changing", "try again"))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutionId, LiveSession>> {
        self.live.lock().expect("no code panics while it holds the map")
    }
}

impl Drop for ReaderLease {
    fn drop(&mut self) {
        let until = self.sessions.clock.now().after_ms(self.grace_ms);
        let mut all = self.sessions.lock();
        let Some(live) = all.get_mut(&self.execution) else { return };
        live.n_readers = live.n_readers.saturating_sub(1);
        if live.n_readers > 0 {
            return;
        }
        live.tape = None;
        self.sessions.unread.notify_waiters();
        if self.over {
            all.remove(&self.execution);
        } else {
            live.until = Some(until);
            drop(all);
            self.sessions.changed.notify_one();
        }
    }
}

/// Creates a private key. One number in four billion billion billion is invalid; then the next one is used.
pub(super) fn secret() -> Result<[u8; 32], Fault> {
    loop {
        let mut bytes = [0; 32];
        random(&mut bytes)?;
        if protocols::enclave::sealing::public_of(&bytes).is_ok() {
            return Ok(bytes);
        }
    }
}

/// Fills a buffer with random bytes.
pub(super) fn random(bytes: &mut [u8]) -> Result<(), Fault> {
    getrandom::fill(bytes).map_err(|error| Fault::new(error, "no randomness; try again"))
}

/// Creates a random id.
pub(super) fn uuid() -> Result<Uuid, Fault> {
    let mut bytes = [0; 16];
    random(&mut bytes)?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid())
}
