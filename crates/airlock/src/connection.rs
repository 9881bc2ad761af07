//! `airlock connection`: the credentials of sources. Sends requests to the server that owns the data directory.

use crate::print::{self, tamed};
use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, input, table};
use client::{AirlockClient, ConnectionLine, Error, NewConnection};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;

/// Longest credential that is read.
const VALUE_BYTES_MAX: u64 = 1 << 20;

/// Adds, lists, checks and removes the connections of sources.
///
/// Connections in airlock.toml are changed there; a change applies as soon as the file is saved.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: ConnectionVerb,
    /// One line of JSON each.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "connection";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Sources, 4);

    fn run(self) -> VerbExit {
        connection(&self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum ConnectionVerb {
    /// Connects a source: its tools appear as tools.SOURCE.OWNER.NAME.
    Add(Box<ConnectionAddArgs>),
    /// Lists connections: the path of their tools, and the kind of their credential.
    List,
    /// Removes a connection, its tools and its secrets.
    Remove(ConnectionSelector),
    /// Reads a connection's source again, and lists its tools.
    Refresh(ConnectionSelector),
    /// Checks whether a connection's source accepts its credential.
    Check(ConnectionSelector),
    /// Prints an address where a person enters a connection's secret, once.
    Handoff(ConnectionSelector),
    /// Prints the page where a person authorizes a connection.
    Authorize(ConnectionSelector),
}

#[derive(Debug, clap::Args)]
struct ConnectionSelector {
    /// The source's name.
    source: String,
    /// The connection's name.
    #[arg(default_value = "main")]
    name: String,
    /// The owner of the connection.
    #[arg(long, value_name = "org|user", default_value = "org")]
    owner: String,
}

#[derive(Debug, clap::Args)]
struct ConnectionAddArgs {
    /// The source's name.
    source: String,
    /// The connection's name.
    #[arg(default_value = "main")]
    name: String,
    /// The owner of the connection.
    #[arg(long, value_name = "org|user", default_value = "org")]
    owner: String,
    /// The kind of credential: none, bearer, basic, header, query, cookie, oauth, or one of the source's own.
    /// Default: oauth if any oauth option is given, else none.
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// The only value, such as a token; @FILE reads it from a file, @- from stdin.
    #[arg(long, value_name = "TEXT|@FILE", conflicts_with = "from")]
    value: Option<String>,
    /// Where the value is read from at each use: env:NAME, file:PATH or cmd:WORDS.
    #[arg(long, value_name = "PROVIDER:ID")]
    from: Option<String>,
    /// Leaves the value open: prints an address where a person enters it.
    #[arg(long, conflicts_with_all = ["value", "from"])]
    handoff: bool,
    /// With oauth: how tokens are obtained; default: as the source's description names, or by code.
    #[arg(long, value_name = "code|device|client_credentials")]
    flow: Option<String>,
    /// With oauth: the issuer of tokens; discovered where it is not given.
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// With oauth: the client id; registered dynamically where it is not given.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// With oauth: the client secret.
    #[arg(long, value_name = "TEXT|@FILE")]
    client_secret: Option<String>,
    /// With oauth: a scope to request; may be repeated.
    #[arg(long = "scope", value_name = "NAME")]
    scopes: Vec<String>,
    /// With basic: user and password; with header, query and cookie: name and value. Each NAME=TEXT or NAME=@FILE.
    #[arg(long = "field", value_name = "NAME=TEXT")]
    fields: Vec<String>,
    /// A description for people.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Replaces a connection of this name; without it, one that exists and has a credential is an error.
    #[arg(long)]
    replace: bool,
}

const HELP: &str = "\
Examples:
  airlock connection add petstore --template bearer --value @token.txt
  airlock connection add intranet mine --owner user --template basic --field user=ann --field password=@-
  airlock connection add petstore --template apikey-0 --from 'cmd:op read op://work/petstore/key'
  airlock connection add petstore theirs --template bearer --handoff
  airlock connection add calendar --template oauth --scope read
  airlock connection authorize calendar
  airlock connection check petstore
  airlock connection list
  airlock connection remove petstore

A secret on the command line can be read by others on this machine: give it in a file or on stdin.";

/// Runs the verb, and prints the result.
pub(crate) fn connection(args: &Args) -> VerbExit {
    match &args.verb {
        ConnectionVerb::Add(wanted) => match read(wanted) {
            Ok(new) => args.reach.visit(async |client| add(&client, &new, args.json).await),
            Err(complaint) => {
                print::error(&complaint);
                VerbExit::Usage
            }
        },
        ConnectionVerb::List => args.reach.visit(async |client| list_connections(&client, args.json).await),
        ConnectionVerb::Refresh(which) => print_change(args, which, "refresh"),
        ConnectionVerb::Check(which) => print_change(args, which, "health"),
        ConnectionVerb::Handoff(which) => print_change(args, which, "handoff"),
        ConnectionVerb::Authorize(ConnectionSelector { source, name, owner }) => args.reach.visit(async |client| {
            let url = client.authorize_connection(owner, source, name).await?;
            match args.json {
                true => print::report(&json!({ "url": url }).to_string()),
                false if url.is_empty() => print::print_note("nobody has to agree: it has a token"),
                false => print::report(&tamed(&url)),
            }
            Ok(VerbExit::Good)
        }),
        ConnectionVerb::Remove(ConnectionSelector { source, name, owner }) => args.reach.visit(async |client| {
            let removed = client.remove_connection(owner, source, name).await?;
            if args.json {
                print::json(&json!({ "removed": removed }));
            }
            if removed {
                return Ok(VerbExit::Good);
            }
            print::error(&tamed(&format!(
                "there is no connection {source}.{owner}.{name}; list them with: airlock connection list"
            )));
            Ok(VerbExit::Failed)
        }),
    }
}

/// Runs a verb on one connection, and prints the server's reply.
fn print_change(
    args: &Args,
    ConnectionSelector { source, name, owner }: &ConnectionSelector,
    what: &str,
) -> VerbExit {
    args.reach.visit(async |client| {
        let said = client.about_connection([owner, source, name], what).await?;
        if args.json {
            print::report(&said.to_string());
        } else if let Some(tools) = said.as_array() {
            let text = |tool: &Value, name: &str| {
                let line = tool[name].as_str().and_then(|text| text.lines().next());
                table::cell(line.unwrap_or_default())
            };
            let row = |tool: &Value| [text(tool, "address"), text(tool, "description")];
            let rows: Vec<_> = tools.iter().map(row).collect();
            table::print(&["ADDRESS", "DESCRIPTION"], &rows, "It has no tools.");
        } else {
            let text = |name: &str| said[name].as_str().map(tamed);
            text("url").or_else(|| text("message")).iter().for_each(|line| print::report(line));
        }
        Ok(if said["healthy"] == false { VerbExit::Failed } else { VerbExit::Good })
    })
}

async fn add(
    client: &AirlockClient,
    new: &NewConnection,
    is_json: bool,
) -> Result<VerbExit, Error> {
    let made = client.add_connection(new).await?;
    match is_json {
        true => print::report(&made.json.to_string()),
        false => {
            print::report(&tamed(&made.address));
            made.json["url"].as_str().iter().for_each(|url| print::report(&tamed(url)));
        }
    }
    Ok(VerbExit::Good)
}

async fn list_connections(client: &AirlockClient, is_json: bool) -> Result<VerbExit, Error> {
    let listed = client.connections().await?;
    if is_json {
        listed.iter().for_each(|made| print::report(&made.json.to_string()));
        return Ok(VerbExit::Good);
    }
    let rows: Vec<_> = listed.iter().map(row).collect();
    table::print(&["ADDRESS", "TEMPLATE", "DESCRIPTION"], &rows, "There are no connections.");
    Ok(VerbExit::Good)
}

fn row(made: &ConnectionLine) -> [String; 3] {
    let text = |text: &str| tamed(text).replace(['\n', '\t'], " ");
    [text(&made.address), text(&made.template), text(&made.description)]
}

fn read(wanted: &ConnectionAddArgs) -> Result<NewConnection, String> {
    let mut values = BTreeMap::new();
    for field in &wanted.fields {
        let (name, text) = field
            .split_once('=')
            .ok_or_else(|| "--field needs NAME=TEXT, such as user=ann".to_owned())?;
        values.insert(name.to_owned(), given(text)?);
    }
    let oauth = oauth(wanted)?;
    let usual = if oauth.is_some() { "oauth" } else { "none" };
    let template = wanted.template.clone().unwrap_or_else(|| usual.into());
    Ok(NewConnection {
        owner: wanted.owner.clone(),
        integration: wanted.source.clone(),
        name: wanted.name.clone(),
        template,
        value: wanted.value.as_deref().map(given).transpose()?,
        values,
        from: wanted.from.as_deref().map(from).transpose()?,
        oauth,
        handoff: wanted.handoff,
        description: wanted.description.clone(),
        replace: wanted.replace,
    })
}

fn from(text: &str) -> Result<Value, String> {
    let (provider, id) = text
        .split_once(':')
        .ok_or_else(|| "--from needs PROVIDER:ID, such as env:TOKEN".to_owned())?;
    Ok(json!({ "provider": provider, "id": id }))
}

/// The OAuth options; `None` where there are none.
fn oauth(wanted: &ConnectionAddArgs) -> Result<Option<Value>, String> {
    let mut oauth = json!({ "scopes": wanted.scopes });
    let secret = wanted.client_secret.as_deref().map(given).transpose()?;
    let said = [
        ("flow", &wanted.flow),
        ("issuer", &wanted.issuer),
        ("client_id", &wanted.client_id),
        ("client_secret", &secret),
    ];
    let template = wanted.template.as_deref().unwrap_or_default();
    let says_any = !wanted.scopes.is_empty() || said.iter().any(|(_, value)| value.is_some());
    for (name, value) in said {
        if let Some(value) = value {
            oauth[name] = value.as_str().into();
        }
    }
    Ok((says_any || template.starts_with("oauth")).then_some(oauth))
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        add: ConnectionAddArgs,
    }

    #[test]
    fn whoever_says_something_of_tokens_means_oauth() {
        let read = |words: &[&str]| {
            let line = Line::parse_from([&["add", "calendar"], words].concat());
            let made = read(&line.add).unwrap();
            (made.template, made.oauth)
        };
        assert_eq!(read(&[]), ("none".into(), None));
        let oauth = Some(json!({ "scopes": ["read"] }));
        assert_eq!(read(&["--scope", "read"]), ("oauth".into(), oauth.clone()));
        assert_eq!(read(&["--template", "theirs", "--scope", "read"]), ("theirs".into(), oauth));
        assert_eq!(read(&["--template", "bearer", "--value", "x"]), ("bearer".into(), None));
        let none = Some(json!({ "scopes": [] }));
        assert_eq!(read(&["--template", "oauth"]), ("oauth".into(), none));
    }
}
