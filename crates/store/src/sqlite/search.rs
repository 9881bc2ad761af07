//! Searches: a walk along the list that reads entries only as far as the answer needs them, with a bound on the work of
//! one page. No index knows outcomes and tools: to maintain one would cost each append, and people search seldom.

use super::{query, row};
use crate::{
    ExecutionDetails, ExecutionSearch, ListFilter, ListedExecution, OutcomeKind, SearchHit,
    SearchPage, StoreError,
};
use lifecycle::{
    Entry, Event, ExecutionOutcome, ExecutionPhase, Seq, Timestamp, ToolPath, ToolPattern,
};
use rusqlite::{Connection, params};

/// Executions that one page examines at most: some ten milliseconds of a reader. The next page continues.
const EXAMINED_MAX: usize = 2_000;

/// Bytes of entries that one page reads, give or take an execution.
const EXAMINED_BYTES_MAX: usize = 16 << 20;

/// Lines of the list that are read in one query.
const LINES_PER_QUERY_MAX: usize = 100;

/// Tools that are named of one execution.
const TOOLS_NAMED_MAX: usize = 3;

/// Entries in which they are looked for where no tool is asked for.
const ENTRIES_FOR_NAMES_MAX: usize = 200;

/// Entries in which a tool that is asked for is looked for: more than 10,000 calls make, with what follows each.
const ENTRIES_FOR_TOOL_MAX: usize = 100_000;

/// How the text of an entry about a call begins, and that of the last one.
const CALL_MADE: &str = "{\"call_made\":";
const FINISHED: &str = "{\"finished\":";

/// The page that `search` asks for.
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

/// The first lines to look at. None where nothing can match: only what is over has an outcome.
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

/// What one page has done so far.
struct SearchWork {
    executions: usize,
    bytes: usize,
}

impl SearchWork {
    const fn is_done(&self) -> bool {
        self.executions >= EXAMINED_MAX || self.bytes >= EXAMINED_BYTES_MAX
    }
}

/// What the entries of an execution say; none where it did not call the wanted tool.
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

/// What was learnt of an execution so far.
struct ExaminedExecution<'a> {
    details: ExecutionDetails,
    /// The tool that is asked for.
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

    /// A tool that is asked for is always among those that are named.
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
