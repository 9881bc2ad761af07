//! State and journal of one execution: decide, write down, remember. Effects wait behind gates
//! until what obliges us to them is kept surely enough.

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

/// How many entries are read at once while a journal is brought back.
pub(super) const ENTRIES_PER_READ_MAX: usize = 1_000;

/// Entries that wait for an append under way. More would make one append slow for everybody.
const ENTRIES_HELD_MAX: usize = 256;

/// How long what nobody waits for may wait to be written with what comes next. Most programs are over in less, those that
/// call quick tools too, and are then one append from beginning to end. Whoever watches one print does not notice.
const HELD_MS_MAX: u64 = 20;

/// The same for a program of which its runner has said nothing yet: where many wait for a runner, or for a processor,
/// most are over soon after they have got it.
const HELD_UNBEGUN_MS_MAX: u64 = 50;

/// What an entry of the journal takes besides arguments, results, output and programs, about.
const ENTRY_BYTES: u64 = 100;

/// A guest that is this many appends ahead of the disk waits for it.
const APPENDS_AHEAD_MAX: usize = 64;

/// Counts appends of this actor: an effect behind gate `n` may happen once append `n` is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AppendGate(u64);

/// Something to do because of an event that is recorded.
pub(super) struct JournalledEffect {
    pub(super) effect: Effect,
    /// How surely the event must be kept first.
    pub(super) strength: WriteStrength,
    /// The guest's input that the event is, with its number.
    pub(super) input: Option<(InputIndex, Event)>,
}

pub(super) struct JournalWriter {
    execution: ExecutionId,
    state: State,
    journal: Arc<dyn Journal>,
    /// What stamps of earlier servers mean on the present clock.
    timeline: Arc<ClockTimeline>,
    /// When the journal says that the execution began; none where it begins here.
    began: Option<Timestamp>,
    last: Seq,
    /// What is decided and not yet on its way; it becomes one append.
    outbox: Vec<Entry>,
    /// Until when the outbox may wait for more; none while nothing in it waits.
    held_until: Option<Timestamp>,
    /// Somebody waits for what is in the outbox.
    is_urgent: bool,
    strength: WriteStrength,
    /// Appends under way, the oldest first. They get on by themselves, so that only the oldest need be looked at.
    appending: VecDeque<BoxFuture<'static, Result<(), StoreError>>>,
    flushed: AppendGate,
    kept: AppendGate,
    entropy: QuestionIdSource,
    /// About how often the program's loops have gone round.
    iterations: u64,
    /// Told when a question that was asked or closed is kept.
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
        // Above the bits that one decision counts in, below the bits that mark a version.
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

    /// Reads the journal into the state. Stamps from before the clock was set are translated to the clock at `now`.
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

    /// When the program began, as it was told. A replay must tell it the same.
    pub(super) fn began(&self) -> Timestamp {
        let origin = self.state.origin.as_ref().map(|origin| origin.at);
        self.began.or(origin).unwrap_or(Timestamp(0))
    }

    /// Writes the line of the list anew: when the execution is due was written before the clock was set.
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

    /// What the entries add up to, those that are not written yet included.
    pub(super) const fn state(&self) -> &State {
        &self.state
    }

    /// Decides on `intent`. Events are applied at once and written at the end of the turn. Returned is what they oblige us
    /// to, each with the gate behind which it must wait if it needs certainty.
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

    /// Decides on answers, as [`Self::submit`] does on other intents; none where the program must be restored first.
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

    /// Notes how often the program's loops have gone round; a replay counts from the start again.
    pub(super) fn count(&mut self, iterations: u64) {
        self.iterations = iterations;
    }

    /// Somebody waits for what is recorded, or will be in this turn.
    pub(super) fn hurry(&mut self) {
        self.is_urgent = true;
    }

    /// When what is held back goes to the journal although nothing happens.
    pub(super) fn held_until(&self) -> Option<Timestamp> {
        self.held_until.filter(|_| self.appending.is_empty())
    }

    /// Sends what is recorded to the journal, as one append. What nobody waits for joins the next append while one is
    /// under way, or waits a moment for more of its kind: a chain of read-only calls costs few of them.
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

    /// Whether what lies before `gate` is kept.
    pub(super) fn is_open(&self, gate: AppendGate) -> bool {
        gate <= self.kept
    }

    /// Whether every append so far is kept.
    pub(super) fn is_quiet(&self) -> bool {
        self.outbox.is_empty() && self.appending.is_empty()
    }

    /// Whether the disk keeps up with the guest.
    pub(super) fn has_room(&self) -> bool {
        self.appending.len() < APPENDS_AHEAD_MAX
    }

    /// The gate behind everything recorded so far.
    pub(super) fn newest_gate(&self) -> AppendGate {
        AppendGate(self.flushed.0 + u64::from(!self.outbox.is_empty()))
    }

    /// Waits for the oldest append under way; never resolves while there is none.
    pub(super) async fn keep_one(&mut self) -> Result<(), StoreError> {
        let Some(oldest) = self.appending.front_mut() else { return std::future::pending().await };
        let result = oldest.await;
        self.appending.pop_front();
        self.kept = AppendGate(self.kept.0 + 1);
        result
    }

    /// Waits until everything is kept.
    pub(super) async fn flush_appends(&mut self) -> Result<(), StoreError> {
        self.flush_now();
        while !self.appending.is_empty() {
            self.keep_one().await?;
        }
        Ok(())
    }

    /// About how much of the journal a replay reads.
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

/// Whether an inbox of open questions may look different after it.
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

    /// A writer that nobody has written to, and where it writes.
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
        // One is under way: the next joins the one after it.
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
