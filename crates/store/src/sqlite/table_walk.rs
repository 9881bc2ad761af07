//! Reads every row of a database that may be damaged, and copies the valid ones into another one.
//!
//! SQLite stops at a damaged page. The walk continues behind it: unreadable row numbers are skipped.

use super::rendered::RenderedEntries;
use super::row;
use crate::{StoreError, StoredRecord};
use lifecycle::{
    Entry, Event, ExecutionId, ExecutionPhase, ExecutionSummary, Seq, State, Timestamp,
};
use rusqlite::{Connection, Row, params};

/// Row numbers that are tried after an unreadable one: more than the rows below one damaged page of the second level.
const UNREADABLE_MAX: usize = 20_000;

/// Maximum number of executions that a report lists; of more it states the number.
pub(super) const NAMED_MAX: usize = 100;

/// The readable content of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowReport {
    /// Executions, by phase.
    pub executions: Vec<(ExecutionPhase, usize)>,
    /// Entries of journals.
    pub n_entries: u64,
    /// Records: policies, tokens, settings and others.
    pub n_records: usize,
    /// Executions whose journal cannot be read to its end, 100 at most.
    pub cut: Vec<ExecutionId>,
    /// The number of those executions.
    pub n_cut: usize,
    /// Whether rows of executions, records or notes cannot be read.
    pub is_unreadable: bool,
    /// When the newest entry was made.
    pub newest: Option<Timestamp>,
}

impl RowReport {
    /// Whether every row can be read.
    pub const fn is_sound(&self) -> bool {
        !self.is_unreadable && self.n_cut == 0
    }

    fn count(&mut self, phase: ExecutionPhase) {
        match self.executions.iter_mut().find(|(known, _)| *known == phase) {
            Some((_, n)) => *n += 1,
            None => self.executions.push((phase, 1)),
        }
    }

    fn cut(&mut self, execution: ExecutionId) {
        self.n_cut += 1;
        if self.cut.len() < NAMED_MAX {
            self.cut.push(execution);
        }
    }
}

/// Reads all rows of `source`, and writes the sound ones to `target` if there is one.
pub(super) fn walk(
    source: &Connection,
    target: Option<&Connection>,
) -> Result<RowReport, StoreError> {
    let version: i64 = source.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap_or(0);
    let mut walk = TableWalk { source, target, version, report: RowReport::default() };
    walk.executions()?;
    walk.records()?;
    walk.notes()?;
    walk.forgotten()?;
    Ok(walk.report)
}

struct TableWalk<'a> {
    source: &'a Connection,
    target: Option<&'a Connection>,
    version: i64,
    report: RowReport,
}

/// An execution's row with a valid seal.
struct FoundExecution {
    number: i64,
    listed: crate::ListedExecution,
    /// All of its entries, if they are in its own row.
    whole: Option<Vec<u8>>,
}

impl TableWalk<'_> {
    /// Calls `read` for each row that `sql` selects after a row number, in the order of their numbers; the number is the
    /// first column.
    fn numbered(
        &mut self,
        sql: &str,
        mut read: impl FnMut(&mut Self, &Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let source = self.source;
        let Ok(mut select) = source.prepare(sql) else {
            self.report.is_unreadable = true;
            return Ok(());
        };
        let (mut after, mut n_unreadable) = (0_i64, 0);
        while n_unreadable < UNREADABLE_MAX {
            let Ok(mut rows) = select.query([after]) else { break };
            while n_unreadable < UNREADABLE_MAX {
                match rows.next() {
                    Ok(None) => return Ok(()),
                    Ok(Some(row)) if row.get(0).is_ok_and(|number: i64| number > after) => {
                        after = row.get(0)?;
                        n_unreadable = 0;
                        match read(self, row) {
                            Err(StoreError::Damaged(_)) => self.report.is_unreadable = true,
                            done => done?,
                        }
                    }
                    // A damaged key leads back to earlier rows: they were read, and the walk must end.
                    Ok(Some(_)) => {
                        self.report.is_unreadable = true;
                        n_unreadable += 1;
                    }
                    Err(_) => {
                        self.report.is_unreadable = true;
                        (after, n_unreadable) = (after.saturating_add(1), n_unreadable + 1);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn executions(&mut self) -> Result<(), StoreError> {
        let whole = match self.version {
            ..5 => "1, NULL, NULL, NULL, NULL",
            5.. => "coalesce(n_entries, 1), ended, n_entries, entries_seal, entries",
        };
        let sql = format!(
            "SELECT number, id, created, phase, caller, due, seal, {whole} FROM executions
             WHERE number > ?1 ORDER BY number"
        );
        self.numbered(&sql, |walk, row| {
            let found = execution(row)?;
            walk.execution(&found)
        })
    }

    fn execution(&mut self, found: &FoundExecution) -> Result<(), StoreError> {
        let id = found.listed.execution;
        if let Some(whole) = &found.whole {
            let span = RenderedEntries::kept(whole.clone()).span();
            self.report.count(ExecutionPhase::Finished);
            self.report.n_entries += u64::try_from(span.n).unwrap_or(0);
            self.report.newest = self.report.newest.max(Some(span.last));
            return self.keep_execution(found, &found.listed.standing, &[]);
        }
        let (entries, is_readable) = self.journal(found.number);
        let mut state = State::default();
        entries.iter().for_each(|entry| state.apply(entry.at, &entry.event));
        // The entries decide; those of tests need not begin with a start.
        let standing = state.standing().unwrap_or_else(|| found.listed.standing.clone());
        if !is_readable || entries.is_empty() || standing != found.listed.standing {
            self.report.cut(id);
        }
        if entries.is_empty() {
            return Ok(());
        }
        self.report.count(standing.phase);
        self.report.n_entries += entries.len() as u64;
        self.report.newest = self.report.newest.max(entries.last().map(|entry| entry.at));
        self.keep_execution(found, &standing, &entries)
    }

    /// The entries of a journal up to the first unreadable one, and whether there is none.
    fn journal(&self, number: i64) -> (Vec<Entry>, bool) {
        let select =
            "SELECT execution, seq, at, event, seal FROM entries WHERE execution = ?1 ORDER BY seq";
        let mut entries = vec![];
        let read = || -> Result<(), StoreError> {
            let mut select = self.source.prepare_cached(select)?;
            let mut rows = select.query([number])?;
            while let Some(row) = rows.next()? {
                let last = entries.last().map_or(Seq(0), |entry: &Entry| entry.seq);
                entries.push(row::entry(row, last.next())?);
            }
            Ok(())
        };
        let mut read = read;
        let is_readable = read().is_ok();
        (entries, is_readable)
    }

    fn keep_execution(
        &self,
        found: &FoundExecution,
        standing: &ExecutionSummary,
        entries: &[Entry],
    ) -> Result<(), StoreError> {
        let Some(target) = self.target else { return Ok(()) };
        let key = row::execution_key(found.listed.execution);
        let created = found.listed.created;
        let span = found.whole.as_ref().map(|whole| RenderedEntries::kept(whole.clone()).span());
        let end = span.map(|span| (span.n, span.last));
        target
            .prepare_cached(
                "INSERT INTO executions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                found.number,
                key,
                created.0,
                row::phase_number(standing.phase),
                standing.caller.0,
                standing.due.map(|due| due.0),
                row::execution_seal(key, created, standing, end),
                end.map(|(n, _)| n),
                end.map(|(_, ended)| ended.0),
                found.whole.as_ref().map(|whole| row::entries_seal(key, whole)),
                found.whole,
            ])?;
        for entry in entries {
            let event = serde_json::to_string(&entry.event)
                .map_err(|error| StoreError::Other(error.to_string()))?;
            let seal = row::entry_seal(found.number, entry.seq, entry.at, &event);
            target.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(
                params![found.number, row::seq_number(entry.seq), entry.at.0, event, seal],
            )?;
            if let Event::CallAsked(question) = &entry.event {
                target
                    .prepare_cached("INSERT OR REPLACE INTO questions VALUES (?1, ?2)")?
                    .execute(params![row::question_key(question.id), found.number])?;
            }
        }
        Ok(())
    }

    /// Records from the first on, and after an unreadable one from the last backwards.
    fn records(&mut self) -> Result<(), StoreError> {
        let columns = "SELECT kind, key, value, version, seal FROM records";
        let up = format!("{columns} ORDER BY kind, key");
        let down = format!("{columns} ORDER BY kind DESC, key DESC");
        let Err(last_up) = self.records_along(&up, None)? else { return Ok(()) };
        self.report.is_unreadable = true;
        self.records_along(&down, Some(&last_up)).map(drop)
    }

    /// Walks in one direction; the error is the last record before an unreadable one.
    fn records_along(
        &mut self,
        sql: &str,
        until: Option<&(String, String)>,
    ) -> Result<Result<(), (String, String)>, StoreError> {
        let source = self.source;
        let mut at = None;
        let Ok(mut select) = source.prepare(sql) else { return Ok(Err(at.unwrap_or_default())) };
        let Ok(mut rows) = select.query([]) else { return Ok(Err(at.unwrap_or_default())) };
        loop {
            let Ok(next) = rows.next().and_then(|row| row.map(record).transpose()) else {
                return Ok(Err(at.unwrap_or_default()));
            };
            let Some((kind, record, seal)) = next else { return Ok(Ok(())) };
            let found = (kind.clone(), record.key.clone());
            if until.is_some_and(|until| found <= *until) {
                return Ok(Ok(()));
            }
            let leads_back = at.as_ref().is_some_and(|at| match until {
                None => found <= *at,
                Some(_) => found >= *at,
            });
            if leads_back || seal != row::record_seal(&kind, &record) {
                self.report.is_unreadable = true;
                continue;
            }
            at = Some(found);
            self.report.n_records += 1;
            if let Some(target) = self.target {
                target
                    .prepare_cached("INSERT OR REPLACE INTO records VALUES (?1, ?2, ?3, ?4, ?5)")?
                    .execute(params![
                        kind,
                        record.key,
                        record.value,
                        record.version.cast_signed(),
                        seal
                    ])?;
            }
        }
    }

    fn notes(&mut self) -> Result<(), StoreError> {
        if self.version < 3 {
            return Ok(());
        }
        let sql = "SELECT number, book, line, seal FROM notes WHERE number > ?1 ORDER BY number";
        self.numbered(sql, |walk, row| {
            let (number, book, line): (i64, String, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let seal: i64 = row.get(3)?;
            if seal != row::note_seal(&book, &line) {
                return Err(super::trouble::damaged("a note whose seal is broken"));
            }
            if let Some(target) = walk.target {
                target
                    .prepare_cached("INSERT INTO notes VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![number, book, line, seal])?;
            }
            Ok(())
        })
    }

    fn forgotten(&mut self) -> Result<(), StoreError> {
        if self.version < 2 {
            return Ok(());
        }
        let sql = "SELECT number, id FROM forgotten WHERE number > ?1 ORDER BY number";
        self.numbered(sql, |walk, row| {
            let (number, id): (i64, [u8; 16]) = (row.get(0)?, row.get(1)?);
            if let Some(target) = walk.target {
                target
                    .prepare_cached("INSERT OR IGNORE INTO forgotten VALUES (?1, ?2)")?
                    .execute(params![number, id])?;
            }
            Ok(())
        })
    }
}

/// A record from `kind, key, value, version, seal`, with its kind and its seal.
fn record(row: &Row<'_>) -> rusqlite::Result<(String, StoredRecord, i64)> {
    let version = row.get::<_, i64>(3)?.cast_unsigned();
    let record = StoredRecord { key: row.get(1)?, value: row.get(2)?, version };
    Ok((row.get(0)?, record, row.get(4)?))
}

/// An execution from `number, id, created, phase, caller, due, seal, last, ended, n_entries, entries_seal, entries`.
fn execution(row: &Row<'_>) -> Result<FoundExecution, StoreError> {
    let listed = row::listed_from(row, 1)?;
    let whole = match row.get::<_, Option<i64>>(9)? {
        None => None,
        Some(_) => {
            let bytes: Vec<u8> = row.get(11)?;
            let key = row::execution_key(listed.execution);
            let is_sound = row.get::<_, Option<i64>>(10)? == Some(row::entries_seal(key, &bytes))
                && RenderedEntries::kept(bytes.clone()).is_sound();
            if !is_sound {
                return Err(super::trouble::damaged("entries whose seal is broken"));
            }
            Some(bytes)
        }
    };
    Ok(FoundExecution { number: row.get(0)?, listed, whole })
}
