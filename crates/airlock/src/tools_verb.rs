//! `airlock tools`: finds and describes tools. It calls the search tools, as programs do.

use crate::call::{as_json, described};
use crate::print::{self, tamed};
use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, table};
use client::{AirlockClient, Error, ExecutionStanding};
use serde_json::{Value, json};

/// Searches and describes tools, and lists their sources.
///
/// A server is started where none runs.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: ToolVerb,
    /// One line of JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "tools";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Programs, 3);

    fn run(self) -> VerbExit {
        tools(&self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum ToolVerb {
    /// Finds tools by what they do: path and description, best first.
    Search {
        /// The words to search for.
        query: Vec<String>,
        /// Only below this path.
        #[arg(long, value_name = "PATH")]
        namespace: Option<String>,
        /// At most so many.
        #[arg(long, value_name = "N", default_value_t = 12)]
        limit: usize,
    },
    /// Shows a tool's input and output, in TypeScript.
    Describe {
        /// Its path, with dots or spaces.
        #[arg(required = true)]
        path: Vec<String>,
    },
    /// Lists sources: name, kind, number of tools, description.
    #[command(visible_alias = "integrations")]
    Sources {
        /// Only sources with these words.
        #[arg(long, value_name = "WORDS")]
        query: Option<String>,
        /// At most so many sources.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
}

const HELP: &str = "\
Examples:
  airlock tools search create an issue
  airlock tools search --namespace github --limit 5 repository
  airlock tools describe github.org.main.issues.create
  airlock tools sources --json

Exit codes:
  0    done
  1    there is no such tool, or no server
  2    the command line made no sense
  70   Airlock itself broke";

/// Runs the verb, and prints the result.
pub(crate) fn tools(args: &Args) -> VerbExit {
    args.reach.visit_started(async |client| run_tools_verb(&client, args).await)
}

async fn run_tools_verb(client: &AirlockClient, args: &Args) -> Result<VerbExit, Error> {
    match &args.verb {
        ToolVerb::Describe { path } => describe(client, &path.join("."), args.json).await,
        ToolVerb::Search { query, namespace, limit } => {
            let query = query.join(" ");
            let wish = json!({ "query": query, "namespace": namespace, "limit": (*limit).max(1) });
            let found = asked(client, &format!("tools.search({wish})")).await?;
            print_hits(found, args.json, ["PATH", "DESCRIPTION"], |hit| {
                ["path", "description"].map(|name| line(&hit[name]))
            })
        }
        ToolVerb::Sources { query, limit } => {
            let wish = json!({ "query": query, "limit": (*limit).max(1) });
            let found = asked(client, &format!("tools.executor.sources.list({wish})")).await?;
            print_hits(found, args.json, ["NAME", "KIND", "TOOLS", "DESCRIPTION"], |source| {
                ["id", "kind", "toolCount", "description"].map(|name| line(&source[name]))
            })
        }
    }
}

async fn describe(client: &AirlockClient, path: &str, json: bool) -> Result<VerbExit, Error> {
    let path = path.strip_prefix("tools.").unwrap_or(path);
    let Some(tool) = client.describe_tool(path).await? else {
        let tools = client.tools().await?;
        let known = tools.iter().map(|tool| tool.address.trim_start_matches("tools.").to_owned());
        let near = tools::suggest(path, known);
        let hint = match near.is_empty() {
            true => "; airlock tools search finds tools by what they do".to_owned(),
            false => format!("; did you mean {}?", near.join(", ")),
        };
        print::error(&tamed(&format!("there is no tool {path}{hint}")));
        return Ok(VerbExit::Failed);
    };
    match json {
        true => print::report(&as_json(&tool).to_string()),
        false => print::report(&described(path, &tool)),
    }
    Ok(VerbExit::Good)
}

/// Calls a search tool and returns its result.
async fn asked(client: &AirlockClient, call: &str) -> Result<Value, Error> {
    let reply = client.execute(&format!("return await {call};")).await?;
    match reply.standing {
        ExecutionStanding::Completed { result, .. } => serde_json::from_str(result.as_text())
            .map_err(|_| Error::Protocol("no list of tools".into())),
        ExecutionStanding::Failed { error, .. } => {
            Err(Error::Refused { status: 400, tag: String::new(), message: error })
        }
        ExecutionStanding::Asks(_) | ExecutionStanding::Running | ExecutionStanding::Parked => {
            Err(Error::Protocol("a search that asks".into()))
        }
    }
}

fn print_hits<const N: usize>(
    found: Value,
    json: bool,
    head: [&str; N],
    row: fn(&Value) -> [String; N],
) -> Result<VerbExit, Error> {
    if json {
        print::report(&found.to_string());
        return Ok(VerbExit::Good);
    }
    let items = found["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<_> = items.iter().map(row).collect();
    match rows.is_empty() {
        true => print::print_note("nothing was found"),
        false => table::print(&head, &rows, ""),
    }
    if found["hasMore"] == true {
        print::print_note(&format!("{} in all: raise --limit", found["total"]));
    }
    Ok(VerbExit::Good)
}

/// A member as text in one line.
fn line(value: &Value) -> String {
    let text = value.as_str().map_or_else(
        || if value.is_null() { String::new() } else { value.to_string() },
        |text| text.lines().next().unwrap_or_default().to_owned(),
    );
    tamed(&text).replace('\t', " ")
}
