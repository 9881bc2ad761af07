//! Tests of the whole store: its guarantees in normal operation, with a failing disk, and after a crash.

mod against_a_list;
mod corrupt;
mod damage;
mod fixtures;
mod follow;
mod journal;
mod kill;
mod mark;
mod reading;
mod records;
mod recovery;
mod search;
mod tail;
mod torn_log;
mod trouble;

use super::SqliteStore;
use crate::{Journal, JournalAppend, StoreError};
use lifecycle::{
    CallId, CallerName, Entry, Event, ExecutionId, ExecutionOutcome, ExecutionPhase,
    ExecutionSummary, InputIndex, LogLevel, OutputMark, Question, QuestionId, QuestionKind, Seq,
    Timestamp, WriteStrength,
};
use uuid::Uuid;

fn id(n: u128) -> ExecutionId {
    ExecutionId::from_uuid(Uuid::from_u128(n))
}

fn question(n: u128) -> QuestionId {
    QuestionId::from_uuid(Uuid::from_u128(n))
}

fn running() -> ExecutionSummary {
    standing(ExecutionPhase::Running, "ann", None)
}

fn standing(phase: ExecutionPhase, caller: &str, due: Option<i64>) -> ExecutionSummary {
    ExecutionSummary { phase, caller: CallerName(caller.into()), due: due.map(Timestamp) }
}

fn line(seq: u64, text: &str) -> Entry {
    let mark = OutputMark { input: InputIndex(0), ordinal: 1 };
    let event = Event::Logged { mark, level: LogLevel::Log, line: text.into() };
    Entry { seq: Seq(seq), at: Timestamp(seq.cast_signed()), event }
}

fn end(seq: u64) -> Entry {
    let event = Event::Finished {
        outcome: ExecutionOutcome::Completed { value: None },
        active_ms: 1,
        iterations: 0,
    };
    Entry { seq: Seq(seq), at: Timestamp(seq.cast_signed()), event }
}

fn asks(seq: u64, n: u128) -> Entry {
    let (id, kind) = (question(n), QuestionKind::Approval);
    let event = Event::CallAsked(Question {
        id,
        call: CallId(1),
        kind,
        message: "may I?".into(),
        revision: None,
        editable: false,
        answer_only: false,
    });
    Entry { seq: Seq(seq), at: Timestamp(seq.cast_signed()), event }
}

/// An append of `entries` at the place that their numbers indicate.
fn append(n: u128, entries: Vec<Entry>, standing: ExecutionSummary) -> JournalAppend {
    let expected = Seq(entries[0].seq.0 - 1);
    JournalAppend {
        execution: id(n),
        expected,
        entries,
        standing,
        strength: WriteStrength::Written,
    }
}

/// An execution that ends in its first append.
fn whole(n: u128) -> JournalAppend {
    append(n, vec![line(1, "a"), end(2)], standing(ExecutionPhase::Finished, "ann", None))
}

async fn write(store: &SqliteStore, n: u128, entries: Vec<Entry>) -> Result<(), StoreError> {
    store.append(append(n, entries, running())).await
}

async fn all(store: &SqliteStore, n: u128) -> Vec<Entry> {
    let mut entries = Vec::new();
    loop {
        let after = entries.last().map_or(Seq(0), |entry: &Entry| entry.seq);
        let read = Journal::read(store, id(n), after, usize::MAX).await.unwrap();
        if read.is_empty() {
            return entries;
        }
        entries.extend(read);
    }
}
