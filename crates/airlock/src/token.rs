//! `airlock token`: mints, lists and removes tokens, on the store itself or through the server that owns it.

use crate::server_locator::ServerArgs;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print, table};
use anyhow::Context as _;
use client::{AirlockClient, Error};
use lifecycle::AnswerRole;
use serde_json::{Value, json};
use server::auth::{self, MintedSecret, TokenError, TokenInfo, TokenName, TokenScopes};
use std::path::Path;
use store::Journal as _;
use store::sqlite::SqliteStore;

/// Mints, lists and removes the tokens that clients of the server need.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: TokenVerb,
    /// One line of JSON each.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    reach: ServerArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "token";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Access, 2);

    fn run(self) -> VerbExit {
        token(&self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum TokenVerb {
    /// Mints a token and prints its secret, once.
    Add {
        /// Its name: 1 to 64 letters, digits, `_`, `.` or `-`.
        #[arg(value_parser = name)]
        name: TokenName,
        /// Its scopes: run, answer, process, admin; several with commas.
        #[arg(long = "scope", value_name = "SCOPES", value_parser = scopes)]
        scopes: TokenScopes,
        /// Who may answer questions with it at most: person, client (an MCP client's dialog too) or model (the agent
        /// too). The server's setting bounds it.
        #[arg(long, value_name = "WHO", default_value_t = AnswerRole::Person)]
        answers: AnswerRole,
        /// Gives the new token the executions of an earlier caller of this name, where the journal retains some.
        #[arg(long)]
        take_over: bool,
    },
    /// Lists names, scopes and answer roles.
    List,
    /// Changes who may answer with a token.
    Set {
        /// Its name.
        #[arg(value_parser = name)]
        name: TokenName,
        /// Who may answer questions with it at most: person, client or model. The server's setting bounds it.
        #[arg(long, value_name = "WHO")]
        answers: AnswerRole,
    },
    /// Removes a token: its secret is no longer valid.
    Remove {
        /// Its name.
        #[arg(value_parser = name)]
        name: TokenName,
    },
}

/// Runs the verb, and prints the result.
pub(crate) fn token(args: &Args) -> VerbExit {
    let Some(data_dir) = args.reach.unowned() else {
        return args.reach.visit(async |client| {
            let told = over_http(&client, &args.verb).await?;
            print_tokens(args, &told);
            Ok(VerbExit::Good)
        });
    };
    print::start_tracing();
    match perform_on_directory(&args.verb, &data_dir) {
        Ok(told) => {
            print_tokens(args, &told);
            VerbExit::Good
        }
        Err(error) => {
            print::error(&format!("{error:#}"));
            VerbExit::Failed
        }
    }
}

fn print_tokens(args: &Args, told: &[Value]) {
    if matches!(args.verb, TokenVerb::List) && !args.json {
        let rows: Vec<_> = told.iter().map(row).collect();
        return table::print(&HEAD, &rows, "There are no tokens.");
    }
    for value in told {
        match args.json {
            true => print::json(value),
            false => line(&args.verb, value).iter().for_each(|line| print::report(line)),
        }
    }
}

const HEAD: [&str; 4] = ["NAME", "SCOPES", "ANSWERS", "CALLER"];

/// The caller is named where it differs from the token: such a token predates the refusal of built-in caller names.
fn row(token: &Value) -> [String; 4] {
    let text = |value: &Value| table::cell(value.as_str().unwrap_or_default());
    let scopes = token["scopes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let scopes: Vec<_> = scopes.iter().map(text).collect();
    let name = text(&token["name"]);
    let caller = Some(text(&token["caller"])).filter(|caller| *caller != name);
    [name, scopes.join(","), text(&token["answers"]), caller.unwrap_or_default()]
}

/// The line for people.
fn line(verb: &TokenVerb, told: &Value) -> Option<String> {
    let text = |value: &Value| print::tamed(value.as_str().unwrap_or_default());
    match verb {
        TokenVerb::Add { .. } => Some(text(&told["secret"])),
        TokenVerb::List | TokenVerb::Set { .. } => {
            table::rendered(&HEAD, &[row(told)], false).pop()
        }
        TokenVerb::Remove { .. } => None,
    }
}

async fn over_http(client: &AirlockClient, verb: &TokenVerb) -> Result<Vec<Value>, Error> {
    Ok(match verb {
        TokenVerb::Add { name, scopes, answers, take_over } => {
            let scopes: Vec<_> = scopes.given().map(|scope| scope.name()).collect();
            let (name, answers) = (name.as_str(), *answers);
            vec![match take_over {
                true => client.take_over_token(name, &scopes, answers).await?,
                false => client.add_token(name, &scopes, answers).await?,
            }]
        }
        TokenVerb::List => client.tokens().await?,
        TokenVerb::Set { name, answers } => vec![client.set_token(name.as_str(), *answers).await?],
        TokenVerb::Remove { name } => {
            client.remove_token(name.as_str()).await?;
            vec![json!({ "removed": true })]
        }
    })
}

/// Works on the data directory itself, while no server owns it.
fn perform_on_directory(verb: &TokenVerb, data_dir: &Path) -> anyhow::Result<Vec<Value>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(on_store(verb, data_dir))
}

async fn on_store(verb: &TokenVerb, data_dir: &Path) -> anyhow::Result<Vec<Value>> {
    let store = SqliteStore::open(data_dir)
        .with_context(|| format!("could not open {}", data_dir.display()))?;
    let done = match verb {
        TokenVerb::Add { name, scopes, answers, take_over } => {
            match check_name(&store, name, *take_over).await {
                Ok(()) => add(&store, name, *scopes, *answers).await,
                Err(error) => Err(error.into()),
            }
        }
        TokenVerb::List => auth::list_tokens(&store)
            .await
            .map_err(Into::into)
            .map(|tokens| tokens.iter().map(format_token).collect()),
        TokenVerb::Set { name, answers } => auth::set_answers(&store, name, *answers)
            .await
            .map(|token| vec![format_token(&token)])
            .map_err(Into::into),
        TokenVerb::Remove { name } => {
            let removed = auth::remove(&store, name).await.map_err(Into::into);
            removed.map(|()| vec![json!({ "removed": true })])
        }
    };
    store.close().await;
    done
}

async fn check_name(
    store: &SqliteStore,
    name: &TokenName,
    take_over: bool,
) -> Result<(), TokenError> {
    auth::check_name(store, name).await?;
    if !take_over && !store.list_executions(name.retained()).await?.is_empty() {
        return Err(TokenError::Retained(name.clone()));
    }
    Ok(())
}

async fn add(
    store: &SqliteStore,
    name: &TokenName,
    scopes: TokenScopes,
    answers: AnswerRole,
) -> anyhow::Result<Vec<Value>> {
    let secret = MintedSecret::new()?;
    let now = engine::Clock::system().now();
    let token = auth::add(store, name, (scopes, answers), &secret, now).await?;
    let mut told = format_token(&token);
    told["secret"] = secret.as_text().into();
    Ok(vec![told])
}

fn format_token(token: &TokenInfo) -> Value {
    let scopes: Vec<_> = token.scopes.given().map(|scope| scope.name()).collect();
    json!({
        "name": token.name.as_str(),
        "caller": token.name.caller(),
        "scopes": scopes,
        "answers": token.answers,
    })
}

fn name(text: &str) -> Result<TokenName, String> {
    TokenName::parse(text).map_err(|error| error.to_string())
}

fn scopes(text: &str) -> Result<TokenScopes, String> {
    TokenScopes::parse(text.split(',')).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_minted_listed_and_removed_without_a_server() {
        let dir = tempfile::tempdir().unwrap();
        let name = TokenName::parse("agent").unwrap();
        let scopes = TokenScopes::parse(["run", "answer"]).unwrap();
        let lines = |verb: &TokenVerb| {
            let told = perform_on_directory(verb, dir.path()).unwrap();
            told.iter().filter_map(|told| line(verb, told)).collect::<Vec<_>>()
        };
        let answers = AnswerRole::Client;
        let minted =
            lines(&TokenVerb::Add { name: name.clone(), scopes, answers, take_over: false });
        assert!(minted[0].starts_with("alk_"), "{minted:?}");
        assert_eq!(lines(&TokenVerb::List), ["agent\trun,answer\tclient"]);
        let set = TokenVerb::Set { name: name.clone(), answers: AnswerRole::Model };
        assert_eq!(lines(&set), ["agent\trun,answer\tmodel"]);
        assert_eq!(lines(&TokenVerb::Remove { name: name.clone() }), [""; 0]);
        assert_eq!(lines(&TokenVerb::List), [""; 0]);
        let gone = perform_on_directory(&TokenVerb::Remove { name }, dir.path()).unwrap_err();
        assert_eq!(gone.to_string(), "there is no token agent");
    }
}
