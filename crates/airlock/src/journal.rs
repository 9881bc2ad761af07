//! `airlock journal`: the recent activity of a REPL session.

use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print, repl, table};
use client::repl::{JournalKind, ReplClient, ReplError};

/// Shows the recent evaluations and calls of a REPL session, newest first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: repl::ReplLocation,
    /// The number of entries.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u64,
    /// Only entries of this kind.
    #[arg(long, value_name = "KIND")]
    kind: Option<JournalKindArg>,
    /// One JSON object per line.
    #[arg(long)]
    json: bool,
}

impl CommandVerb for Args {
    const NAME: &'static str = "journal";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Protocols, 6);

    fn run(self) -> VerbExit {
        journal(&self)
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum JournalKindArg {
    Eval,
    Command,
}

impl From<JournalKindArg> for JournalKind {
    fn from(kind: JournalKindArg) -> Self {
        match kind {
            JournalKindArg::Eval => Self::Eval,
            JournalKindArg::Command => Self::Command,
        }
    }
}

/// Prints the entries.
pub(crate) fn journal(args: &Args) -> VerbExit {
    print::start_tracing();
    let shown =
        crate::runtime::one_thread().and_then(|runtime| runtime.block_on(show_entries(args)));
    match shown {
        Ok(()) => VerbExit::Good,
        Err(error) => {
            print::error(&format!("{error:#}"));
            VerbExit::Failed
        }
    }
}

async fn show_entries(args: &Args) -> anyhow::Result<()> {
    let (url, token) = args.place.remote()?.ok_or(ReplError::Connect {
        url: "the data directory".into(),
        reason: "no server runs on it: name one with --url".into(),
    })?;
    let client = ReplClient::connect_with(&args.place.address(&url), token.as_ref()).await?;
    let entries = client.journal(args.kind.map(Into::into), args.limit).await?;
    if args.json {
        entries.iter().for_each(print::json);
    } else {
        let rows: Vec<_> = entries.iter().map(repl::journal_row).collect();
        table::print(&["AT", "DURATION", "OUTCOME", "CODE"], &rows, "Nothing was evaluated.");
    }
    Ok(())
}
