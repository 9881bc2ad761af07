//! Who listens to which session, and what happens to those that nobody listens to. What is here can be lost: the
//! journal has the sessions.

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

/// Executions that are looked at, at once, for sessions that a former server left.
const LISTED_PER_READ_MAX: usize = 1_000;

/// How often a lost race for the identity is run again.
const IDENTITY_TRIES_MAX: usize = 10;

/// Readers of a session that is removed hear its end; those that take longer find it gone.
const HEARING_MAX: Duration = Duration::from_secs(2);

/// All sessions that somebody listens to or nobody does any more.
pub(crate) struct EnclaveSessions {
    pub(super) aliases: BTreeMap<ToolPath, ToolPath>,
    live: Mutex<HashMap<ExecutionId, LiveSession>>,
    changed: Notify,
    /// Told when the last reader of a session has left.
    unread: Notify,
    records: Arc<dyn RecordStore>,
    identity: OnceCell<[u8; 32]>,
    clock: Clock,
}

struct LiveSession {
    n_readers: usize,
    /// When patience with nobody listening ends.
    until: Option<Timestamp>,
    /// What the client has said under seal. Boxed: it is large, and most sessions have none.
    opener: Option<Box<StreamOpener>>,
    /// What its readers have in common.
    tape: Option<Arc<Mutex<SessionTape>>>,
}

/// One reader of a session. While there is one, the session goes on.
pub(super) struct ReaderLease {
    sessions: Arc<EnclaveSessions>,
    execution: ExecutionId,
    grace_ms: u64,
    /// Nothing is left to wait for.
    pub(super) over: bool,
    /// What all readers of the session have in common.
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

    /// Ends sessions that nobody has listened to for too long, until the server stops.
    pub(crate) async fn watch(self: Arc<Self>, engine: Engine, stopping: CancellationToken) {
        if let Err(fault) = self.take_over(&engine).await {
            tracing::warn!(%fault, "could not look for sessions without readers");
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

    /// Whoever listened before a restart has its time to come back.
    async fn take_over(&self, engine: &Engine) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let phases = vec![ExecutionPhase::Running, ExecutionPhase::Paused];
            let n_max = LISTED_PER_READ_MAX;
            let listed = engine.list(ListFilter { phases, caller: None, after, n_max }).await?;
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
                Err(error) => tracing::warn!(%execution, %error, "an abandoned session goes on"),
            }
            self.lock().remove(&execution);
        }
    }

    /// Somebody listens from now on.
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

    /// Waits until everybody who listens has heard the end, or has had time enough.
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

    /// What is inside an envelope from the client.
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
            // Nobody listens, so nothing is remembered; the journal takes each result once anyway.
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

/// A fresh private key. One number in four billion billion billion is none; then the next is taken.
pub(super) fn secret() -> Result<[u8; 32], Fault> {
    loop {
        let mut bytes = [0; 32];
        random(&mut bytes)?;
        if protocols::enclave::sealing::public_of(&bytes).is_ok() {
            return Ok(bytes);
        }
    }
}

/// Fresh randomness.
pub(super) fn random(bytes: &mut [u8]) -> Result<(), Fault> {
    getrandom::fill(bytes).map_err(|error| Fault::new(error, "no randomness; try again"))
}

/// A fresh id.
pub(super) fn uuid() -> Result<Uuid, Fault> {
    let mut bytes = [0; 16];
    random(&mut bytes)?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid())
}
