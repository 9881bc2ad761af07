//! State and journal of one execution: decide, append, apply. Effects wait behind gates until their
//! events are sufficiently durable.

use crate::Clock;
use crate::clock::ClockTimeline;
use futures_util::future::BoxFuture;
use lifecycle::{
    AnswerDecision, DecisionMoment, Effect, Entry, Event, ExecutionId, ExecutionPhase, GivenAnswer,
    HeldCallFacts, InputIndex, Intent, Policy, Rejection, Seq, State, Timestamp, WriteStrength,
    decide, decide_answers, owe,
};
use std::collections::VecDeque;
use std::sync::Arc;
use store::{Journal, JournalAppend, StoreError};
use tokio::sync::watch;
use uuid::Uuid;

/// Entries per read when a journal is loaded.
pub(super) const ENTRIES_PER_READ_MAX: usize = 1_000;

/// Maximum number of entries that wait for an append in progress. A larger append would delay other executions.
const ENTRIES_HELD_MAX: usize = 256;

/// How long entries that are not urgent may wait for more entries. Most programs end within this time, including those that
/// call quick tools, and then need one append in total. Viewers of live output do not notice the delay.
const HELD_MS_MAX: u64 = 20;

/// The same before the first message of the runner: while many programs wait for a runner or a processor,
/// most end soon after they have got it.
const HELD_UNBEGUN_MS_MAX: u64 = 50;

/// Approximate size of an entry without arguments, results, output and programs.
const ENTRY_BYTES: u64 = 100;

/// A guest that is this many appends ahead of the disk is paused.
const APPENDS_AHEAD_MAX: usize = 64;

/// Counts appends of this actor: an effect behind gate `n` may be performed once append `n` is durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AppendGate(u64);

/// An action that a recorded event requires.
pub(super) struct JournalledEffect {
    pub(super) effect: Effect,
    /// How durable the event must be first.
    pub(super) strength: WriteStrength,
    /// The guest's input that the event contains, with its number.
    pub(super) input: Option<(InputIndex, Event)>,
}

pub(super) struct JournalWriter {
    execution: ExecutionId,
    state: State,
    journal: Arc<dyn Journal>,
    /// Translates timestamps of earlier servers to the present clock.
    timeline: Arc<ClockTimeline>,
    /// When the execution began according to the journal; none if it begins here.
    began: Option<Timestamp>,
    last: Seq,
    /// Decided entries that are not sent yet; they become one append.
    outbox: Vec<Entry>,
    /// Until when the outbox may wait for more; none while it holds no waiting entry.
    held_until: Option<Timestamp>,
    /// A client waits for an entry in the outbox.
    is_urgent: bool,
    strength: WriteStrength,
    /// Appends in progress, the oldest first. They advance by themselves, so only the oldest needs polling.
    appending: VecDeque<BoxFuture<'static, Result<(), StoreError>>>,
    flushed: AppendGate,
    kept: AppendGate,
    entropy: QuestionIdSource,
    /// Approximate number of iterations of the program's loops.
    iterations: u64,
    /// Notified when a question that was asked or closed is durable.
    questions: watch::Sender<u64>,
}

/// Ids for questions: random once per actor, then counted, because randomness costs a system call.
struct QuestionIdSource {
    base: Uuid,
    n_used: u64,
}

impl QuestionIdSource {
    fn next(&mut self) -> Uuid {
        self.n_used += 1;
        // Above the bits that count within one decision, below the version bits.
        Uuid::from_u128(self.base.as_u128() ^ (u128::from(self.n_used) << 16))
    }
}

impl JournalWriter {
    pub(super) fn new(
        execution: ExecutionId,
        (journal, timeline): (Arc<dyn Journal>, Arc<ClockTimeline>),
        questions: watch::Sender<u64>,
    ) -> Self {
        Self {
            execution,
            state: State::default(),
            journal,
            timeline,
            began: None,
            last: Seq(0),
            outbox: vec![],
            held_until: None,
            is_urgent: false,
            strength: WriteStrength::Written,
            appending: VecDeque::new(),
            flushed: AppendGate::default(),
            kept: AppendGate::default(),
            entropy: QuestionIdSource { base: Uuid::new_v4(), n_used: 0 },
            iterations: 0,
            questions,
        }
    }

    /// Loads the journal into the state. Timestamps from before a change of the clock are translated to the clock at `now`.
    pub(super) async fn load(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let mut is_translated = false;
        loop {
            let read = self.journal.read(self.execution, self.last, ENTRIES_PER_READ_MAX).await?;
            let Some(newest) = read.last() else { break };
            self.last = newest.seq;
            self.began = self.began.or(read.first().map(|first| first.at));
            for entry in &read {
                let (at, event) = self.timeline.translate(entry.at, &entry.event, now);
                is_translated |= at != entry.at;
                self.state.apply(at, &event);
            }
        }
        if is_translated && self.state.phase == ExecutionPhase::Paused {
            self.correct_due();
        }
        Ok(())
    }

    /// The start time that the program received. A replay must pass the same value.
    pub(super) fn began(&self) -> Timestamp {
        let origin = self.state.origin.as_ref().map(|origin| origin.at);
        self.began.or(origin).unwrap_or(Timestamp(0))
    }

    /// Rewrites the list entry: its due time was written before the clock was set.
    fn correct_due(&mut self) {
        let Some(standing) = self.state.standing() else { return };
        let append = JournalAppend {
            execution: self.execution,
            expected: self.last,
            entries: vec![],
            standing,
            strength: WriteStrength::Written,
        };
        self.flushed = AppendGate(self.flushed.0 + 1);
        self.appending.push_back(self.journal.append(append));
    }

    pub(super) const fn execution(&self) -> ExecutionId {
        self.execution
    }

    /// The state after all entries, including those that are not written yet.
    pub(super) const fn state(&self) -> &State {
        &self.state
    }

    /// Decides on `intent`. Events are applied immediately and written at the end of the turn. Returns their effects,
    /// each with the gate that it must wait for if it requires durability.
    pub(super) fn submit(
        &mut self,
        policy: &Policy,
        at: Timestamp,
        intent: Intent,
    ) -> Result<(Vec<JournalledEffect>, AppendGate), Rejection> {
        let moment = DecisionMoment { at, entropy: self.entropy.next() };
        let events = decide(&self.state, policy, moment, intent)?;
        Ok(self.record(at, events))
    }

    /// Decides on answers, as [`Self::submit`] does on other intents; none if the program must be restored first.
    pub(super) fn decide_answer(
        &mut self,
        policy: &Policy,
        at: Timestamp,
        answers: Vec<(GivenAnswer, HeldCallFacts)>,
        is_restored: bool,
    ) -> Result<Option<(Vec<JournalledEffect>, AppendGate)>, Rejection> {
        let moment = DecisionMoment { at, entropy: self.entropy.next() };
        match decide_answers(&self.state, policy, moment, answers, is_restored)? {
            AnswerDecision::Accepted(events) => Ok(Some(self.record(at, events))),
            AnswerDecision::AfterReplay => Ok(None),
        }
    }

    fn record(&mut self, at: Timestamp, events: Vec<Event>) -> (Vec<JournalledEffect>, AppendGate) {
        let mut duties = Vec::new();
        for mut event in events {
            if let Event::Finished { iterations, .. } = &mut event {
                *iterations = self.iterations;
            }
            self.state.apply(at, &event);
            let strength = self.state.strength(&event);
            self.strength = self.strength.max(strength);
            self.is_urgent |= !event.can_wait();
            self.last = self.last.next();
            if let Some(effect) = owe(&event) {
                let input = event.input().is_some().then(|| (self.state.inputs, event.clone()));
                duties.push(JournalledEffect { effect, strength, input });
            }
            self.outbox.push(Entry { seq: self.last, at, event });
        }
        (duties, self.newest_gate())
    }

    /// Records the number of loop iterations; a replay counts from the start again.
    pub(super) fn count(&mut self, iterations: u64) {
        self.iterations = iterations;
    }

    /// A client waits for what is recorded, or will in this turn.
    pub(super) fn hurry(&mut self) {
        self.is_urgent = true;
    }

    /// When delayed entries are written even if nothing happens.
    pub(super) fn held_until(&self) -> Option<Timestamp> {
        self.held_until.filter(|_| self.appending.is_empty())
    }

    /// Sends the recorded entries to the journal as one append. Entries that are not urgent join the next append while
    /// one is in progress, or wait briefly for more of their kind: a chain of read-only calls needs few appends.
    pub(super) fn flush(&mut self, clock: &Clock) {
        if self.outbox.is_empty() {
            self.is_urgent = false;
            return;
        }
        let may_wait =
            self.strength == WriteStrength::Written && self.outbox.len() < ENTRIES_HELD_MAX;
        let is_held = !self.is_urgent && self.is_held(clock);
        if !may_wait || (self.appending.is_empty() && !is_held) {
            self.flush_now();
        }
    }

    fn is_held(&mut self, clock: &Clock) -> bool {
        let now = clock.now();
        let ms_max = if self.state.prepared.is_none() { HELD_UNBEGUN_MS_MAX } else { HELD_MS_MAX };
        let until = now.after_ms(ms_max);
        let until = self.held_until.map_or(until, |held| held.min(until));
        self.held_until = Some(until);
        now < until
    }

    fn flush_now(&mut self) {
        if self.outbox.is_empty() {
            return;
        }
        (self.held_until, self.is_urgent) = (None, false);
        let entries = std::mem::take(&mut self.outbox);
        let n_entries = entries.len() as u64;
        let Some(standing) = self.state.standing() else { return };
        let concerns_questions = !self.state.questions.is_empty()
            && entries.iter().any(|entry| concerns_questions(&entry.event));
        let append = JournalAppend {
            execution: self.execution,
            expected: Seq(self.last.0 - n_entries),
            entries,
            standing,
            strength: std::mem::replace(&mut self.strength, WriteStrength::Written),
        };
        self.flushed = AppendGate(self.flushed.0 + 1);
        let appending = self.journal.append(append);
        if !concerns_questions {
            self.appending.push_back(appending);
            return;
        }
        let questions = self.questions.clone();
        self.appending.push_back(Box::pin(async move {
            appending.await?;
            questions.send_modify(|n_changes| *n_changes += 1);
            Ok(())
        }));
    }

    /// Whether everything before `gate` is durable.
    pub(super) fn is_open(&self, gate: AppendGate) -> bool {
        gate <= self.kept
    }

    /// Whether every append so far is durable.
    pub(super) fn is_quiet(&self) -> bool {
        self.outbox.is_empty() && self.appending.is_empty()
    }

    /// Whether the disk is fast enough for the guest.
    pub(super) fn has_room(&self) -> bool {
        self.appending.len() < APPENDS_AHEAD_MAX
    }

    /// The gate behind all entries recorded so far.
    pub(super) fn newest_gate(&self) -> AppendGate {
        AppendGate(self.flushed.0 + u64::from(!self.outbox.is_empty()))
    }

    /// Waits for the oldest append in progress; never resolves while there is none.
    pub(super) async fn keep_one(&mut self) -> Result<(), StoreError> {
        let Some(oldest) = self.appending.front_mut() else { return std::future::pending().await };
        let result = oldest.await;
        self.appending.pop_front();
        self.kept = AppendGate(self.kept.0 + 1);
        result
    }

    /// Waits until everything is durable.
    pub(super) async fn flush_appends(&mut self) -> Result<(), StoreError> {
        self.flush_now();
        while !self.appending.is_empty() {
            self.keep_one().await?;
        }
        Ok(())
    }

    /// Approximate size of the journal that a replay reads.
    pub(super) fn journal_bytes(&self) -> u64 {
        let text = |state: &State| {
            let origin = state.origin.as_ref().map_or(0, |origin| origin.program.source.len());
            let prepared = state.prepared.as_ref().and_then(|prepared| prepared.text.as_ref());
            (origin + prepared.map_or(0, String::len)) as u64
        };
        self.last.0 * ENTRY_BYTES + self.state.bytes + text(&self.state)
    }

    /// Reads a page of the journal, for replay. Call [`JournalWriter::flush_appends`] before.
    pub(super) async fn page(&mut self, after: Seq) -> Result<Vec<Entry>, StoreError> {
        self.journal.read(self.execution, after, ENTRIES_PER_READ_MAX).await
    }
}

/// Whether an event can change the list of open questions.
const fn concerns_questions(event: &Event) -> bool {
    matches!(event, Event::CallAsked(_) | Event::CallAnswered { .. } | Event::Finished { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;
    use lifecycle::{
        CallerName, ExecutionLimits, Json, LogLevel, OutputMark, PreparedProgram, Program,
        RandomSeed, ValueConvention,
    };
    use std::time::Duration;
    use store::sqlite::SqliteStore;

    fn start() -> Intent {
        Intent::Start {
            program: Program { source: "1".into(), convention: ValueConvention::LastExpression },
            caller: CallerName("ann".into()),
            limits: ExecutionLimits::default(),
            seed: RandomSeed([7; 32]),
            terms: Box::default(),
        }
    }

    fn log(ordinal: u32) -> Intent {
        let mark = OutputMark { input: InputIndex(0), ordinal };
        Intent::Log { mark, level: LogLevel::Log, line: "hello".into() }
    }

    fn finish() -> Intent {
        let value = Json::parse("1".into()).expect("a number is JSON");
        Intent::Finish { result: Ok(Some(value)), active_ms: 0 }
    }

    /// A writer with an empty journal, and its store.
    fn empty() -> (SqliteStore, JournalWriter) {
        let store = SqliteStore::temporary().unwrap();
        let execution = ExecutionId::from_uuid(Uuid::now_v7());
        let journal = Arc::new(store.clone());
        let place = (journal as Arc<dyn Journal>, Arc::<ClockTimeline>::default());
        (store, JournalWriter::new(execution, place, watch::Sender::new(0)))
    }

    fn ready() -> Intent {
        let fingerprint = "an engine".to_owned();
        Intent::Ready(PreparedProgram { text: None, prelude: 1, fingerprint })
    }

    #[tokio::test]
    async fn what_has_not_begun_waits_longer_and_no_longer_than_others_once_it_has() {
        let (store, mut writer) = empty();
        let hands = ManualClock::starting_at(Timestamp(1_000));
        let clock = Clock::Manual(hands.clone());
        let is_unwritten = |writer: &mut JournalWriter| {
            writer.flush(&clock);
            writer.flushed.0 == 0
        };
        writer.submit(&Policy::default(), clock.now(), start()).unwrap();
        assert!(is_unwritten(&mut writer));
        hands.advance(Duration::from_millis(HELD_UNBEGUN_MS_MAX - HELD_MS_MAX - 1));
        assert!(is_unwritten(&mut writer));
        writer.submit(&Policy::default(), clock.now(), ready()).unwrap();
        assert!(is_unwritten(&mut writer), "it has only just begun");
        hands.advance(Duration::from_millis(HELD_MS_MAX - 1));
        assert!(is_unwritten(&mut writer));
        hands.advance(Duration::from_millis(1));
        assert!(!is_unwritten(&mut writer));
        writer.flush_appends().await.unwrap();
        store.close().await;
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_written_with_what_comes_next_and_never_much_later() {
        let (store, mut writer) = empty();
        let hands = ManualClock::starting_at(Timestamp(1_000));
        let clock = Clock::Manual(hands.clone());
        let n_appends = |writer: &mut JournalWriter, intent| {
            writer.submit(&Policy::default(), clock.now(), intent).unwrap();
            writer.flush(&clock);
            writer.flushed.0
        };
        assert_eq!(n_appends(&mut writer, start()), 0);
        assert_eq!(n_appends(&mut writer, ready()), 0);
        hands.advance(Duration::from_millis(HELD_MS_MAX - 1));
        assert_eq!(n_appends(&mut writer, log(1)), 0);
        assert_eq!(writer.held_until(), Some(Timestamp(1_000).after_ms(HELD_MS_MAX)));
        hands.advance(Duration::from_millis(1));
        assert_eq!(n_appends(&mut writer, log(2)), 1, "the first of them has waited long enough");
        // One append is in progress: the next entries join the one after it.
        assert_eq!(n_appends(&mut writer, log(3)), 1);
        assert_eq!(writer.held_until(), None, "it is not time that it waits for");
        writer.keep_one().await.unwrap();
        assert_eq!(n_appends(&mut writer, log(4)), 1, "it waits for more");
        writer.hurry();
        assert_eq!(n_appends(&mut writer, log(5)), 2, "somebody waits");
        writer.keep_one().await.unwrap();
        assert_eq!(n_appends(&mut writer, log(6)), 2);
        assert_eq!(n_appends(&mut writer, finish()), 3, "an end goes at once");
        writer.flush_appends().await.unwrap();
        let written = store.read(writer.execution, Seq(0), usize::MAX).await.unwrap();
        assert_eq!(written.len(), 9, "{written:?}");
        store.close().await;
    }
}
