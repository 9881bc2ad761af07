//! `airlock token`: mints, lists and removes tokens, on the store itself or through the server that owns it.

mod over_http;

use crate::{Exit, data_directory, print};
use anyhow::Context as _;
use over_http::Admin;
use server::auth::{self, Scopes, Secret, TokenName};
use std::path::{Path, PathBuf};
use store::sqlite::{SqliteStore, owner_of};

/// Mints, lists and removes the tokens that clients of the server need.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Where Airlock keeps what must last.
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR", global = true)]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Mints a token and prints its secret, once.
    Add {
        /// Its name: 1 to 64 letters, digits, `_`, `.` or `-`.
        #[arg(value_parser = name)]
        name: TokenName,
        /// What it is good for: run, answer, process, admin; several with commas.
        #[arg(long = "scope", value_name = "SCOPES", value_parser = scopes)]
        scopes: Scopes,
    },
    /// Lists names and scopes.
    List,
    /// Removes a token: its secret opens nothing any more.
    Remove {
        /// Its name.
        #[arg(value_parser = name)]
        name: TokenName,
    },
}

/// Does it, and tells how it went.
pub(crate) fn token(args: &Args) -> Exit {
    let Some(data_dir) = args.data_dir.clone().or_else(data_directory::usual) else {
        print::note("neither HOME nor --data-dir says where tokens are kept");
        return Exit::Usage;
    };
    print::start_tracing();
    match perform(&args.verb, &data_dir) {
        Ok(lines) => {
            lines.iter().for_each(|line| print::report(line));
            Exit::Good
        }
        Err(error) => {
            print::note(&format!("{error:#}"));
            Exit::Failed
        }
    }
}

/// The lines to print.
fn perform(verb: &Verb, data_dir: &Path) -> anyhow::Result<Vec<String>> {
    match owner_of(data_dir) {
        None => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(on_store(verb, data_dir))
        }
        Some(url) if url.starts_with("http://") => {
            let admin = Admin { url, secret: admin_secret(data_dir)? };
            match verb {
                Verb::Add { name, scopes } => admin.add(name, *scopes),
                Verb::List => admin.list(),
                Verb::Remove { name } => admin.remove(name),
            }
        }
        Some(other) => anyhow::bail!("{} is in use by {other}", data_dir.display()),
    }
}

async fn on_store(verb: &Verb, data_dir: &Path) -> anyhow::Result<Vec<String>> {
    let store = SqliteStore::open(data_dir)
        .with_context(|| format!("could not open {}", data_dir.display()))?;
    let done = match verb {
        Verb::Add { name, scopes } => add(&store, name, *scopes).await,
        Verb::List => auth::list(&store).await.map_err(Into::into).map(|tokens| {
            let line = |token: &auth::Token| format!("{} {}", token.name, token.scopes);
            tokens.iter().map(line).collect()
        }),
        Verb::Remove { name } => {
            auth::remove(&store, name).await.map(|()| vec![]).map_err(Into::into)
        }
    };
    store.close().await;
    done
}

async fn add(store: &SqliteStore, name: &TokenName, scopes: Scopes) -> anyhow::Result<Vec<String>> {
    let secret = Secret::new()?;
    let now = engine::Clock::system().now();
    auth::add(store, name, scopes, &secret, now).await?;
    Ok(vec![secret.text().to_owned()])
}

/// The secret that opens the server: from the environment, else what the first start wrote.
fn admin_secret(data_dir: &Path) -> anyhow::Result<String> {
    if let Ok(secret) = std::env::var("AIRLOCK_TOKEN")
        && !secret.is_empty()
    {
        return Ok(secret);
    }
    let path = auth::secret_file(data_dir, "admin");
    let secret = std::fs::read_to_string(&path).with_context(|| {
        format!("set AIRLOCK_TOKEN to an admin token; could not read {}", path.display())
    })?;
    Ok(secret.trim().to_owned())
}

fn name(text: &str) -> Result<TokenName, String> {
    TokenName::parse(text).map_err(|error| error.to_string())
}

fn scopes(text: &str) -> Result<Scopes, String> {
    Scopes::parse(text.split(',')).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_minted_listed_and_removed_without_a_server() {
        let dir = tempfile::tempdir().unwrap();
        let name = TokenName::parse("agent").unwrap();
        let scopes = Scopes::parse(["run", "answer"]).unwrap();
        let minted = perform(&Verb::Add { name: name.clone(), scopes }, dir.path()).unwrap();
        assert!(minted[0].starts_with("alk_"), "{minted:?}");
        assert_eq!(perform(&Verb::List, dir.path()).unwrap(), ["agent run,answer"]);
        perform(&Verb::Remove { name: name.clone() }, dir.path()).unwrap();
        assert_eq!(perform(&Verb::List, dir.path()).unwrap(), [""; 0]);
        let gone = perform(&Verb::Remove { name }, dir.path()).unwrap_err();
        assert_eq!(gone.to_string(), "there is no token agent");
    }
}
