//! `airlock open`: the page where questions are decided, with a link that signs a browser in.

use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print};
use client::{AirlockClient, Error, ExecutionRef};
use serde_json::json;
use std::io::IsTerminal as _;
use std::process::{Command, Stdio};

/// Opens the page where questions are decided.
///
/// Prints a link that signs a browser in once, and opens it in the browser of this machine where there
/// is one. The link is valid for 15 minutes; anyone who has it may answer questions.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// A question's id, exec_…, or an execution's, run_…; without it, all open questions.
    id: Option<String>,
    /// Only prints the link.
    #[arg(long)]
    print: bool,
    /// The link as JSON; nothing is opened.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "open";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Access, 3);

    fn run(self) -> VerbExit {
        open(&self)
    }
}

const HELP: &str = "\
Examples:
  airlock open                     the inbox of open questions
  airlock open exec_0b5c…          one of them
  airlock open --print             for a browser elsewhere

Exit codes:
  0    the link is on stdout
  1    no server, or the token may not answer
  2    the command line made no sense
  70   Airlock itself broke";

/// Opens the page, and prints its address.
pub(crate) fn open(args: &Args) -> VerbExit {
    let path = match args.id.as_deref().map(str::parse::<ExecutionRef>) {
        None => "/".to_owned(),
        Some(Ok(id)) => format!("/resume/{id}"),
        Some(Err(bad)) => {
            print::error(&bad.to_string());
            return VerbExit::Usage;
        }
    };
    args.reach.visit_to_sign_in(async |client| link(client, &path, args).await)
}

async fn link(client: AirlockClient, path: &str, args: &Args) -> Result<VerbExit, Error> {
    let link = client.sign_in_link(path).await?;
    print::print_result(args.json, &json!({ "url": link }), |_| link.clone());
    if !args.print && !args.json && std::io::stdout().is_terminal() {
        browse(&link);
    }
    Ok(VerbExit::Good)
}

/// Opens the link in the desktop's browser. Where there is none, the link is only printed.
#[expect(clippy::disallowed_methods, reason = "the desktop's own opener; nobody waits for it")]
fn browse(link: &str) {
    let _ = Command::new("xdg-open")
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}
