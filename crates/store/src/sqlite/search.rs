//! Searches: a walk along the list that reads entries only as far as the answer needs them, with a bound on the work of
//! one page. There is no index of outcomes and tools: maintaining it would cost each append, and searches are rare.

use super::{query, row};
use crate::{
    ExecutionDetails, ExecutionSearch, ListFilter, ListedExecution, OutcomeKind, SearchHit,
    SearchPage, StoreError,
};
use lifecycle::{
    Entry, Event, ExecutionOutcome, ExecutionPhase, Seq, Timestamp, ToolPath, ToolPattern,
};
use rusqlite::{Connection, params};

/// Maximum number of executions that one page examines: some ten milliseconds of a reader. The next page continues.
const EXAMINED_MAX: usize = 2_000;

/// Approximate maximum of entry bytes that one page reads.
const EXAMINED_BYTES_MAX: usize = 16 << 20;

/// List entries per query.
const LINES_PER_QUERY_MAX: usize = 100;

/// Maximum number of tools that are listed per execution.
const TOOLS_NAMED_MAX: usize = 3;

/// Entries per execution that are searched for tools if the search does not filter by tool.
const ENTRIES_FOR_NAMES_MAX: usize = 200;

/// Entries per execution that are searched for the requested tool: more than 10,000 calls with their events.
const ENTRIES_FOR_TOOL_MAX: usize = 100_000;

/// Prefixes of the texts of the entries about a call and about the end.
const CALL_MADE: &str = "{\"call_made\":";
const FINISHED: &str = "{\"finished\":";

/// The page of results for `search`.
pub(super) fn search(
    conn: &Connection,
    search: &ExecutionSearch,
) -> Result<SearchPage, StoreError> {
    let mut page = SearchPage::default();
    let mut work = SearchWork { executions: 0, bytes: 0 };
    let Some(mut filter) = first_lines(search) else { return Ok(page) };
    loop {
        let lines = query::list_executions(conn, &filter)?;
        let is_last = lines.len() < filter.n_max;
        for listed in lines {
            if search.since.is_some_and(|since| listed.created < since) {
                return Ok(page);
            }
            if page.hits.len() == search.listed.n_max || work.is_done() {
                page.next = filter.after;
                return Ok(page);
            }
            filter.after = Some(listed.execution);
            let examined = examine(conn, &listed, search.tool.as_ref(), &mut work)?;
            let fits = |details: &ExecutionDetails| {
                search.outcome.is_none_or(|wanted| {
                    details.outcome.is_some_and(|outcome| wanted.matches(outcome))
                })
            };
            page.hits.extend(examined.filter(fits).map(|details| SearchHit { listed, details }));
        }
        if is_last {
            return Ok(page);
        }
    }
}

/// The first list entries to examine. None if nothing can match: only finished executions have an outcome.
fn first_lines(search: &ExecutionSearch) -> Option<ListFilter> {
    let mut filter = search.listed.clone();
    filter.n_max = LINES_PER_QUERY_MAX;
    if search.outcome.is_some() {
        let may_match =
            filter.phases.is_empty() || filter.phases.contains(&ExecutionPhase::Finished);
        filter.phases = vec![ExecutionPhase::Finished];
        return may_match.then_some(filter);
    }
    Some(filter)
}

/// The work of one page so far.
struct SearchWork {
    executions: usize,
    bytes: usize,
}

impl SearchWork {
    const fn is_done(&self) -> bool {
        self.executions >= EXAMINED_MAX || self.bytes >= EXAMINED_BYTES_MAX
    }
}

/// The details from an execution's entries; none if it did not call the requested tool.
fn examine(
    conn: &Connection,
    listed: &ListedExecution,
    tool: Option<&ToolPattern>,
    work: &mut SearchWork,
) -> Result<Option<ExecutionDetails>, StoreError> {
    work.executions += 1;
    let mut examined =
        ExaminedExecution { details: ExecutionDetails::default(), tool, has_called: false };
    let mut select = conn.prepare_cached(
        "SELECT id, n_entries, entries_seal, entries, number FROM executions WHERE id = ?1",
    )?;
    let mut rows = select.query([row::execution_key(listed.execution)])?;
    let Some(found) = rows.next()? else { return Ok(None) };
    match row::rendered(found)? {
        Some(rendered) => {
            work.bytes += rendered.as_bytes().len();
            let mut seq = Seq(0);
            for (at, event) in rendered.iter().flatten() {
                seq = seq.next();
                if event.starts_with(CALL_MADE) || event.starts_with(FINISHED) {
                    examined.add(row::understood(seq, at, event)?);
                }
            }
        }
        None => examine_rows(conn, found.get(4)?, listed, &mut examined, work)?,
    }
    Ok((tool.is_none() || examined.has_called).then_some(examined.details))
}

fn examine_rows(
    conn: &Connection,
    number: i64,
    listed: &ListedExecution,
    examined: &mut ExaminedExecution<'_>,
    work: &mut SearchWork,
) -> Result<(), StoreError> {
    let mut select = conn.prepare_cached(
        "SELECT execution, seq, at, event, seal FROM entries
         WHERE execution = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let n_max = if examined.tool.is_some() { ENTRIES_FOR_TOOL_MAX } else { ENTRIES_FOR_NAMES_MAX };
    let n_max = i64::try_from(n_max).unwrap_or(i64::MAX);
    let mut rows = select.query(params![number, 0, n_max])?;
    let mut seq = Seq(0);
    while !examined.knows_enough()
        && let Some(found) = rows.next()?
    {
        seq = seq.next();
        let text = found.get_ref(3)?.as_str().unwrap_or_default();
        work.bytes += text.len();
        if text.starts_with(CALL_MADE) {
            examined.add(row::entry(found, seq)?);
        }
    }
    drop(rows);
    if listed.standing.phase != ExecutionPhase::Finished {
        return Ok(());
    }
    let before = row::seq_number(listed.last) - 1;
    let mut rows = select.query(params![number, before, 1])?;
    if let Some(found) = rows.next()? {
        work.bytes += found.get_ref(3)?.as_str().map_or(0, str::len);
        examined.add(row::entry(found, listed.last)?);
    }
    Ok(())
}

/// What is known of an execution so far.
struct ExaminedExecution<'a> {
    details: ExecutionDetails,
    /// The requested tool.
    tool: Option<&'a ToolPattern>,
    has_called: bool,
}

impl ExaminedExecution<'_> {
    /// Whether no later call can change the answer.
    fn knows_enough(&self) -> bool {
        let is_decided = self.tool.is_none() || self.has_called;
        is_decided && self.details.tools.len() >= TOOLS_NAMED_MAX
    }

    fn add(&mut self, entry: Entry) {
        let Entry { at, event, .. } = entry;
        if let Event::CallMade { tool, .. } = event {
            self.add_call(tool);
        } else if let Event::Finished { outcome, active_ms, .. } = event {
            self.add_end(at, &outcome, active_ms);
        }
    }

    /// The requested tool is always among the listed ones.
    fn add_call(&mut self, tool: ToolPath) {
        let is_wanted = self.tool.is_some_and(|wanted| wanted.matches(&tool));
        let tools = &mut self.details.tools;
        if !tools.contains(&tool) {
            if tools.len() < TOOLS_NAMED_MAX {
                tools.push(tool);
            } else if is_wanted
                && !self.has_called
                && let Some(last) = tools.last_mut()
            {
                *last = tool;
            }
        }
        self.has_called |= is_wanted;
    }

    fn add_end(&mut self, at: Timestamp, outcome: &ExecutionOutcome, active_ms: u64) {
        self.details.ended = Some(at);
        self.details.active_ms = Some(active_ms);
        self.details.outcome = Some(match outcome {
            ExecutionOutcome::Completed { .. } => OutcomeKind::Completed,
            ExecutionOutcome::Failed(failure) => OutcomeKind::Failed(failure.code),
            ExecutionOutcome::Cancelled { .. } => OutcomeKind::Cancelled,
        });
    }
}
