//! Rows in the database: sealed when written, checked when read.

use super::rendered::RenderedEntries;
use super::seal::RowChecksum;
use super::trouble::damaged;
use crate::{ListedExecution, StoreError, StoredRecord};
use lifecycle::{
    CallerName, Entry, ExecutionId, ExecutionPhase, ExecutionSummary, QuestionId, Seq, Timestamp,
};
use rusqlite::Row;
use uuid::Uuid;

/// Every phase, with its number in the file.
pub(super) const PHASES: [ExecutionPhase; 5] = [
    ExecutionPhase::Unborn,
    ExecutionPhase::Running,
    ExecutionPhase::Paused,
    ExecutionPhase::Parked,
    ExecutionPhase::Finished,
];

pub(super) const fn phase_number(phase: ExecutionPhase) -> i64 {
    match phase {
        ExecutionPhase::Unborn => 0,
        ExecutionPhase::Running => 1,
        ExecutionPhase::Paused => 2,
        ExecutionPhase::Parked => 3,
        ExecutionPhase::Finished => 4,
    }
}

pub(super) fn phase_of(number: i64) -> Result<ExecutionPhase, StoreError> {
    PHASES
        .into_iter()
        .find(|phase| phase_number(*phase) == number)
        .ok_or_else(|| damaged("a phase that does not exist"))
}

pub(super) fn execution_key(id: ExecutionId) -> [u8; 16] {
    *id.uuid().as_bytes()
}

pub(super) fn question_key(id: QuestionId) -> [u8; 16] {
    *id.uuid().as_bytes()
}

pub(super) fn execution_of(key: [u8; 16]) -> ExecutionId {
    ExecutionId::from_uuid(Uuid::from_bytes(key))
}

/// A seq as an SQLite integer; larger ones do not occur.
pub(super) fn seq_number(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

pub(super) fn entry_seal(execution: i64, seq: Seq, at: Timestamp, event: &str) -> i64 {
    RowChecksum::new().int(execution).int(seq_number(seq)).int(at.0).bytes(event.as_bytes()).done()
}

/// An entry from `execution, seq, at, event, seal`, which must have the number `seq`.
pub(super) fn entry(row: &Row<'_>, seq: Seq) -> Result<Entry, StoreError> {
    let at = Timestamp(row.get(2)?);
    let event = row.get_ref(3)?.as_str().map_err(|_| damaged("an event that is no text"))?;
    if row.get::<_, i64>(1)? != seq_number(seq) {
        return Err(damaged("a gap in a journal"));
    }
    if row.get::<_, i64>(4)? != entry_seal(row.get(0)?, seq, at, event) {
        return Err(damaged("an entry whose seal is broken"));
    }
    understood(seq, at, event)
}

/// An entry with this event text.
pub(super) fn understood(seq: Seq, at: Timestamp, event: &str) -> Result<Entry, StoreError> {
    let event = serde_json::from_str(event).map_err(|error| damaged(&error.to_string()))?;
    Ok(Entry { seq, at, event })
}

/// The seal of an execution's row. If its entries are in the row itself, `end` is their number and the time of the last one.
pub(super) fn execution_seal(
    key: [u8; 16],
    created: Timestamp,
    standing: &ExecutionSummary,
    end: Option<(i64, Timestamp)>,
) -> i64 {
    let due = standing.due.map_or(0, |due| due.0);
    let seal = RowChecksum::new()
        .bytes(&key)
        .int(created.0)
        .int(phase_number(standing.phase))
        .bytes(standing.caller.0.as_bytes())
        .int(i64::from(standing.due.is_some()))
        .int(due);
    end.map_or(seal, |(n, ended)| seal.int(n).int(ended.0)).done()
}

/// The seal of the entries in an execution's own row.
pub(super) fn entries_seal(key: [u8; 16], rendered: &[u8]) -> i64 {
    RowChecksum::new().bytes(&key).bytes(rendered).done()
}

/// Those entries from `id, n_entries, entries_seal, entries`; `None` if they are in another table.
pub(super) fn rendered(row: &Row<'_>) -> Result<Option<RenderedEntries>, StoreError> {
    let (n, seal) = (row.get::<_, Option<i64>>(1)?, row.get::<_, Option<i64>>(2)?);
    match (n, row.get::<_, Option<Vec<u8>>>(3)?) {
        (None, None) => Ok(None),
        (Some(_), Some(kept)) if seal == Some(entries_seal(row.get(0)?, &kept)) => {
            Ok(Some(RenderedEntries::kept(kept)))
        }
        (_, _) => Err(damaged("entries whose seal is broken")),
    }
}

/// A list entry from `id, created, phase, caller, due, seal, last, ended`; `ended` is null if the entries are in
/// another table.
pub(super) fn listed(row: &Row<'_>) -> Result<ListedExecution, StoreError> {
    listed_from(row, 0)
}

/// The same, from the columns that begin at `first`.
pub(super) fn listed_from(row: &Row<'_>, first: usize) -> Result<ListedExecution, StoreError> {
    let key: [u8; 16] = row.get(first)?;
    let created = Timestamp(row.get(first + 1)?);
    let phase = phase_of(row.get(first + 2)?)?;
    let due = row.get::<_, Option<i64>>(first + 4)?.map(Timestamp);
    let standing = ExecutionSummary { phase, caller: CallerName(row.get(first + 3)?), due };
    let last: Option<i64> = row.get(first + 6)?;
    let ended = row.get::<_, Option<i64>>(first + 7)?.map(Timestamp);
    let end = ended.map(|ended| (last.unwrap_or(0), ended));
    if row.get::<_, i64>(first + 5)? != execution_seal(key, created, &standing, end) {
        return Err(damaged("an execution whose seal is broken"));
    }
    let last = last.and_then(|last| u64::try_from(last).ok()).map(Seq);
    let last = last.ok_or_else(|| damaged("an execution without entries"))?;
    Ok(ListedExecution { execution: execution_of(key), created, last, standing })
}

pub(super) fn record_seal(kind: &str, record: &StoredRecord) -> i64 {
    RowChecksum::new()
        .bytes(kind.as_bytes())
        .bytes(record.key.as_bytes())
        .bytes(record.value.as_bytes())
        .int(record.version.cast_signed())
        .done()
}

pub(super) fn note_seal(book: &str, line: &str) -> i64 {
    RowChecksum::new().bytes(book.as_bytes()).bytes(line.as_bytes()).done()
}

/// A note from `line, seal`.
pub(super) fn note_row(book: &str, row: &Row<'_>) -> Result<String, StoreError> {
    let line: String = row.get(0)?;
    if row.get::<_, i64>(1)? != note_seal(book, &line) {
        return Err(damaged("a note whose seal is broken"));
    }
    Ok(line)
}

/// A record from `key, value, version, seal`.
pub(super) fn record(kind: &str, row: &Row<'_>) -> Result<StoredRecord, StoreError> {
    let version: i64 = row.get(2)?;
    let record =
        StoredRecord { key: row.get(0)?, value: row.get(1)?, version: version.cast_unsigned() };
    if row.get::<_, i64>(3)? != record_seal(kind, &record) {
        return Err(damaged("a record whose seal is broken"));
    }
    Ok(record)
}
