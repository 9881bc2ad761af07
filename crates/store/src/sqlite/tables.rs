//! The tables as the writer changes them: what each write does within a transaction.

use super::append_log::{FinishedExecution, LogFile};
use super::query;
use super::rendered::{EntrySpan, RenderedEntries};
use super::row;
use crate::{JournalAppend, StoreError, StoredRecord};
use lifecycle::{
    CallerName, Entry, Event, ExecutionId, ExecutionPhase, ExecutionSummary, QuestionId, Seq,
    Timestamp, WriteStrength,
};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::HashMap;

/// Executions whose last seq is cached between appends; beyond this all are looked up again.
const KNOWN_MAX: usize = 16_384;

/// Maximum size of an append: the limits of executions are far below.
const APPEND_BYTES_MAX: usize = 256 << 20;

/// Maximum size of a record; larger values are blobs.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// Maximum number of deleted executions that are recorded as such, at some dozens of bytes each.
pub(super) const FORGOTTEN_MAX: i64 = 100_000;

/// A book is trimmed after this many notes: counting its lines after each would cost more than writing.
const NOTES_PER_TRIM: i64 = 64;

/// A write, already converted to rows.
#[derive(Debug)]
pub(super) enum TableWrite {
    Append(AppendRows),
    /// Inserts an execution that was written to an append file.
    Sort(FinishedExecution, LogFile),
    /// Writes nothing; completes after all earlier writes.
    Nothing,
    Put {
        kind: &'static str,
        record: StoredRecord,
    },
    Remove {
        kind: &'static str,
        key: String,
        expected: u64,
    },
    Forget(ExecutionId),
    Note {
        book: String,
        line: String,
        n_max: usize,
    },
    /// For tests: makes the writer's connection behave as on a failing disk.
    #[cfg(test)]
    Trouble(&'static str),
}

/// An append as rows.
#[derive(Debug)]
pub(super) struct AppendRows {
    pub(super) execution: ExecutionId,
    pub(super) expected: Seq,
    /// Each entry with the length of its event as text.
    entries: Vec<(Entry, usize)>,
    rendered: RenderedEntries,
    asked: Vec<QuestionId>,
    standing: ExecutionSummary,
    strength: WriteStrength,
}

/// Why a write failed.
#[derive(Debug)]
pub(super) enum WriteRefused {
    /// Detected before any change: only this write fails.
    Refused(StoreError),
    /// The transaction may be incomplete.
    Broken(rusqlite::Error),
}

impl From<rusqlite::Error> for WriteRefused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<StoreError> for WriteRefused {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl TableWrite {
    /// Renders an append as rows.
    pub(super) fn append(append: JournalAppend) -> Result<Self, StoreError> {
        let JournalAppend { execution, expected, entries, standing, strength } = append;
        let mut rows = Vec::with_capacity(entries.len());
        let mut rendered = RenderedEntries::for_entries(entries.len());
        let (mut asked, mut seq) = (Vec::new(), expected);
        for entry in entries {
            seq = seq.next();
            if entry.seq != seq {
                return Err(StoreError::Other(
                    "entries are not numbered one after the other".into(),
                ));
            }
            if let Event::CallAsked(question) = &entry.event {
                asked.push(question.id);
            }
            let bytes = rendered.push(&entry)?;
            if rendered.as_bytes().len() > APPEND_BYTES_MAX {
                return Err(StoreError::Other("an append is too large".into()));
            }
            rows.push((entry, bytes));
        }
        if rows.is_empty() && expected == Seq(0) {
            return Err(StoreError::Other("a journal begins with an entry".into()));
        }
        let entries = rows;
        let rows = AppendRows { execution, expected, entries, rendered, asked, standing, strength };
        Ok(Self::Append(rows))
    }

    /// Checks a record's size; `expected` is the version it replaces.
    pub(super) fn put(
        kind: &'static str,
        key: &str,
        value: String,
        expected: u64,
    ) -> Result<Self, StoreError> {
        if value.len() > RECORD_BYTES_MAX || key.len() > RECORD_BYTES_MAX {
            return Err(StoreError::Other("a record is too large".into()));
        }
        let version = expected.checked_add(1).ok_or(StoreError::Conflict)?;
        Ok(Self::Put { kind, record: StoredRecord { key: key.to_owned(), value, version } })
    }

    /// Checks a note's size.
    pub(super) fn append_note(book: &str, line: String, n_max: usize) -> Result<Self, StoreError> {
        if line.len() > RECORD_BYTES_MAX || book.len() > RECORD_BYTES_MAX {
            return Err(StoreError::Other("a note is too large".into()));
        }
        Ok(Self::Note { book: book.to_owned(), line, n_max })
    }

    /// Whether it must be on the disk before it is acknowledged.
    pub(super) fn synced(&self) -> bool {
        match self {
            Self::Append(rows) => rows.strength == WriteStrength::Synced,
            Self::Put { .. } | Self::Remove { .. } => true,
            Self::Forget(_) | Self::Note { .. } | Self::Sort(..) | Self::Nothing => false,
            #[cfg(test)]
            Self::Trouble(_) => false,
        }
    }

    /// Approximate memory that it uses while it waits.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Append(rows) => rows.rendered.as_bytes().len(),
            Self::Put { record, .. } => record.key.len() + record.value.len(),
            Self::Remove { key, .. } => key.len(),
            Self::Note { book, line, .. } => book.len() + line.len(),
            Self::Forget(_) | Self::Sort(..) | Self::Nothing => 0,
            #[cfg(test)]
            Self::Trouble(_) => 0,
        }
    }
}

impl AppendRows {
    /// The newest seq after this write.
    pub(super) fn last(&self) -> Seq {
        let n = u64::try_from(self.entries.len()).unwrap_or(u64::MAX);
        Seq(self.expected.0.saturating_add(n))
    }

    /// Whether this is a complete execution that need not be synced.
    pub(super) fn is_whole(&self) -> bool {
        let ExecutionSummary { phase, due, .. } = &self.standing;
        self.expected == Seq(0)
            && *phase == ExecutionPhase::Finished
            && due.is_none()
            && self.asked.is_empty()
            && self.strength == WriteStrength::Written
    }

    /// Takes the complete execution. Moves its texts: only the later insertion needs them.
    pub(super) fn take_whole(&mut self) -> FinishedExecution {
        let (caller, entries) =
            (self.standing.caller.0.clone(), std::mem::take(&mut self.rendered));
        FinishedExecution { execution: self.execution, caller, entries }
    }

    /// Reverts [`AppendRows::take_whole`].
    pub(super) fn take_back(&mut self, whole: FinishedExecution) {
        self.rendered = whole.entries;
    }

    /// Takes the written entries, each with the length of its event.
    pub(super) fn take_entries(&mut self) -> impl Iterator<Item = (Entry, usize)> {
        self.entries.drain(..)
    }
}

/// The writer's cached knowledge of an execution; valid because there is no other writer.
#[derive(Debug)]
struct WriterView {
    number: i64,
    created: Timestamp,
    last: Seq,
    standing: ExecutionSummary,
}

/// The tables as the only writer sees them.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) conn: Connection,
    known: HashMap<ExecutionId, WriterView>,
}

impl Tables {
    pub(super) fn new(conn: Connection) -> Self {
        Self { conn, known: HashMap::new() }
    }

    /// Must be called after a rollback: cached knowledge may be wrong.
    pub(super) fn unlearn(&mut self) {
        self.known.clear();
    }

    /// Performs one write. Returns a record's new version, or the number of removed rows.
    pub(super) fn write(&mut self, write: &TableWrite) -> Result<u64, WriteRefused> {
        match write {
            TableWrite::Append(rows) => self.append(rows),
            TableWrite::Sort(whole, _) => self.sort(whole),
            TableWrite::Nothing => Ok(0),
            TableWrite::Put { kind, record } => self.put(kind, record),
            TableWrite::Remove { kind, key, expected } => self.remove(kind, key, *expected),
            TableWrite::Forget(execution) => self.delete_execution(*execution),
            TableWrite::Note { book, line, n_max } => self.append_note(book, line, *n_max),
            #[cfg(test)]
            TableWrite::Trouble(_) => Ok(0),
        }
    }

    fn append(&mut self, rows: &AppendRows) -> Result<u64, WriteRefused> {
        // Most appends that begin a journal also end it: they need no cached knowledge.
        if rows.expected > Seq(0) {
            self.learn(rows.execution)?;
        }
        let number = match self.known.get_mut(&rows.execution) {
            Some(known) if known.last == rows.expected => {
                if known.standing != rows.standing {
                    move_to(&self.conn, rows, known)?;
                    known.standing = rows.standing.clone();
                }
                known.last = rows.last();
                known.number
            }
            None if rows.expected == Seq(0) => self.begin_transaction(rows)?,
            Some(_) | None => return Err(WriteRefused::Refused(StoreError::Conflict)),
        };
        insert_entries(&self.conn, number, rows.expected, &rows.rendered)?;
        for question in &rows.asked {
            self.conn
                .prepare_cached("INSERT OR REPLACE INTO questions VALUES (?1, ?2)")?
                .execute(params![row::question_key(*question), number])?;
        }
        Ok(0)
    }

    /// Looks an execution up unless it is cached. One that ended in its first append is not found, because it is complete.
    fn learn(&mut self, execution: ExecutionId) -> Result<(), WriteRefused> {
        if self.known.contains_key(&execution) {
            return Ok(());
        }
        self.make_room();
        let mut select = self.conn.prepare_cached(
            "SELECT id, created, phase, caller, due, seal,
                    (SELECT max(seq) FROM entries WHERE execution = number), ended, number
             FROM executions WHERE id = ?1 AND n_entries IS NULL",
        )?;
        let mut found = select.query([row::execution_key(execution)])?;
        if let Some(found) = found.next()? {
            let number = found.get(8)?;
            let crate::ListedExecution { created, last, standing, .. } = row::listed(found)?;
            self.known.insert(execution, WriterView { number, created, last, standing });
        }
        Ok(())
    }

    fn make_room(&mut self) {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
    }

    /// Inserts an execution from an append file, unless it was inserted before.
    fn sort(&self, whole: &FinishedExecution) -> Result<u64, WriteRefused> {
        let caller = CallerName(whole.caller.clone());
        let standing = ExecutionSummary { phase: ExecutionPhase::Finished, caller, due: None };
        let span = whole.entries.span();
        self.insert_finished(whole.execution, span.first, &standing, Some((span, &whole.entries)))?;
        Ok(0)
    }

    /// Inserts the executions that remained in the append files, in one transaction. Those that were deleted since stay
    /// deleted.
    pub(super) fn bring_back(&self, left: &[FinishedExecution]) -> Result<(), StoreError> {
        let transaction = self.conn.unchecked_transaction()?;
        for whole in left {
            if !query::was_forgotten(&self.conn, whole.execution)? {
                self.sort(whole).map_err(|unwritten| match unwritten {
                    WriteRefused::Refused(why) => why,
                    WriteRefused::Broken(error) => error.into(),
                })?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn begin_transaction(&mut self, rows: &AppendRows) -> Result<i64, WriteRefused> {
        let created = rows.entries.first().map_or(Timestamp(0), |(entry, _)| entry.at);
        let standing = rows.standing.clone();
        let Some(number) = self.insert_finished(rows.execution, created, &standing, None)? else {
            return Err(WriteRefused::Refused(StoreError::Conflict));
        };
        if standing.phase != ExecutionPhase::Finished {
            self.make_room();
            let known = WriterView { number, created, last: rows.last(), standing };
            self.known.insert(rows.execution, known);
        }
        Ok(number)
    }

    /// The number of a new execution; none if its id exists. Its entries are inserted together with it, or later.
    fn insert_finished(
        &self,
        execution: ExecutionId,
        created: Timestamp,
        standing: &ExecutionSummary,
        entries: Option<(EntrySpan, &RenderedEntries)>,
    ) -> rusqlite::Result<Option<i64>> {
        let key = row::execution_key(execution);
        let end = entries.map(|(span, _)| (span.n, span.last));
        let rendered = entries.map(|(_, rendered)| rendered.as_bytes());
        let n_begun = self
            .conn
            .prepare_cached(
                "INSERT INTO executions (id, created, phase, caller, due, seal,
                                         n_entries, ended, entries_seal, entries)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (id) DO NOTHING",
            )?
            .execute(params![
                key,
                created.0,
                row::phase_number(standing.phase),
                standing.caller.0,
                standing.due.map(|due| due.0),
                row::execution_seal(key, created, standing, end),
                end.map(|(n, _)| n),
                end.map(|(_, ended)| ended.0),
                rendered.map(|rendered| row::entries_seal(key, rendered)),
                rendered,
            ])?;
        Ok((n_begun > 0).then(|| self.conn.last_insert_rowid()))
    }

    fn append_note(&self, book: &str, line: &str, n_max: usize) -> Result<u64, WriteRefused> {
        let seal = row::note_seal(book, line);
        self.conn
            .prepare_cached("INSERT INTO notes (book, line, seal) VALUES (?1, ?2, ?3)")?
            .execute(params![book, line, seal])?;
        let number = self.conn.last_insert_rowid();
        if number % NOTES_PER_TRIM == 0 {
            self.conn
                .prepare_cached(
                    "DELETE FROM notes WHERE book = ?1 AND number <=
                     (SELECT number FROM notes WHERE book = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
                )?
                .execute(params![book, i64::try_from(n_max).unwrap_or(i64::MAX)])?;
        }
        Ok(0)
    }

    fn put(&self, kind: &str, record: &StoredRecord) -> Result<u64, WriteRefused> {
        let current = query::record(&self.conn, kind, &record.key)?;
        if current.map_or(0, |current| current.version) != record.version - 1 {
            return Err(WriteRefused::Refused(StoreError::Conflict));
        }
        let seal = row::record_seal(kind, record);
        let version = record.version.cast_signed();
        self.thoroughly(|conn| {
            conn.prepare_cached("INSERT OR REPLACE INTO records VALUES (?1, ?2, ?3, ?4, ?5)")?
                .execute(params![kind, record.key, record.value, version, seal])
        })?;
        Ok(record.version)
    }

    fn remove(&self, kind: &str, key: &str, expected: u64) -> Result<u64, WriteRefused> {
        let current = query::record(&self.conn, kind, key)?;
        if current.map_or(0, |current| current.version) != expected {
            return Err(WriteRefused::Refused(StoreError::Conflict));
        }
        let removed = self.thoroughly(|conn| {
            conn.prepare_cached("DELETE FROM records WHERE kind = ?1 AND key = ?2")?
                .execute([kind, key])
        })?;
        Ok(u64::try_from(removed).unwrap_or(u64::MAX))
    }

    /// The content of a deleted record is overwritten: it may have been a secret. Journals are not treated so, because
    /// that would double the cost of deletion.
    fn thoroughly(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<usize>,
    ) -> rusqlite::Result<usize> {
        self.conn.pragma_update(None, "secure_delete", true)?;
        let written = write(&self.conn);
        self.conn.pragma_update(None, "secure_delete", false)?;
        written
    }

    fn delete_execution(&mut self, execution: ExecutionId) -> Result<u64, WriteRefused> {
        let key = row::execution_key(execution);
        let finished = row::phase_number(ExecutionPhase::Finished);
        let number: Option<i64> = self
            .conn
            .prepare_cached("SELECT number FROM executions WHERE id = ?1 AND phase = ?2")?
            .query_row(params![key, finished], |row| row.get(0))
            .optional()?;
        let Some(number) = number else { return Ok(0) };
        for table in [
            "DELETE FROM entries WHERE execution = ?1",
            "DELETE FROM questions WHERE execution = ?1",
            "DELETE FROM executions WHERE number = ?1",
        ] {
            self.conn.prepare_cached(table)?.execute([number])?;
        }
        self.conn
            .prepare_cached("INSERT OR REPLACE INTO forgotten (id) VALUES (?1)")?
            .execute([key])?;
        self.conn
            .prepare_cached("DELETE FROM forgotten WHERE number <= ?1")?
            .execute([self.conn.last_insert_rowid() - FORGOTTEN_MAX])?;
        self.known.remove(&execution);
        Ok(1)
    }
}

fn move_to(
    conn: &Connection,
    rows: &AppendRows,
    known: &WriterView,
) -> Result<(), rusqlite::Error> {
    let key = row::execution_key(rows.execution);
    let standing = &rows.standing;
    conn.prepare_cached(
        "UPDATE executions SET phase = ?2, caller = ?3, due = ?4, seal = ?5 WHERE number = ?1",
    )?
    .execute(params![
        known.number,
        row::phase_number(standing.phase),
        standing.caller.0,
        standing.due.map(|due| due.0),
        row::execution_seal(key, known.created, standing, None),
    ])?;
    Ok(())
}

fn insert_entries(
    conn: &Connection,
    number: i64,
    after: Seq,
    rendered: &RenderedEntries,
) -> Result<(), rusqlite::Error> {
    let mut insert = conn.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut seq = after;
    for entry in rendered.iter() {
        let (at, event) = entry.expect("we have just rendered it");
        seq = seq.next();
        let seal = row::entry_seal(number, seq, at, event);
        insert.execute(params![number, row::seq_number(seq), at.0, event, seal])?;
    }
    Ok(())
}
