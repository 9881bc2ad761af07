//! `airlock source`: the sources of tools. Sends requests to the server that owns the data directory.

use crate::progress::cut;
use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print, table};
use client::{AirlockClient, Error, SourceChange, SourceLine};
use serde_json::json;
use std::pin::pin;
use std::time::{Duration, Instant};
use tools::{SourceArguments, SourceConfig, SourceKinds};

/// Adds, lists, refreshes and removes the sources of a running server.
///
/// Sources in airlock.toml are changed there; a change applies as soon as the file is saved.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: SourceVerb,
    /// One line of JSON each.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "source";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Sources, 3);

    fn run(self) -> VerbExit {
        source(&self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum SourceVerb {
    /// Adds an API or an MCP server by its address, or a program that speaks MCP after --.
    Add(NewSource),
    /// Lists sources: name, kind, number of tools, and any error.
    List,
    /// Reads a source again and prints what changed.
    Refresh {
        /// Its name.
        name: String,
    },
    /// Removes a source and its connections.
    Remove {
        /// Its name.
        name: String,
    },
}

/// The source to add.
#[derive(Debug, clap::Args)]
struct NewSource {
    /// The address of an OpenAPI description or of an MCP server; its kind is detected.
    #[arg(required_unless_present = "program")]
    url: Option<String>,
    /// Its name in paths; made from its title or address if not given.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The API's base URL: calls go there, and not where its OpenAPI description says.
    #[arg(long = "base-url", value_name = "URL", requires = "url")]
    api_base_url: Option<String>,
    /// A program that speaks MCP on its standard input and output, and its arguments.
    #[arg(last = true, value_name = "PROGRAM", requires = "name", conflicts_with = "url")]
    program: Vec<String>,
}

const HELP: &str = "\
Examples:
  airlock source add https://example.com/openapi.json
  airlock source add https://example.com/openapi.json --base-url https://api.example.com
  airlock source add https://example.com/mcp --name example
  airlock source add --name files -- npx -y @modelcontextprotocol/server-filesystem /srv/files
  airlock source refresh example
  airlock source list | cut -f1,3";

/// Runs the verb, and prints the result.
pub(crate) fn source(args: &Args) -> VerbExit {
    args.reach.visit(async |client| run_source_verb(&client, args).await)
}

async fn run_source_verb(client: &AirlockClient, args: &Args) -> Result<VerbExit, Error> {
    match &args.verb {
        SourceVerb::Add(add) => return add_source(client, add, args.json).await,
        SourceVerb::List => {
            let sources = client.sources().await?;
            if args.json {
                sources.iter().for_each(print::json);
            } else {
                let rows: Vec<_> = sources.iter().map(row).collect();
                let head = ["NAME", "KIND", "TOOLS", "TROUBLE"];
                table::print(&head, &rows, "There are no sources; airlock source add adds one.");
            }
        }
        SourceVerb::Refresh { name } => match client.refresh_source(name).await? {
            change if args.json => print::json(&change),
            change => print_change(&change),
        },
        SourceVerb::Remove { name } => {
            client.remove_source(name).await?;
            if args.json {
                print::json(&json!({ "removed": true }));
            }
        }
    }
    Ok(VerbExit::Good)
}

async fn add_source(
    client: &AirlockClient,
    add: &NewSource,
    is_json: bool,
) -> Result<VerbExit, Error> {
    let NewSource { url, name, api_base_url, program } = add;
    let kinds = SourceKinds::default();
    let (name, source): (String, SourceConfig) = match (url, name) {
        (Some(url), _) => {
            let reading = format!("reading {}", print::tamed(url));
            let Some((kind, slug)) = elapsed_line(&reading, client.detect_source(url)).await?
            else {
                print::error(&format!("{url} is neither an OpenAPI description nor an MCP server"));
                return Ok(VerbExit::Failed);
            };
            let arguments = SourceArguments {
                url: Some(url.clone()),
                base_url: api_base_url.clone(),
                ..SourceArguments::default()
            };
            let Some(kind) = kinds.by_name(&kind) else {
                print::error(&format!(
                    "the server says that {url} is of the kind {kind}, which this airlock does not know; update it"
                ));
                return Ok(VerbExit::Failed);
            };
            let source = match kind.config_from_arguments(&arguments) {
                Ok(source) => source,
                Err(why) => {
                    print::error(&why);
                    return Ok(VerbExit::Usage);
                }
            };
            let Some(name) = name.clone().or(slug) else {
                print::error("its title contains no valid name; give one with --name");
                return Ok(VerbExit::Usage);
            };
            (name, source)
        }
        (None, Some(name)) => match program_source(&kinds, program) {
            Some(source) => (name.clone(), source),
            None => return Ok(VerbExit::Usage),
        },
        (None, None) => return Ok(VerbExit::Usage),
    };
    let adding = format!("adding {}", print::tamed(&name));
    let change = elapsed_line(&adding, client.add_source(&name, &source)).await?;
    if is_json {
        print::json(&change);
        return Ok(VerbExit::Good);
    }
    print::report(&print::tamed(&format!(
        "{name}\t{} tools at tools.{name}.org.main",
        change.added_tools.len()
    )));
    change
        .left_out
        .iter()
        .for_each(|why| print::print_note(&print::tamed(&format!("left out: {why}"))));
    if let Some(advice) = credential_advice(&name, &client.auth_templates(&name).await?) {
        print::print_note(&print::tamed(&advice));
    }
    Ok(VerbExit::Good)
}

/// The configuration of a program that is a source, by the kind that takes programs.
fn program_source(kinds: &SourceKinds, program: &[String]) -> Option<SourceConfig> {
    let kind = kinds.iter().find(|kind| kind.takes_program())?;
    let program = program.to_vec();
    kind.config_from_arguments(&SourceArguments { program, ..SourceArguments::default() }).ok()
}

/// The next step where calls of a new source need a credential.
fn credential_advice(name: &str, templates: &[String]) -> Option<String> {
    let (template, others) = templates.split_first()?;
    let how = match template.as_str() {
        "oauth" => String::new(),
        _ => " --value @-".to_owned(),
    };
    let others = match others {
        [] => String::new(),
        others => format!(" (or {})", others.join(", ")),
    };
    Some(format!(
        "its calls need a credential of the kind {template}{others}; add it with:\n  airlock connection add {name} \
         --template {template}{how}"
    ))
}

/// How often the line with the elapsed time is drawn.
const BETWEEN_FRAMES: Duration = Duration::from_millis(500);

/// Awaits a future, and shows on a terminal what it waits for, with the elapsed time.
async fn elapsed_line<T>(what: &str, waiting: impl Future<Output = T>) -> T {
    let mut waiting = pin!(waiting);
    if !print::can_redraw() {
        return waiting.await;
    }
    let began = Instant::now();
    loop {
        tokio::select! {
            done = &mut waiting => {
                print::redraw("");
                return done;
            }
            () = tokio::time::sleep(BETWEEN_FRAMES) => {
                let elapsed = began.elapsed().as_secs();
                print::redraw(&cut(&format!("{what}… {elapsed} s"), print::width()));
            }
        }
    }
}

fn print_change(change: &SourceChange) {
    let groups =
        [("+", &change.added_tools), ("-", &change.removed_tools), ("~", &change.changed_tools)];
    for (mark, names) in groups {
        names.iter().for_each(|name| print::report(&print::tamed(&format!("{mark} {name}"))));
    }
    if !change.grown_tools.is_empty() {
        let names = change.grown_tools.join(", ");
        print::print_note(&print::tamed(&format!(
            "approvals no longer cover what has grown: {names}"
        )));
    }
}

fn row(source: &SourceLine) -> [String; 4] {
    let SourceLine { slug, kind, tool_count, trouble, .. } = source;
    let trouble = trouble.as_deref().unwrap_or_default();
    [table::cell(slug), table::cell(kind), tool_count.to_string(), table::cell(trouble)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_needs_a_credential_says_how_to_add_it() {
        let advice = |templates: &[&str]| {
            let templates: Vec<_> = templates.iter().map(|name| (*name).to_owned()).collect();
            credential_advice("todo", &templates)
        };
        assert_eq!(advice(&[]), None);
        let expected = "its calls need a credential of the kind bearer (or apikey-0); add it with:\n  \
                        airlock connection add todo --template bearer --value @-";
        assert_eq!(advice(&["bearer", "apikey-0"]).as_deref(), Some(expected));
        assert!(advice(&["oauth"]).is_some_and(|text| text.ends_with("--template oauth")));
    }
}
