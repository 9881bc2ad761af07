//! `airlock executions`: running, waiting and finished executions.

mod diff;
pub(crate) mod filters;
mod line;
pub(crate) mod outcome;
pub(crate) mod question_text;
pub(crate) use line::level_name;
mod recorded;
mod replay;
mod show;
mod table;

use crate::progress::ProgressLine;
use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print};
use client::{AirlockClient, Error, EventKind, ExecutionRef, ExecutionStanding, ExecutionStatus};
use filters::ExecutionFilters;
use futures_util::StreamExt as _;
use lifecycle::{ExecutionId, Seq};
use std::pin::pin;

/// The default length of a list.
const LISTED_USUALLY: usize = 50;

/// Lists, shows, follows and ends executions.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: ExecutionsVerb,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "executions";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Programs, 5);

    fn run(self) -> VerbExit {
        executions(&self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum ExecutionsVerb {
    /// Lists executions, newest first: id, status, caller, start (UTC), number of events, outcome, duration, first tools.
    ///
    /// A table on a terminal; otherwise one line per execution, with tabs.
    #[command(after_help = LIST_HELP)]
    List(ExecutionsListArgs),
    /// Shows the state of an execution: its value, its error, or its question.
    Show {
        /// run_…, or the id of one of its questions.
        id: String,
        /// The server's reply, one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints the events of an execution, one line each, until it ends.
    ///
    /// A dropped connection is opened again; every event is printed exactly once.
    #[command(after_help = FOLLOW_HELP)]
    Follow {
        /// run_…, or the id of one of its questions.
        id: String,
        /// Only events after this number.
        #[arg(long, value_name = "N", default_value_t = 0)]
        after: u64,
        /// The whole event, one line of JSON each.
        #[arg(long)]
        json: bool,
    },
    /// Runs a finished execution again from its journal, in a jail and without tools: no call leaves it.
    ///
    /// Prints what the program printed and emitted, open calls and questions, and how it
    /// ended. Fails where the program deviates from the journal.
    #[command(after_help = REPLAY_HELP)]
    Replay {
        /// run_…, or the id of one of its questions.
        id: String,
        /// Stops after the event with this number.
        #[arg(long, value_name = "SEQ")]
        until: Option<u64>,
        /// The whole result in one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Compares what two executions did, event by event, without numbers, times and ids.
    Diff {
        /// run_…
        a: String,
        /// run_…
        b: String,
        /// Each difference as one line of JSON: only (a or b), seq, event.
        #[arg(long)]
        json: bool,
    },
    /// Cancels an execution. Its open questions are closed; a finished one does not change.
    Cancel {
        /// run_…, or the id of one of its questions.
        id: String,
        /// The server's reply, one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Lets a parked execution continue. Calls that may have run become questions.
    ///
    /// After the store lost entries everything unfinished is parked, and nothing is dispatched before this.
    #[command(after_help = CONTINUE_HELP)]
    Continue {
        /// run_…, or the id of one of its questions.
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// All that are parked because entries may be lost.
        #[arg(long, conflicts_with = "id")]
        all: bool,
        /// The server's reply, one line of JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
struct ExecutionsListArgs {
    /// Only executions with this status.
    #[arg(long, value_enum)]
    status: Option<StatusFilter>,
    #[command(flatten)]
    filters: ExecutionFilters,
    /// At most so many executions.
    #[arg(long, value_name = "N", default_value_t = LISTED_USUALLY)]
    limit: usize,
    /// Only executions that are older than this one.
    #[arg(long, value_name = "ID")]
    after: Option<ExecutionId>,
    /// One line of JSON per execution.
    #[arg(long)]
    json: bool,
}

/// The statuses that a list can be filtered by.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum StatusFilter {
    Running,
    Paused,
    Parked,
    Finished,
}

impl From<StatusFilter> for ExecutionStatus {
    fn from(standing: StatusFilter) -> Self {
        match standing {
            StatusFilter::Running => Self::Running,
            StatusFilter::Paused => Self::Paused,
            StatusFilter::Parked => Self::Parked,
            StatusFilter::Finished => Self::Finished,
        }
    }
}

const HELP: &str = "\
Examples:
  airlock executions list --status paused      what waits for an answer
  airlock executions show run_0198…            its value, its error, or what it asks
  airlock executions follow run_0198…          what happens, as it happens
  airlock executions cancel run_0198…";

const LIST_HELP: &str = "\
Examples:
  airlock executions list --status paused
  airlock executions list --failed --since 2h --tool 'github.*'
  airlock executions list --limit 10 | cut -f1
  airlock executions list --json | jq -r .executionId";

const REPLAY_HELP: &str = "\
Examples:
  airlock executions replay run_0198…
  airlock executions replay run_0198… --until 12    what was printed, waited and asked by then
  airlock executions replay run_0198… --json | jq .result

Without a server the data directory is read itself; while one owns it, it is asked for the journal. The
program runs here either way.

Exit codes:
  0    it did what is recorded
  1    it did something else; or there is no such execution
  70   Airlock itself broke";

const CONTINUE_HELP: &str = "\
Examples:
  airlock executions list --status parked
  airlock executions continue run_0198…
  airlock executions continue --all

It needs an administrator's token. An execution that lost entries asks about each call that does more than read: it
may have been made before. An administrator can also end it: airlock executions cancel run_0198…";

const FOLLOW_HELP: &str = "\
Examples:
  airlock executions follow run_0198…
  airlock executions follow run_0198… --after 12
  airlock executions follow run_0198… --json | jq -r 'select(.type == \"log\").line'

Exit codes:
  0    the program ended
  1    the program failed; or there is no such execution, or no server
  3    a limit was reached: time, memory, calls or bytes
  4    the program failed after a call was declined
  70   Airlock itself broke
  130  the execution was cancelled";

/// Runs the verb, and prints the result.
pub(crate) fn executions(args: &Args) -> VerbExit {
    let reach = &args.reach;
    match &args.verb {
        ExecutionsVerb::List(which) => {
            reach.visit(async |client| list_executions(&client, which, reach).await)
        }
        ExecutionsVerb::Show { id, json } => with_execution_id(id, |id| {
            reach.visit(async |client| show_execution(&client, id, *json, reach).await)
        }),
        ExecutionsVerb::Follow { id, after, json } => with_execution_id(id, |id| {
            reach.visit(async |client| follow_execution(&client, id, Seq(*after), *json).await)
        }),
        ExecutionsVerb::Replay { id, until, json } => with_execution_id(id, |id| {
            let until = until.map(Seq);
            recorded::with(reach, &[id], async |journals| {
                replay::run(&journals.concat(), until, *json).await
            })
        }),
        ExecutionsVerb::Diff { a, b, json } => with_execution_id(a, |a| {
            with_execution_id(b, |b| {
                recorded::with(reach, &[a, b], async |journals| match journals.as_slice() {
                    [a, b] => diff::print_differences(a, b, *json),
                    _ => VerbExit::Fault,
                })
            })
        }),
        ExecutionsVerb::Continue { id: Some(id), json, .. } => with_execution_id(id, |id| {
            reach.visit(async |client| continue_one(&client, id, *json).await)
        }),
        ExecutionsVerb::Continue { id: None, json, .. } => {
            reach.visit(async |client| continue_all(&client, *json).await)
        }
        ExecutionsVerb::Cancel { id, json } => {
            with_execution_id(id, |id| reach.visit(async |client| cancel(&client, id, *json).await))
        }
    }
}

fn with_execution_id(named: &str, go: impl FnOnce(ExecutionRef) -> VerbExit) -> VerbExit {
    named.parse().map_or_else(
        |error: client::InvalidExecutionRef| {
            print::error(&print::tamed(&error.to_string()));
            VerbExit::Failed
        },
        go,
    )
}

async fn list_executions(
    client: &AirlockClient,
    which: &ExecutionsListArgs,
    reach: &ServerArgs,
) -> Result<VerbExit, Error> {
    let (mut listed, mut after) = (vec![], which.after);
    // The server returns as many per page as it chooses.
    while listed.len() < which.limit {
        let limit = which.limit - listed.len();
        let status = which.status.map(ExecutionStatus::from);
        let page = client.list_executions(which.filters.page(status, limit, after)).await?;
        after = page.next;
        listed.extend(page.executions);
        if after.is_none() {
            break;
        }
    }
    if which.json {
        listed.iter().for_each(|listed| print::value(&listed.json));
    } else {
        table::print(&listed);
    }
    if let Some(after) = after {
        print::print_note(&format!("there are more: add --after {after}{}", reach.flags()));
    }
    Ok(VerbExit::Good)
}

async fn show_execution(
    client: &AirlockClient,
    id: ExecutionRef,
    json: bool,
    reach: &ServerArgs,
) -> Result<VerbExit, Error> {
    let reply = client.execution(id).await?;
    if json {
        print::value(&reply.json);
    } else {
        let asks = matches!(reply.standing, ExecutionStanding::Asks(_));
        let origin = if asks { client.page_origin().await? } else { String::new() };
        print::report(&show::execution_text(id, &reply, &origin, &reach.flags()));
    }
    Ok(VerbExit::Good)
}

async fn follow_execution(
    client: &AirlockClient,
    id: ExecutionRef,
    after: Seq,
    json: bool,
) -> Result<VerbExit, Error> {
    let mut events = pin!(client.follow(id, after));
    let mut n_declined = 0;
    let mut progress = ProgressLine::if_wanted(!json);
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = progress.due() => {
                progress.draw();
                continue;
            }
        };
        progress.clear();
        let Some(event) = event.transpose()? else { break };
        match json {
            true => print::value(&event.json),
            false => print::report(&line::line(&event)),
        }
        progress.handle_event(&event.happened);
        n_declined += u32::from(outcome::is_no(&event.happened));
        if let EventKind::Finished { ended, .. } = &event.happened {
            return Ok(outcome::exit(ended, n_declined));
        }
    }
    // It ended before the first event that was requested.
    Ok(match client.execution(id).await?.standing {
        ExecutionStanding::Failed { .. } => VerbExit::Failed,
        ExecutionStanding::Completed { .. }
        | ExecutionStanding::Asks(_)
        | ExecutionStanding::Running
        | ExecutionStanding::Parked => VerbExit::Good,
    })
}

async fn continue_one(
    client: &AirlockClient,
    id: ExecutionRef,
    json: bool,
) -> Result<VerbExit, Error> {
    let said = client.continue_parked(id).await?;
    print::print_result(json, &said, |_| format!("{id} continues."));
    Ok(VerbExit::Good)
}

async fn continue_all(client: &AirlockClient, json: bool) -> Result<VerbExit, Error> {
    let n = client.continue_all().await?;
    print::print_result(json, &serde_json::json!({ "continued": n }), |_| match n {
        1 => "1 execution continues.".to_owned(),
        n => format!("{n} executions continue."),
    });
    Ok(VerbExit::Good)
}

async fn cancel(client: &AirlockClient, id: ExecutionRef, json: bool) -> Result<VerbExit, Error> {
    let reply = client.cancel(id).await?;
    if json {
        print::value(&reply.json);
        return Ok(VerbExit::Good);
    }
    let id = reply.execution.map_or(id, ExecutionRef::from);
    print::report(&match &reply.standing {
        ExecutionStanding::Completed { .. } => format!("{id} had ended before."),
        ExecutionStanding::Failed { error, .. } => {
            let first = print::tamed(error.lines().next().unwrap_or_default());
            format!("{id} is over: {first}")
        }
        ExecutionStanding::Asks(_) | ExecutionStanding::Running | ExecutionStanding::Parked => {
            format!("{id} is ending.")
        }
    });
    Ok(VerbExit::Good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use clap::error::ErrorKind;

    #[derive(Debug, Parser)]
    struct Wrapper {
        #[command(flatten)]
        args: Args,
    }

    fn refused(words: &str) -> Option<ErrorKind> {
        let words = std::iter::once("executions").chain(words.split_whitespace());
        Wrapper::try_parse_from(words).err().map(|error| error.kind())
    }

    #[test]
    fn words_that_make_sense_are_taken() {
        let good = [
            "list",
            "list --status paused --limit 3 --json",
            "--server http://x list",
            "show run_x --server http://x --token t",
            "follow run_x --after 3 --json --data-dir d",
            "cancel run_x",
            "continue run_x",
            "continue --all",
            "replay run_x --until 3 --json",
            "diff run_x run_y --data-dir d --json",
        ];
        for words in good {
            assert_eq!(refused(words), None, "{words}");
        }
    }

    #[test]
    fn words_that_make_no_sense_are_refused() {
        let bad = [
            ("list --status over", ErrorKind::InvalidValue),
            ("list --limit -1", ErrorKind::UnknownArgument),
            ("list --limit many", ErrorKind::ValueValidation),
            ("list --after exec_1", ErrorKind::ValueValidation),
            ("show", ErrorKind::MissingRequiredArgument),
            ("follow run_x --after x", ErrorKind::ValueValidation),
            ("cancel a b", ErrorKind::UnknownArgument),
            ("continue", ErrorKind::MissingRequiredArgument),
            ("continue a --all", ErrorKind::ArgumentConflict),
        ];
        for (words, kind) in bad {
            assert_eq!(refused(words), Some(kind), "{words}");
        }
    }

    #[test]
    fn what_is_no_id_is_not_sent_anywhere() {
        assert_eq!(with_execution_id("exec_1", |id| panic!("{id}")), VerbExit::Failed);
    }
}
