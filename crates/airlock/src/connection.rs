//! `airlock connection`: what proves to a source who calls. Asks the server that owns the data directory.

use crate::print::{self, tamed};
use crate::reach::Reach;
use crate::{Exit, input, table};
use client::{ConnectionLine, Error, HttpClient, NewConnection};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;

/// Longest credential that is read.
const VALUE_BYTES_MAX: u64 = 1 << 20;

/// Adds, lists and removes the connections of sources.
///
/// What stands in airlock.toml is changed there, and counts as soon as the file is saved.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// One line of JSON each.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Connects a source: its tools appear as tools.SOURCE.OWNER.NAME.
    Add(Add),
    /// Lists connections: where their tools are, and what they prove themselves with.
    List,
    /// Removes a connection and its tools.
    Remove {
        /// The source's name.
        source: String,
        /// The connection's.
        #[arg(default_value = "main")]
        name: String,
        /// Whose it is.
        #[arg(long, default_value = "org")]
        owner: String,
    },
}

#[derive(Debug, clap::Args)]
struct Add {
    /// The source's name.
    source: String,
    /// The connection's.
    #[arg(default_value = "main")]
    name: String,
    /// Whose it is.
    #[arg(long, value_name = "org|user", default_value = "org")]
    owner: String,
    /// How it proves who calls.
    #[arg(long, value_name = "none|bearer|basic|header|query", default_value = "none")]
    template: String,
    /// With bearer: the token; @FILE reads it from a file, @- from stdin.
    #[arg(long, value_name = "TEXT|@FILE")]
    value: Option<String>,
    /// With basic: user and password; with header and query: name and value. Each NAME=TEXT or NAME=@FILE.
    #[arg(long = "field", value_name = "NAME=TEXT")]
    fields: Vec<String>,
    /// What people read.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

const HELP: &str = "\
Examples:
  airlock connection add petstore --template bearer --value @token.txt
  airlock connection add intranet mine --owner user --template basic --field user=ann --field password=@-
  airlock connection list
  airlock connection remove petstore

A secret on the command line can be read by others on this machine: give it in a file or on stdin.";

/// Does it, and tells how it went.
pub(crate) fn connection(args: &Args) -> Exit {
    match &args.verb {
        Verb::Add(wanted) => match read(wanted) {
            Ok(new) => args.reach.visit(async |client| add(&client, &new, args.json).await),
            Err(complaint) => {
                print::note(&complaint);
                Exit::Usage
            }
        },
        Verb::List => args.reach.visit(async |client| list(&client, args.json).await),
        Verb::Remove { source, name, owner } => args.reach.visit(async |client| {
            let removed = client.remove_connection(owner, source, name).await?;
            match (args.json, removed) {
                (true, _) => print::report(&format!("{{\"removed\":{removed}}}")),
                (false, true) => {}
                (false, false) => print::note("it was not there"),
            }
            Ok(Exit::Good)
        }),
    }
}

async fn add(client: &HttpClient, new: &NewConnection, is_json: bool) -> Result<Exit, Error> {
    let made = client.add_connection(new).await?;
    match is_json {
        true => print::report(&made.json.to_string()),
        false => print::report(&tamed(&made.address)),
    }
    Ok(Exit::Good)
}

async fn list(client: &HttpClient, is_json: bool) -> Result<Exit, Error> {
    let listed = client.connections().await?;
    if is_json {
        listed.iter().for_each(|made| print::report(&made.json.to_string()));
        return Ok(Exit::Good);
    }
    let rows: Vec<_> = listed.iter().map(row).collect();
    let head = ["ADDRESS", "TEMPLATE", "DESCRIPTION"];
    table::lines(&head, &rows).iter().for_each(|line| print::report(line));
    Ok(Exit::Good)
}

fn row(made: &ConnectionLine) -> [String; 3] {
    let text = |text: &str| tamed(text).replace(['\n', '\t'], " ");
    [text(&made.address), text(&made.template), text(&made.description)]
}

fn read(wanted: &Add) -> Result<NewConnection, String> {
    let mut values = BTreeMap::new();
    for field in &wanted.fields {
        let (name, text) = field
            .split_once('=')
            .ok_or_else(|| "--field needs NAME=TEXT, such as user=ann".to_owned())?;
        values.insert(name.to_owned(), given(text)?);
    }
    Ok(NewConnection {
        owner: wanted.owner.clone(),
        integration: wanted.source.clone(),
        name: wanted.name.clone(),
        template: wanted.template.clone(),
        value: wanted.value.as_deref().map(given).transpose()?,
        values,
        description: wanted.description.clone(),
    })
}

fn given(text: &str) -> Result<String, String> {
    match text.strip_prefix('@') {
        None => Ok(text.to_owned()),
        Some("-") => input::read("stdin", io::stdin().lock(), VALUE_BYTES_MAX)
            .map(|text| text.trim_end_matches(['\r', '\n']).to_owned()),
        Some(path) => {
            let file = File::open(path).map_err(|error| format!("cannot open {path}: {error}"))?;
            input::read(path, file, VALUE_BYTES_MAX)
                .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
        }
    }
}
