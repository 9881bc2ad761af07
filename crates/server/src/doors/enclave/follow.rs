//! One reader of one session: past events, new events, and heartbeats in between; each event once.

use super::EnclaveState;
use super::sessions::{ReaderLease, random};
use super::tape::BatchEnd;
use crate::app::AppState;
use crate::redact;
use crate::turns::in_turns;
use bytes::Bytes;
use engine::Fault;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use lifecycle::{Entry, Event, ExecutionId, Seq};
use protocols::enclave::sealing::StreamSealer;
use protocols::enclave::wire::CatalogChanged;
use protocols::enclave::{
    EnclaveEvent, EnclaveSessionId, EnclaveSessionRecord, EventFilter, EventRenderer,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How many bytes are collected into one batch if more are already available.
const BATCH_BYTES_MAX: usize = 64 << 10;

/// A client that receives no heartbeat for half a minute considers the stream dead, even if it requested none. A
/// client that filters heartbeats out therefore still receives some at this interval.
const HEARTBEAT_FILTERED: Duration = Duration::from_secs(20);

/// How often a reader without heartbeats checks for changes of the catalogue.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Maximum number of tools in one notification about a changed catalogue.
const ACTIONS_MAX: usize = 1_000;

/// One reader of one session.
pub(super) struct SessionReader {
    app: Arc<AppState>,
    execution: ExecutionId,
    session: EnclaveSessionId,
    telling: EventRenderer,
    /// The last entry that it has processed.
    entry: Seq,
    /// The last event that it has taken from the shared tape.
    heard: u64,
    /// Whether it receives the same as other readers: everything, unencrypted.
    shares: bool,
    entries: BoxStream<'static, Result<Entry, Fault>>,
    /// Resolves when the stream must end: with its caller's credential, or with the server.
    ended: BoxFuture<'static, ()>,
    from: u64,
    filter: Option<EventFilter>,
    sealer: Option<StreamSealer>,
    reading: ReaderLease,
    heartbeat: Option<Duration>,
    beat: Instant,
    catalogue: Arc<tools::CatalogueSnapshot>,
}

/// The connection must be aborted, so that the client reconnects immediately.
#[derive(Debug, thiserror::Error)]
#[error("the session goes on elsewhere")]
pub(super) struct StreamBroken;

/// The options of a reader.
pub(super) struct ReaderOptions {
    pub(super) from: u64,
    pub(super) filter: Option<EventFilter>,
}

impl SessionReader {
    /// Starts reading, until the session is over or `ended` resolves. `None` if there is no such session.
    pub(super) async fn open(
        door: &EnclaveState,
        execution: ExecutionId,
        wish: ReaderOptions,
        ended: BoxFuture<'static, ()>,
    ) -> Result<Option<Self>, Fault> {
        let mut entries = door.app.engine.follow(execution, Seq(0)).boxed();
        let Some(first) = entries.next().await.transpose()? else { return Ok(None) };
        let mut telling = EventRenderer::new(execution);
        telling.handle_entry(&first);
        let Some((session, note)) = telling.session().cloned() else { return Ok(None) };
        let grace_ms = grace_ms(&first);
        let sealer = sealer(&session, &note)?;
        let heartbeat = heartbeat(&note, wish.filter.as_ref(), &telling);
        let first = futures_util::stream::iter([Ok(first)]);
        let reading = door.own.read(execution, grace_ms);
        Ok(Some(Self {
            app: Arc::clone(&door.app),
            execution,
            telling: EventRenderer::new(execution),
            entry: Seq(0),
            heard: 0,
            shares: wish.filter.is_none() && sealer.is_none(),
            session,
            entries: first.chain(entries).boxed(),
            ended,
            from: wish.from,
            filter: wish.filter,
            sealer,
            reading,
            heartbeat,
            beat: Instant::now() + heartbeat.unwrap_or(LOOK_EVERY),
            catalogue: door.app.engine.catalogue().snapshot(),
        }))
    }

    pub(super) const fn session(&self) -> &EnclaveSessionId {
        &self.session
    }

    /// Returns the next lines, each with its line break; `None` after the last event.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, StreamBroken>> {
        if self.reading.over {
            return None;
        }
        // A long session is read from the tape for a long time.
        if self.ended.as_mut().now_or_never().is_some() {
            return Some(Err(StreamBroken));
        }
        if let Some(lines) = self.taped() {
            return Some(Ok(lines));
        }
        let (mut lines, first) = (vec![], self.telling.last() + 1);
        loop {
            tokio::select! {
                biased; // a session that says much must not keep heartbeats waiting
                () = self.app.stopping.cancelled() => return Some(Err(StreamBroken)),
                () = &mut self.ended => return Some(Err(StreamBroken)),
                () = sleep_until(self.beat) => self.sign_of_life(&mut lines),
                entry = self.entries.next() => {
                    if let Err(broken) = self.take(entry, &mut lines).await {
                        return Some(Err(broken));
                    }
                    if let Err(broken) = self.take_more(&mut lines).await {
                        return Some(Err(broken));
                    }
                    if !lines.is_empty() {
                        let lines = Bytes::from(lines);
                        self.share(first, &lines);
                        return Some(Ok(lines));
                    }
                }
            }
            if !lines.is_empty() {
                return Some(Ok(lines.into()));
            }
            if self.reading.over {
                return None;
            }
        }
    }

    /// Returns the lines that another reader has already rendered and this one has not sent.
    fn taped(&mut self) -> Option<Bytes> {
        if !self.shares || self.app.stopping.is_cancelled() {
            return None;
        }
        let tape = Arc::clone(&self.reading.tape);
        let tape = tape.lock().expect("no code panics while it holds a tape");
        let heard = self.heard.max(self.telling.last());
        let from = self.from.max(heard + 1);
        if let Some((lines, last)) = tape.lines(from) {
            self.heard = last;
            // The end of a finished session is the last event on its tape.
            self.reading.over = last == tape.last() && tape.is_over();
            return Some(lines);
        }
        let end = tape.end_after(self.telling.last())?;
        drop(tape);
        // From here on it reads the journal itself, because it has sent everything on the tape.
        self.entries = self.app.engine.follow(self.execution, end.entry).boxed();
        (self.telling, self.entry) = (end.telling, end.entry);
        None
    }

    /// Adds rendered lines to the shared tape, if they are complete.
    fn share(&self, first: u64, lines: &Bytes) {
        if !self.shares || self.from > first || self.telling.last() < first {
            return;
        }
        let end = || BatchEnd {
            telling: self.telling.clone(),
            entry: self.entry,
            over: self.reading.over,
        };
        let mut tape = self.reading.tape.lock().expect("no code panics while it holds a tape");
        tape.add(first, lines, end);
    }

    /// Entries that are already available go into the same batch.
    async fn take_more(&mut self, lines: &mut Vec<u8>) -> Result<(), StreamBroken> {
        while lines.len() < BATCH_BYTES_MAX && !self.reading.over {
            let Some(entry) = self.entries.next().now_or_never() else { return Ok(()) };
            self.take(entry, lines).await?;
        }
        Ok(())
    }

    async fn take(
        &mut self,
        entry: Option<Result<Entry, Fault>>,
        lines: &mut Vec<u8>,
    ) -> Result<(), StreamBroken> {
        let entry = match entry {
            Some(Ok(entry)) => entry,
            // The journal failed, or the session was removed: a client that reconnects receives the reason.
            Some(Err(_)) | None => return Err(StreamBroken),
        };
        let told = self.telling.handle_entry(&entry);
        self.entry = entry.seq;
        self.reading.over = matches!(entry.event, Event::Finished { .. });
        if matches!(entry.event, Event::Parked) {
            self.give_up().await;
        }
        let over = self.reading.over;
        let n_told = told.len();
        for (at, told) in told.iter().enumerate() {
            // A client that asks for events after the end receives the end again.
            let is_last = over && at + 1 == n_told;
            if told.seq >= self.from || is_last {
                self.write(told, lines)?;
            }
        }
        Ok(())
    }

    /// An execution that could not be restored is ended, so that no client waits for it.
    async fn give_up(&mut self) {
        let by = lifecycle::BuiltinCaller::EnclaveRecovery.into();
        if let Err(error) = self.app.engine.cancel(self.execution, by).await {
            tracing::warn!(%error, execution = %self.execution, "could not end a parked session");
        }
    }

    fn sign_of_life(&mut self, lines: &mut Vec<u8>) {
        self.beat = Instant::now() + self.heartbeat.unwrap_or(LOOK_EVERY);
        if self.telling.last() == 0 {
            return; // nothing comes before the first event
        }
        let now = self.app.clock.now();
        if let Some(changed) = self.catalogue_changed(now)
            && self.filter.as_ref().is_none_or(|filter| filter.passes(&changed, &self.session))
        {
            let _ = self.line(&changed, lines);
        }
        if self.heartbeat.is_some() {
            let _ = self.line(&self.telling.heartbeat(now), lines);
        }
    }

    fn catalogue_changed(&mut self, now: lifecycle::Timestamp) -> Option<EnclaveEvent> {
        let catalogue = self.app.engine.catalogue().snapshot();
        if Arc::ptr_eq(&catalogue, &self.catalogue) {
            return None;
        }
        let policies = self.app.engine.policies().live();
        let paths = |snapshot: &tools::CatalogueSnapshot| -> BTreeSet<String> {
            // Blocked tools are treated as if they did not exist.
            let seen = snapshot.tools().filter(|it| policies.shows(&it.path(), it.traits()));
            seen.map(|found| found.path()).collect()
        };
        let (before, after) = (paths(&self.catalogue), paths(&catalogue));
        self.catalogue = catalogue;
        let listed = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
            one.difference(other).take(ACTIONS_MAX).cloned().collect()
        };
        let changed = CatalogChanged {
            version: &format!("{now}"),
            added_actions: &listed(&after, &before),
            removed_actions: &listed(&before, &after),
        };
        let is_news = !changed.added_actions.is_empty() || !changed.removed_actions.is_empty();
        is_news.then(|| self.telling.catalog_changed(now, &changed))
    }

    fn write(&mut self, told: &EnclaveEvent, lines: &mut Vec<u8>) -> Result<(), StreamBroken> {
        if self.filter.as_ref().is_some_and(|filter| !filter.passes(told, &self.session)) {
            return Ok(());
        }
        self.line(told, lines)
    }

    fn line(&mut self, told: &EnclaveEvent, lines: &mut Vec<u8>) -> Result<(), StreamBroken> {
        let mut inner = vec![];
        told.write(&self.session, &mut inner);
        // Redacted before sealing, because sealed content cannot be redacted later, and sockets are not filtered.
        let inner = redact::frame(inner);
        match &mut self.sealer {
            // The first event carries the keys needed to open the others.
            Some(sealer) if told.kind != protocols::enclave::EnclaveEventKind::SessionInit => {
                let envelope = sealer.seal(told.seq, &inner).map_err(|_| StreamBroken)?;
                serde_json::to_writer(&mut *lines, &envelope)
                    .expect("an envelope is made of texts");
            }
            Some(_) | None => lines.extend_from_slice(&inner),
        }
        lines.push(b'\n');
        Ok(())
    }

    /// Like `next`, as a stream of batches.
    pub(super) fn batches(
        self,
    ) -> impl Stream<Item = Result<Bytes, StreamBroken>> + Send + 'static {
        let batches = futures_util::stream::unfold(Some(self), async |reader| {
            let mut reader = reader?;
            let batch = reader.next().await?;
            let goes_on = batch.is_ok();
            Some((batch, goes_on.then_some(reader)))
        });
        in_turns(batches, |batch| batch.as_ref().map_or(0, Bytes::len))
    }
}

/// How long the session of this first entry continues without readers.
pub(super) fn grace_ms(first: &Entry) -> u64 {
    if let Event::Started { limits, .. } = &first.event { limits.grace_ms_max } else { 0 }
}

fn sealer(
    session: &EnclaveSessionId,
    note: &EnclaveSessionRecord,
) -> Result<Option<StreamSealer>, Fault> {
    let Some(sealed) = &note.sealed else { return Ok(None) };
    let keys = sealed.keys(session).map_err(|error| Fault::new(error, "the keys are lost"))?;
    // New randomness for each stream: no nonce is used twice, before or after a restart.
    let mut prefix = [0; 8];
    random(&mut prefix)?;
    Ok(Some(StreamSealer::new(&keys.s2c, prefix, &sealed.hello.key_id, session)))
}

/// How often this reader receives a heartbeat.
fn heartbeat(
    note: &EnclaveSessionRecord,
    filter: Option<&EventFilter>,
    telling: &EventRenderer,
) -> Option<Duration> {
    let usual = (note.heartbeat_ms > 0).then(|| Duration::from_millis(note.heartbeat_ms))?;
    let (session, _) = telling.session()?;
    let beat = telling.heartbeat(lifecycle::Timestamp(0));
    match filter {
        Some(filter) if !filter.passes(&beat, session) => Some(usual.max(HEARTBEAT_FILTERED)),
        Some(_) | None => Some(usual),
    }
}
