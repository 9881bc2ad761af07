//! `airlock call`: one call of a tool on the server.

mod browse;
mod call_request;

pub(crate) use browse::{as_json, described};

use crate::follow_and_prompt::{AttendOptions, follow_and_prompt};
use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print};
use call_request::CallRequest;
use client::{AirlockClient, Error};

/// Calls a tool and prints its result.
///
/// The path is one word with dots or several words; the last word is the input if it begins with { or @.
/// A server is started where none runs. Questions of the tool are asked on the terminal, where there is
/// one; otherwise each is printed with the page and the commands that answer it.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = HELP)]
pub(crate) struct Args {
    /// The tool's path, then its input: a JSON object, @FILE, or @- for stdin.
    #[arg(value_name = "PATH… ['{JSON}' | @FILE]")]
    words: Vec<String>,
    /// Lists the tools below the path; for a tool, shows its input and output.
    #[arg(long, short)]
    help: bool,
    /// With --help: only tools with this text in their path or description.
    #[arg(long = "match", value_name = "TEXT", requires = "help")]
    matching: Option<String>,
    /// With --help: at most so many lines.
    #[arg(long, value_name = "N", requires = "help", default_value_t = browse::LISTED_USUALLY)]
    limit: usize,
    /// Includes the HTTP status and headers of an API's answer.
    #[arg(long)]
    headers: bool,
    /// The server's reply, one line of JSON; questions are not asked here.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "call";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Programs, 2);

    fn run(self) -> VerbExit {
        call(&self)
    }
}

const HELP: &str = "\
Examples:
  airlock call demo add '{\"a\":1,\"b\":2}'
  airlock call github.org.main.issues.create @issue.json
  airlock call --help                         what there is
  airlock call github --help --match issue    what is below github and about issues
  airlock call github.org.main.issues.create --help

Exit codes:
  0    the call ended, its result is on stdout
  1    the call failed, or the tool answered { ok: false, error }; or there is no server
  2    the command line made no sense, or a file could not be read
  3    a limit was reached: time, memory or bytes
  4    the call was declined
  6    the call waits for an answer; what it asks, and how to answer, is on stdout
  70   Airlock itself broke
  130  interrupted with Ctrl-C, or the execution was cancelled";

/// Calls the tool, or prints what could be called.
pub(crate) fn call(args: &Args) -> VerbExit {
    if args.help && args.words.is_empty() && args.matching.is_none() {
        return help(args);
    }
    let order = match CallRequest::read(&args.words) {
        Ok(order) => order,
        Err(complaint) => {
            print::error(&complaint);
            return VerbExit::Usage;
        }
    };
    if args.help {
        return browse(args, &order.segments);
    }
    if order.segments.is_empty() {
        print::error("name a tool; airlock call --help lists them");
        return VerbExit::Usage;
    }
    args.reach.visit_started(async |client| call_tool(&client, &order, args).await)
}

async fn call_tool(
    client: &AirlockClient,
    order: &CallRequest,
    args: &Args,
) -> Result<VerbExit, Error> {
    let execution = client.start(&order.code()).await?;
    let manner = AttendOptions {
        asks_here: !args.json && print::is_somebody_there(),
        json: args.json,
        is_call: true,
        has_headers: args.headers,
        flags: args.reach.flags(),
    };
    follow_and_prompt(client, execution, &manner).await
}

/// Prints the flags, and the names of all sources unless that needs a new server.
fn help(args: &Args) -> VerbExit {
    let mut verbs = <crate::CommandLine as clap::CommandFactory>::command();
    verbs.build();
    if let Some(verb) = verbs.find_subcommand_mut("call") {
        print::report(&verb.render_long_help().to_string());
    }
    match args.reach.is_there() {
        true => browse(args, &[]),
        false => VerbExit::Good,
    }
}

fn browse(args: &Args, segments: &[String]) -> VerbExit {
    let wish = browse::CallBrowseFilter {
        segments,
        matching: args.matching.as_deref(),
        limit: args.limit,
    };
    args.reach.visit_started(async |client| browse::browse(&client, &wish, args.json).await)
}
