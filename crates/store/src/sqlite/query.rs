//! All queries of the database.

use super::rendered::RenderedEntries;
use super::row;
use super::trouble::damaged;
use crate::{
    ExecutionOverview, FinishedTimes, ListFilter, ListedExecution, StoreError, StoredRecord,
};
use lifecycle::{
    CallerName, Entry, Event, ExecutionId, ExecutionPhase, QuestionId, Seq, Timestamp,
};
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};

/// Maximum size of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageMax {
    pub(super) entries: usize,
    /// The entry that exceeds this is the last one.
    pub(super) bytes: usize,
}

/// Entries in order.
#[derive(Debug)]
pub(super) struct EntryPage {
    pub(super) entries: Vec<Entry>,
    /// Whether it ends because it is full.
    pub(super) full: bool,
}

/// The entries after `after`, at most a page.
pub(super) fn entries(
    conn: &Connection,
    execution: ExecutionId,
    after: Seq,
    max: PageMax,
) -> Result<EntryPage, StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT id, n_entries, entries_seal, entries, number FROM executions WHERE id = ?1",
    )?;
    let mut rows = select.query([row::execution_key(execution)])?;
    let mut filling =
        PageBuilder { page: EntryPage { entries: vec![], full: false }, bytes: 0, max };
    if let Some(found) = rows.next()? {
        match row::rendered(found)? {
            Some(rendered) => filling.fill_from(&rendered, after)?,
            None => filling.fill_from_rows(conn, found.get(4)?, after)?,
        }
    }
    Ok(filling.page)
}

/// A page under construction.
struct PageBuilder {
    page: EntryPage,
    bytes: usize,
    max: PageMax,
}

impl PageBuilder {
    fn fill_from(&mut self, rendered: &RenderedEntries, after: Seq) -> Result<(), StoreError> {
        let skipped = usize::try_from(after.0).unwrap_or(usize::MAX);
        let mut seq = after;
        let mut rest = rendered.iter().skip(skipped);
        while self.has_room()
            && let Some(entry) = rest.next()
        {
            let (at, event) = entry.ok_or_else(|| damaged("entries that end too soon"))?;
            seq = seq.next();
            self.push(row::understood(seq, at, event)?, event.len());
        }
        Ok(())
    }

    fn fill_from_rows(
        &mut self,
        conn: &Connection,
        number: i64,
        after: Seq,
    ) -> Result<(), StoreError> {
        let mut select = conn.prepare_cached(
            "SELECT execution, seq, at, event, seal FROM entries
             WHERE execution = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        )?;
        let n_max = i64::try_from(self.max.entries).unwrap_or(i64::MAX);
        let mut rows = select.query(params![number, row::seq_number(after), n_max])?;
        let mut seq = after;
        while self.has_room()
            && let Some(found) = rows.next()?
        {
            seq = seq.next();
            let bytes = found.get_ref(3)?.as_str().map_or(0, str::len);
            self.push(row::entry(found, seq)?, bytes);
        }
        Ok(())
    }

    fn push(&mut self, entry: Entry, bytes: usize) {
        self.page.entries.push(entry);
        self.bytes = self.bytes.saturating_add(bytes);
        self.page.full = !self.has_room();
    }

    const fn has_room(&self) -> bool {
        self.page.entries.len() < self.max.entries && self.bytes < self.max.bytes
    }
}

/// The result of a follower's read.
#[derive(Debug)]
pub(super) enum FollowerRead {
    /// No such execution.
    Nothing,
    /// These entries, in order, and whether more can follow.
    Entries { page: EntryPage, over: bool },
}

impl FollowerRead {
    /// A page with at least one entry.
    pub(super) fn from_page(page: EntryPage) -> Self {
        let over =
            page.entries.last().is_some_and(|last| matches!(last.event, Event::Finished { .. }));
        Self::Entries { page, over }
    }
}

/// At most a page of entries, and whether the execution ends with them.
pub(super) fn read_followed(
    conn: &Connection,
    execution: ExecutionId,
    after: Seq,
    max: PageMax,
) -> Result<FollowerRead, StoreError> {
    // The phase first: if the execution ends between the two statements, the end is then among the entries.
    let phase = conn
        .prepare_cached("SELECT phase FROM executions WHERE id = ?1")?
        .query_row([row::execution_key(execution)], |row| row.get(0))
        .optional()?;
    let Some(phase) = phase else { return Ok(FollowerRead::Nothing) };
    let finished = row::phase_of(phase)? == ExecutionPhase::Finished;
    let page = entries(conn, execution, after, max)?;
    if page.entries.is_empty() {
        return Ok(FollowerRead::Entries { page, over: finished });
    }
    Ok(FollowerRead::from_page(page))
}

/// The page of the list for `filter`.
pub(super) fn list_executions(
    conn: &Connection,
    filter: &ListFilter,
) -> Result<Vec<ListedExecution>, StoreError> {
    let after = filter.after.map(|after| place(conn, after)).transpose()?;
    let after = after.unwrap_or((i64::MAX, [u8::MAX; 16]));
    let phases = if filter.phases.is_empty() { &row::PHASES[..] } else { &filter.phases };
    let mut found = Vec::new();
    // One walk along an index per phase, then merged: no phase is sorted or scanned completely.
    for phase in row::PHASES.iter().filter(|phase| phases.contains(phase)) {
        found.extend(list_phase(conn, *phase, after, filter)?);
    }
    found.sort_by_key(|line| std::cmp::Reverse((line.created, line.execution)));
    found.truncate(filter.n_max);
    Ok(found)
}

/// The number of executions in a phase, up to `n_max`: a walk along an index that reads no table.
pub(super) fn count(
    conn: &Connection,
    phase: ExecutionPhase,
    n_max: usize,
) -> Result<usize, StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM executions WHERE phase = ?1 LIMIT ?2)",
    )?;
    let n_max = i64::try_from(n_max).unwrap_or(i64::MAX);
    let n = select.query_row([row::phase_number(phase), n_max], |row| row.get::<_, i64>(0))?;
    Ok(usize::try_from(n).unwrap_or(usize::MAX))
}

/// The newest seq of an execution, as an expression in statements about `executions`.
const LAST: &str = "coalesce(n_entries, (SELECT max(seq) FROM entries WHERE execution = number))";

/// The list entry of one execution, and whether it has ever asked: four index look-ups, independent of its journal's length.
pub(super) fn overview(
    conn: &Connection,
    execution: ExecutionId,
) -> Result<Option<ExecutionOverview>, StoreError> {
    let mut select = conn.prepare_cached(&format!(
        "SELECT id, created, phase, caller, due, seal, {LAST}, ended,
                EXISTS (SELECT 1 FROM questions WHERE execution = number)
         FROM executions WHERE id = ?1"
    ))?;
    let mut rows = select.query([row::execution_key(execution)])?;
    let Some(found) = rows.next()? else { return Ok(None) };
    Ok(Some(ExecutionOverview { listed: row::listed(found)?, has_asked: found.get(8)? }))
}

/// The number of executions of each caller in a phase.
pub(super) fn count_by_caller(
    conn: &Connection,
    phase: ExecutionPhase,
) -> Result<Vec<(CallerName, u64)>, StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT caller, count(*) FROM executions WHERE phase = ?1 GROUP BY caller",
    )?;
    collected(select.query([row::phase_number(phase)])?, |row| {
        let n = u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        Ok((CallerName(row.get(0)?), n))
    })
}

/// The position of an execution in the list. That of a deleted one follows from its id, which begins with its time.
fn place(conn: &Connection, execution: ExecutionId) -> Result<(i64, [u8; 16]), StoreError> {
    let key = row::execution_key(execution);
    let created = conn
        .prepare_cached("SELECT created FROM executions WHERE id = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    let named = || key[..6].iter().fold(0, |ms, byte| ms << 8 | i64::from(*byte));
    Ok((created.unwrap_or_else(named), key))
}

fn list_phase(
    conn: &Connection,
    phase: ExecutionPhase,
    (created, key): (i64, [u8; 16]),
    filter: &ListFilter,
) -> Result<Vec<ListedExecution>, StoreError> {
    let caller = if filter.caller.is_some() { "caller = ?5" } else { "?5 IS NULL" };
    let mut select = conn.prepare_cached(&format!(
        "SELECT id, created, phase, caller, due, seal, {LAST}, ended FROM executions
         WHERE {caller} AND phase = ?1 AND (created, id) < (?2, ?3)
         ORDER BY created DESC, id DESC LIMIT ?4"
    ))?;
    let n_max = i64::try_from(filter.n_max).unwrap_or(i64::MAX);
    let caller = filter.caller.as_ref().map(|caller| caller.0.as_str());
    let rows = select.query(params![row::phase_number(phase), created, key, n_max, caller])?;
    collected(rows, row::listed)
}

/// The execution that asked a question.
pub(super) fn asked_by(
    conn: &Connection,
    question: QuestionId,
) -> Result<Option<ExecutionId>, StoreError> {
    let key = conn
        .prepare_cached(
            "SELECT executions.id FROM questions JOIN executions ON number = execution
             WHERE question = ?1",
        )?
        .query_row([row::question_key(question)], |row| row.get(0))
        .optional()?;
    Ok(key.map(row::execution_of))
}

/// Whether there was such an execution that has been deleted.
pub(super) fn was_forgotten(conn: &Connection, execution: ExecutionId) -> Result<bool, StoreError> {
    let mut select = conn.prepare_cached("SELECT 1 FROM forgotten WHERE id = ?1")?;
    Ok(select.exists([row::execution_key(execution)])?)
}

/// Paused executions, the earliest due first. The `+` prevents the planner from using the index by phase, with which it
/// would sort all paused executions at every pause: with 97,000 others, that took 50 ms of processor time each.
pub(super) const NEXT_DUE: &str =
    "SELECT due, id FROM executions WHERE due IS NOT NULL AND +phase = ?1 ORDER BY due";

/// The earliest due paused execution that is not `held`.
pub(super) fn next_due(
    conn: &Connection,
    held: impl Fn(ExecutionId) -> bool,
) -> Result<Option<(Timestamp, ExecutionId)>, StoreError> {
    let mut select = conn.prepare_cached(NEXT_DUE)?;
    let mut rows = select.query([row::phase_number(ExecutionPhase::Paused)])?;
    while let Some(found) = rows.next()? {
        let execution = row::execution_of(found.get(1)?);
        if !held(execution) {
            return Ok(Some((Timestamp(found.get(0)?), execution)));
        }
    }
    Ok(None)
}

/// Finished executions, oldest first.
pub(super) fn finished(
    conn: &Connection,
    after: Option<FinishedTimes>,
    n_max: usize,
) -> Result<Vec<FinishedTimes>, StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT id, created,
                coalesce(ended, (SELECT at FROM entries WHERE execution = number
                                 ORDER BY seq DESC LIMIT 1))
         FROM executions WHERE phase = ?1 AND (created, id) > (?2, ?3)
         ORDER BY created, id LIMIT ?4",
    )?;
    let (created, key) = after.map_or((i64::MIN, [0; 16]), |after| {
        (after.created.0, row::execution_key(after.execution))
    });
    let n_max = i64::try_from(n_max).unwrap_or(i64::MAX);
    let rows =
        select.query(params![row::phase_number(ExecutionPhase::Finished), created, key, n_max])?;
    collected(rows, |row| {
        let execution = row::execution_of(row.get(0)?);
        let created = Timestamp(row.get(1)?);
        let ended = row.get::<_, Option<i64>>(2)?.map_or(created, Timestamp);
        Ok(FinishedTimes { execution, created, ended })
    })
}

/// Used pages. Free pages are reused before the file grows.
pub(super) fn bytes_used(conn: &Connection) -> Result<u64, StoreError> {
    let number = |pragma: &str| conn.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let pages = number("PRAGMA page_count")? - number("PRAGMA freelist_count")?;
    let bytes = pages.saturating_mul(number("PRAGMA page_size")?);
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// One record.
pub(super) fn record(
    conn: &Connection,
    kind: &str,
    key: &str,
) -> Result<Option<StoredRecord>, StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT key, value, version, seal FROM records WHERE kind = ?1 AND key = ?2",
    )?;
    let mut rows = select.query([kind, key])?;
    rows.next()?.map(|row| row::record(kind, row)).transpose()
}

/// All records of a kind.
pub(super) fn records(conn: &Connection, kind: &str) -> Result<Vec<StoredRecord>, StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT key, value, version, seal FROM records WHERE kind = ?1 ORDER BY key",
    )?;
    collected(select.query([kind])?, |row| row::record(kind, row))
}

/// The newest lines of a book, newest first.
pub(super) fn newest_notes(
    conn: &Connection,
    book: &str,
    n_max: usize,
) -> Result<Vec<String>, StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT line, seal FROM notes WHERE book = ?1 ORDER BY number DESC LIMIT ?2",
    )?;
    let n_max = i64::try_from(n_max).unwrap_or(i64::MAX);
    collected(select.query(rusqlite::params![book, n_max])?, |row| row::note_row(book, row))
}

fn collected<T>(
    mut rows: Rows<'_>,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}
