//! `airlock sign-in`: a link that signs a browser in, or a code that raises a tab's rights for an hour.

use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print};
use client::{AirlockClient, Error};
use serde_json::json;

/// Prints a link that signs a browser in.
///
/// The link works once, within 15 minutes. The browser that opens it may read and answer questions for
/// seven days. With --admin, prints a code instead: entered on a page of a signed-in browser, it lets that tab
/// act with the whole token for an hour.
///
/// The account that the server runs under needs no token: it uses sign-in.key in the data directory.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Prints a code for actions that need the scope run or admin; it works once, within 5 minutes.
    #[arg(long)]
    admin: bool,
    /// The link or the code as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "sign-in";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Access, 4);

    fn run(self) -> VerbExit {
        sign_in(&self)
    }
}

const HELP: &str = "\
Examples:
  airlock sign-in                         a link for a browser
  airlock sign-in --admin                 a code for a page that asks for one
  sudo -u airlock airlock sign-in         where the server has its own account

Exit codes:
  0    the link or the code is on stdout
  1    no server, or the token may not answer
  2    the command line made no sense
  70   Airlock itself broke";

/// Prints the link or the code.
pub(crate) fn sign_in(args: &Args) -> VerbExit {
    args.reach.visit_to_sign_in(async |client| print_secret(client, args).await)
}

async fn print_secret(client: AirlockClient, args: &Args) -> Result<VerbExit, Error> {
    if args.admin {
        let minted = client.elevation_code().await?;
        print::print_result(args.json, &minted, |minted| minted.code.clone());
    } else {
        let link = client.sign_in_link("/").await?;
        print::print_result(args.json, &json!({ "url": link }), |_| link.clone());
    }
    Ok(VerbExit::Good)
}
