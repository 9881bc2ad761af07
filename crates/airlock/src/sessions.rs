//! `airlock sessions`: lists the browsers that are signed in, and signs them out.

use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print, table};
use client::{AirlockClient, BrowserSessionLine, Error};
use lifecycle::{Timestamp, UtcTime};
use serde_json::json;

/// Lists the browsers that are signed in, and ends their sessions.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<SessionsVerb>,
    /// One line of JSON each.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "sessions";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Access, 5);

    fn run(self) -> VerbExit {
        sessions(&self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum SessionsVerb {
    /// Lists them, newest first. The default.
    List,
    /// Signs a browser out.
    End {
        /// The session's id, web_….
        id: String,
    },
}

const HELP: &str = "\
Examples:
  airlock sessions                 who is signed in
  airlock sessions end web_Kf3…    signs that browser out

Exit codes:
  0    done
  1    no server, no such session, or the token may not answer
  2    the command line made no sense
  70   Airlock itself broke";

/// Lists or ends sessions.
pub(crate) fn sessions(args: &Args) -> VerbExit {
    args.reach.visit(async |client| match &args.verb {
        None | Some(SessionsVerb::List) => list_sessions(client, args.json).await,
        Some(SessionsVerb::End { id }) => end_session(client, id, args.json).await,
    })
}

async fn list_sessions(client: AirlockClient, is_json: bool) -> Result<VerbExit, Error> {
    let sessions = client.browser_sessions().await?;
    if is_json {
        sessions.iter().for_each(print::json);
        return Ok(VerbExit::Good);
    }
    let rows: Vec<_> = sessions.iter().map(row).collect();
    let head = ["ID", "TOKEN", "UNTIL", "KIND", "BROWSER"];
    table::print(&head, &rows, "No browser is signed in.");
    Ok(VerbExit::Good)
}

fn row(session: &BrowserSessionLine) -> [String; 5] {
    [
        print::tamed(&session.id),
        print::tamed(&session.name),
        UtcTime::from(Timestamp(session.expires)).to_string(),
        print::tamed(&session.kind),
        print::tamed(&session.agent),
    ]
}

async fn end_session(client: AirlockClient, id: &str, is_json: bool) -> Result<VerbExit, Error> {
    client.end_browser_session(id).await?;
    print::print_result(is_json, &json!({ "ended": true }), |_| format!("{id} is signed out"));
    Ok(VerbExit::Good)
}
