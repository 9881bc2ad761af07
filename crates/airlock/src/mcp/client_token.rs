//! One token per client. It is minted when the client is configured; its secret is in a file of the data directory that
//! only this account can read, and `airlock mcp --as NAME` reads it there.

use crate::server_locator::{ServerArgs, ServerChoice, named_server};
use crate::{VerbExit, print};
use anyhow::Context as _;
use client::{AirlockClient, Error};
use lifecycle::AnswerRole;
use server::auth::{self, MintedSecret, Scope, TokenName, TokenScopes};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use store::sqlite::SqliteStore;

/// Names tried for one client. Taken names are left over from installations whose secrets were deleted.
const NAMES_MAX: usize = 9;

/// The step that gives the client a token with this answer role.
#[derive(Debug, PartialEq, Eq)]
enum TokenStep {
    /// The client has such a token.
    Use(String),
    /// The client has a token with another role.
    Change(String),
    /// The client has none; the names that are free.
    Mint(Vec<String>),
}

/// Ensures that the client has a token of its own with this role; returns its name. `None` where the server in use is on
/// another machine, whose token is in its profile.
pub(super) fn ensure(
    data_dir: &Path,
    client: &str,
    answers: AnswerRole,
) -> Result<Option<String>, String> {
    let server = named_server(None, Some(data_dir)).map_err(|error| error.to_string())?;
    if matches!(server, ServerChoice::At { .. }) {
        return Ok(None);
    }
    let reach = ServerArgs::for_server(None, None, Some(data_dir));
    if reach.unowned().is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let ensured = runtime.block_on(on_store(data_dir, client, answers));
        return ensured.map(Some).map_err(|error| format!("{error:#}"));
    }
    let mut ensured = None;
    let exit = reach.visit(async |server| {
        ensured = Some(over_http(&server, data_dir, client, answers).await?);
        Ok(VerbExit::Good)
    });
    match (ensured, exit) {
        (Some(name), _) => Ok(Some(name)),
        // The error was printed.
        (None, _) => Err("the client got no token, so nothing was changed".into()),
    }
}

/// Whether [`ensure`] gives tokens of this name to the client.
pub(super) fn is_of_client(name: &str, client: &str) -> bool {
    (1..=NAMES_MAX).any(|n| name == numbered(client, n))
}

fn numbered(client: &str, n: usize) -> String {
    if n == 1 { client.to_owned() } else { format!("{client}-{n}") }
}

/// Removes a client's token and the file with its secret. Returns false if the data directory has no such token.
pub(super) fn remove(data_dir: &Path, name: &str) -> Result<bool, String> {
    if !has_secret(data_dir, name) {
        return Ok(false);
    }
    let reach = ServerArgs::for_server(None, None, Some(data_dir));
    if reach.unowned().is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let removed = runtime.block_on(remove_on_store(data_dir, name));
        removed.map_err(|error| format!("{error:#}"))?;
    } else {
        let mut is_removed = false;
        reach.visit(async |server| {
            let is_known = server.tokens().await?.iter().any(|token| token["name"] == name);
            if is_known {
                server.remove_token(name).await?;
            }
            is_removed = true;
            Ok(VerbExit::Good)
        });
        if !is_removed {
            // The error was printed.
            return Err("the server did not remove it".into());
        }
    }
    let file = auth::secret_file(data_dir, name);
    std::fs::remove_file(file).map(|()| true).map_err(|error| error.to_string())
}

async fn remove_on_store(data_dir: &Path, name: &str) -> anyhow::Result<()> {
    let store = SqliteStore::open(data_dir)
        .with_context(|| format!("could not open {}", data_dir.display()))?;
    let removed = async {
        let is_known =
            auth::list_tokens(&store).await?.iter().any(|token| token.name.as_str() == name);
        if is_known {
            auth::remove(&store, &TokenName::parse(name)?).await?;
        }
        Ok(())
    };
    let removed = removed.await;
    store.close().await;
    removed
}

/// Works on the data directory itself, while no server owns it.
async fn on_store(data_dir: &Path, client: &str, answers: AnswerRole) -> anyhow::Result<String> {
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir)?;
    let store = SqliteStore::open(data_dir)
        .with_context(|| format!("could not open {}", data_dir.display()))?;
    let ensured = ensured_on(&store, data_dir, client, answers).await;
    store.close().await;
    ensured
}

async fn ensured_on(
    store: &SqliteStore,
    data_dir: &Path,
    client: &str,
    answers: AnswerRole,
) -> anyhow::Result<String> {
    let now = engine::Clock::system().now();
    // If a client's token were the first one, the operator's would never be minted.
    auth::first_tokens(store, data_dir, now).await?;
    let tokens = auth::list_tokens(store).await?;
    let known: Vec<_> =
        tokens.iter().map(|token| (token.name.as_str().to_owned(), token.answers)).collect();
    match step(&known, |name| has_secret(data_dir, name), client, answers) {
        TokenStep::Use(name) => Ok(name),
        TokenStep::Change(name) => {
            auth::set_answers(store, &TokenName::parse(&name)?, answers).await?;
            Ok(name)
        }
        TokenStep::Mint(names) => {
            let scopes = TokenScopes::from([Scope::Run].as_slice());
            let mut refused = None;
            for name in names {
                let secret = MintedSecret::new()?;
                let parsed = TokenName::parse(&name)?;
                match auth::add(store, &parsed, (scopes, answers), &secret, now).await {
                    Ok(_) => {
                        auth::write_secret(data_dir, &name, secret.as_text())?;
                        return Ok(name);
                    }
                    Err(error) => refused = Some(error),
                }
            }
            Err(refused.map_or_else(|| anyhow::anyhow!("no name is free"), Into::into))
        }
    }
}

/// Works through the server that owns the directory.
async fn over_http(
    server: &AirlockClient,
    data_dir: &Path,
    client: &str,
    answers: AnswerRole,
) -> Result<String, Error> {
    let known: Vec<_> = server
        .tokens()
        .await?
        .iter()
        .map(|token| {
            let name = token["name"].as_str().unwrap_or_default().to_owned();
            (name, token["answers"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default())
        })
        .collect();
    match step(&known, |name| has_secret(data_dir, name), client, answers) {
        TokenStep::Use(name) => Ok(name),
        TokenStep::Change(name) => server.set_token(&name, answers).await.map(|_| name),
        TokenStep::Mint(names) => {
            let mut refused = Error::Unusable("no name is free".into());
            for name in names {
                match server.add_token(&name, &[Scope::Run.name()], answers).await {
                    Ok(minted) => {
                        let secret = minted["secret"].as_str().unwrap_or_default();
                        let written = auth::write_secret(data_dir, &name, secret);
                        return written.map(|()| name).map_err(|error| {
                            Error::Unusable(format!("could not write the token: {error}"))
                        });
                    }
                    Err(error) => refused = error,
                }
            }
            Err(refused)
        }
    }
}

fn has_secret(data_dir: &Path, name: &str) -> bool {
    auth::secret_file(data_dir, name).is_file()
}

/// The step for the tokens that exist. A token whose secret is not in the data directory cannot be used.
fn step(
    known: &[(String, AnswerRole)],
    has_secret: impl Fn(&str) -> bool,
    client: &str,
    answers: AnswerRole,
) -> TokenStep {
    let mut free = vec![];
    for n in 1..=NAMES_MAX {
        let name = numbered(client, n);
        match known.iter().find(|(known, _)| *known == name) {
            Some((_, value)) if has_secret(&name) => {
                return if *value == answers {
                    TokenStep::Use(name)
                } else {
                    TokenStep::Change(name)
                };
            }
            Some(_) => {}
            None => free.push(name),
        }
    }
    TokenStep::Mint(free)
}

/// Asks the person at the terminal for the answer role; `person` without a terminal.
pub(super) fn asked(client: &str) -> AnswerRole {
    const TRIES_MAX: usize = 3;
    if !print::is_somebody_there() {
        return AnswerRole::Person;
    }
    print::prompt(&format!(
        "Who may answer when a program that {client} runs needs approval?\n\
         \x20 person  only you, on Airlock's page or with `airlock resume`\n\
         \x20 client  also the dialog of {client}; Airlock cannot see whether you or the client pressed its button\n\
         \x20 model   also the agent itself, without you\n"
    ));
    for _ in 0..TRIES_MAX {
        print::prompt("person, client or model [person]: ");
        let mut line = String::new();
        match std::io::stdin().read_line(&mut line) {
            Ok(n_bytes) if n_bytes > 0 => {}
            Ok(_) | Err(_) => break,
        }
        match line.trim() {
            "" => break,
            text => {
                if let Ok(role) = text.parse() {
                    return role;
                }
            }
        }
    }
    AnswerRole::Person
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_keeps_its_token_and_never_gets_one_whose_secret_is_elsewhere() {
        use AnswerRole::{Model, Person};
        let known = |names: &[(&str, AnswerRole)]| -> Vec<(String, AnswerRole)> {
            names.iter().map(|(name, role)| ((*name).to_owned(), *role)).collect()
        };
        let none = known(&[("run", Person)]);
        let TokenStep::Mint(free) = step(&none, |_| true, "codex", Person) else { panic!() };
        assert_eq!((free.len(), free[0].as_str(), free[1].as_str()), (9, "codex", "codex-2"));
        let one = known(&[("codex", Person)]);
        assert_eq!(step(&one, |_| true, "codex", Person), TokenStep::Use("codex".into()));
        assert_eq!(step(&one, |_| true, "codex", Model), TokenStep::Change("codex".into()));
        let TokenStep::Mint(free) = step(&one, |_| false, "codex", Person) else { panic!() };
        assert_eq!(free[0], "codex-2");
        let two = known(&[("codex", Person), ("codex-2", Person)]);
        let second = |name: &str| name == "codex-2";
        assert_eq!(step(&two, second, "codex", Person), TokenStep::Use("codex-2".into()));
    }
}
