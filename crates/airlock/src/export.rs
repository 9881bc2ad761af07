//! `airlock export`: journals as JSON lines, of one execution, several, or all that match. Reads page by page: memory use
//! does not depend on the length or number of the journals.

use crate::executions::filters::ExecutionFilters;
use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print};
use anyhow::Context as _;
use client::{AirlockClient, Error, ExecutionRef, ExecutionStatus};
use lifecycle::{ExecutionId, Seq};
use std::io;
use std::path::Path;
use store::sqlite::SqliteStore;
use store::{Journal as _, ListFilter};

/// Executions that are listed at a time.
const LISTED_PER_PAGE_MAX: usize = 100;

/// Entries that are read at a time without a server; the store returns fewer where they are large.
const ENTRIES_PER_READ_MAX: usize = 1_000;

/// Prints the journals of finished executions as JSON lines, exactly as recorded.
///
/// Each line is an entry: execution, seq, at (milliseconds since 1970) and event. The entries of an execution follow each
/// other, oldest first; executions come newest first. Without ids and options it prints all finished executions.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// run_…, or the id of one of its questions; may be repeated.
    #[arg(conflicts_with_all = ["failed", "outcome", "caller", "tool", "since", "limit"])]
    ids: Vec<String>,
    #[command(flatten)]
    filters: ExecutionFilters,
    /// At most so many executions.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Accepted for consistency: the lines are always JSON.
    #[arg(long, hide = true)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "export";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Programs, 6);

    fn run(self) -> VerbExit {
        export(&self)
    }
}

const HELP: &str = "\
Examples:
  airlock export run_0198… > run.jsonl
  airlock export --failed --since 7d | gzip > failed.jsonl.gz
  airlock export --tool 'github.*' | jq -r 'select(.event.call_made) | .event.call_made.tool'

A journal holds what programs, tools and people said: treat it like the data directory. Without a server the data
directory is read itself; options that filter need a server.

Exit codes:
  0    all of it is on stdout
  1    an execution is not over, or does not exist; or there is no server
  2    the command line made no sense
  70   Airlock itself broke";

/// Prints the journals.
pub(crate) fn export(args: &Args) -> VerbExit {
    let ids = args.ids.iter().map(|id| id.parse()).collect::<Result<Vec<ExecutionRef>, _>>();
    let ids = match ids {
        Ok(ids) => ids,
        Err(bad) => {
            print::error(&print::tamed(&bad.to_string()));
            return VerbExit::Usage;
        }
    };
    match args.reach.unowned().filter(|_| !args.filters.is_any()) {
        Some(dir) => from_directory(&dir, &ids, args.limit),
        None => args.reach.visit(async |client| match ids.is_empty() {
            true => matching(&client, args).await,
            false => export_by_id(&client, &ids).await,
        }),
    }
}

/// Why an export ended early.
enum ExportStop {
    /// The reader closed the pipe.
    Unread,
    Failed(Error),
}

impl From<Error> for ExportStop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for ExportStop {
    fn from(_: io::Error) -> Self {
        Self::Unread
    }
}

async fn export_by_id(client: &AirlockClient, ids: &[ExecutionRef]) -> Result<VerbExit, Error> {
    for id in ids {
        let execution = match id {
            ExecutionRef::Execution(execution) => Some(*execution),
            ExecutionRef::Question(_) => client.execution(*id).await?.execution,
        };
        let execution =
            execution.ok_or_else(|| Error::Protocol("a question of no execution".into()))?;
        match journal(client, execution).await {
            Ok(()) => {}
            Err(ExportStop::Unread) => return Ok(VerbExit::Good),
            Err(ExportStop::Failed(error)) => return Err(error),
        }
    }
    Ok(VerbExit::Good)
}

async fn matching(client: &AirlockClient, args: &Args) -> Result<VerbExit, Error> {
    let mut left = args.limit.unwrap_or(usize::MAX);
    let mut after = None;
    let mut exit = VerbExit::Good;
    while left > 0 {
        let n_max = left.min(LISTED_PER_PAGE_MAX);
        let page = client
            .list_executions(args.filters.page(Some(ExecutionStatus::Finished), n_max, after))
            .await?;
        for listed in page.executions {
            left -= 1;
            match journal(client, listed.execution).await {
                Ok(()) => {}
                Err(ExportStop::Unread) => return Ok(VerbExit::Good),
                // It was deleted since it was listed.
                Err(ExportStop::Failed(Error::Refused { status: 404 | 410, message, .. })) => {
                    print::print_note(&print::tamed(&message));
                    exit = VerbExit::Failed;
                }
                Err(ExportStop::Failed(error)) => return Err(error),
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(exit)
}

async fn journal(client: &AirlockClient, execution: ExecutionId) -> Result<(), ExportStop> {
    let mut after = Seq(0);
    loop {
        let (entries, last) = client.journal_page(execution.into(), after).await?;
        if entries.is_empty() || last <= after {
            return Ok(());
        }
        for entry in entries {
            print::write_line(&line(execution, entry.get()))?;
        }
        after = last;
    }
}

/// An entry with its execution's id first.
fn line(execution: ExecutionId, entry: &str) -> String {
    let members = entry.trim_start().trim_start_matches('{');
    format!("{{\"execution\":\"{execution}\",{members}")
}

fn from_directory(dir: &Path, ids: &[ExecutionRef], limit: Option<usize>) -> VerbExit {
    print::start_tracing();
    let done = crate::runtime::one_thread().and_then(|runtime| {
        runtime.block_on(async {
            let shown = dir.display();
            // Opening would create the directory: a typing mistake must not.
            anyhow::ensure!(dir.is_dir(), "there is no {shown}; name it with --data-dir");
            let store =
                SqliteStore::open(dir).with_context(|| format!("could not open {shown}"))?;
            let done = from_store(&store, ids, limit).await;
            store.close().await;
            done
        })
    });
    match done {
        Ok(()) => VerbExit::Good,
        Err(error) if error.downcast_ref::<io::Error>().is_some() => VerbExit::Good,
        Err(error) => {
            print::error(&format!("{error:#}"));
            VerbExit::of_error(&error, VerbExit::Failed)
        }
    }
}

async fn from_store(
    store: &SqliteStore,
    ids: &[ExecutionRef],
    limit: Option<usize>,
) -> anyhow::Result<()> {
    for id in ids {
        let execution = match id {
            ExecutionRef::Execution(execution) => *execution,
            ExecutionRef::Question(question) => {
                let asked_by = store.asked_by(*question).await?;
                asked_by.with_context(|| format!("there is no question {question} here"))?
            }
        };
        let overview = store.overview(execution).await?;
        let overview =
            overview.with_context(|| format!("there is no execution {execution} here"))?;
        anyhow::ensure!(
            overview.listed.standing.phase == lifecycle::ExecutionPhase::Finished,
            "{execution} is not over; its journal can be exported once it is"
        );
        stored_journal(store, execution).await?;
    }
    let mut left = if ids.is_empty() { limit.unwrap_or(usize::MAX) } else { 0 };
    let phases = vec![lifecycle::ExecutionPhase::Finished];
    let mut filter = ListFilter { phases, caller: None, after: None, n_max: LISTED_PER_PAGE_MAX };
    while left > 0 {
        filter.n_max = left.min(LISTED_PER_PAGE_MAX);
        let listed = store.list_executions(filter.clone()).await?;
        for listed in &listed {
            stored_journal(store, listed.execution).await?;
        }
        left -= listed.len();
        filter.after = listed.last().map(|listed| listed.execution);
        if listed.len() < filter.n_max {
            break;
        }
    }
    Ok(())
}

async fn stored_journal(store: &SqliteStore, execution: ExecutionId) -> anyhow::Result<()> {
    let mut after = Seq(0);
    loop {
        let entries = store::Journal::read(store, execution, after, ENTRIES_PER_READ_MAX).await?;
        let Some(last) = entries.last() else { return Ok(()) };
        after = last.seq;
        for entry in &entries {
            let text = serde_json::to_string(entry)?;
            print::write_line(&line(execution, &text))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_entry_with_its_execution_in_front() {
        let id = "run_00000000-0000-0000-0000-000000000001".parse().unwrap();
        let expected = r#"{"execution":"run_00000000-0000-0000-0000-000000000001","seq":1,"at":2,"event":"parked"}"#;
        assert_eq!(line(id, r#"{"seq":1,"at":2,"event":"parked"}"#), expected);
    }
}
