//! `airlock repl`: a prompt at a session that retains its definitions, here or at any HotRepl server.

mod dot_commands;
mod instance;
mod local;
mod prompt;
mod scan;

use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, data_directory, print};
use anyhow::Context as _;
use client::ServerToken;
use client::repl::{ReplClient, ReplError};
use dot_commands::DotCommands;
pub(crate) use dot_commands::journal_row;
pub(crate) use instance::InstanceFile;
use prompt::{PromptLine, ReplPrompt};
use std::path::{Path, PathBuf};
use store::sqlite::owner_of;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Evaluates what you type, in a session that retains its definitions.
///
/// Without --url: at the server that owns the data directory, or in a separate jail that is removed when you leave. With
/// it: at any server that speaks HotRepl. `.help` lists the other commands.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: ReplLocation,
    /// Offers the demonstration tools, in a separate jail.
    #[arg(long)]
    demo: bool,
}

impl CommandVerb for Args {
    const NAME: &'static str = "repl";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Protocols, 4);

    fn run(self) -> VerbExit {
        repl(&self)
    }
}

/// The location of a session.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplLocation {
    /// A HotRepl server, such as ws://127.0.0.1:18590.
    #[arg(long, value_name = "ws://…", env = "HOTREPL_URL")]
    url: Option<String>,
    /// Connects to the one HotRepl server that runs on this machine; takes precedence over HOTREPL_URL.
    #[arg(long)]
    discover: bool,
    /// The token for it; without this, the one in the data directory, for a server on this machine.
    #[arg(long, value_name = "TOKEN", env = "AIRLOCK_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The session's name; another client of the same session is disconnected.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// The data directory [default: ~/.airlock].
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

impl ReplLocation {
    /// The server that is named or found, or that owns the data directory; and the token for it.
    pub(crate) fn remote(&self) -> anyhow::Result<Option<(String, Option<ServerToken>)>> {
        // Any HotRepl server can be named; other implementations have no route for challenges.
        let given = || self.token.as_deref().map(ServerToken::unasked);
        if self.discover {
            return Ok(Some((discovered()?, given())));
        }
        if let Some(url) = &self.url {
            return Ok(Some((url.clone(), given())));
        }
        Ok(self.data_dir().and_then(|dir| self.owner(&dir)))
    }

    fn owner(&self, dir: &Path) -> Option<(String, Option<ServerToken>)> {
        let note = owner_of(dir).filter(|note| note.starts_with("http://"))?;
        let found = || std::fs::read_to_string(server::auth::secret_file(dir, "admin")).ok();
        let given = self.token.as_deref().map(ServerToken::given);
        let token = given.or_else(|| found().as_deref().map(ServerToken::found));
        Some((format!("{}/repl", note.replacen("http", "ws", 1)), token))
    }

    /// A server's address with the selected session.
    pub(crate) fn address(&self, url: &str) -> String {
        let url = rooted(url);
        let Some(name) = &self.session else { return url };
        let separator = if url.contains('?') { '&' } else { '?' };
        let name: String = form(name);
        format!("{url}{separator}session={name}")
    }

    fn data_dir(&self) -> Option<PathBuf> {
        self.data_dir.clone().or_else(data_directory::usual)
    }
}

/// The one server that advertises itself here. Never one of several: taking over a session disconnects its client.
fn discovered() -> anyhow::Result<String> {
    let mut living = instance::living();
    match living.len() {
        0 => anyhow::bail!("no HotRepl server is running on this machine"),
        1 => Ok(living.remove(0)),
        _ => anyhow::bail!("several servers run; name one with --url: {}", living.join(", ")),
    }
}

/// An address with a path: without one, a query would be sent in its place.
fn rooted(url: &str) -> String {
    let authority = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[authority..].find(['/', '?', '#']).map_or(url.len(), |at| authority + at);
    let (server, rest) = url.split_at(end);
    if rest.starts_with('/') { url.to_owned() } else { format!("{server}/{rest}") }
}

/// A text, encoded as a value of a query.
fn form(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escaped =
        |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escaped).collect()
}

/// Prompts until the user leaves.
pub(crate) fn repl(args: &Args) -> VerbExit {
    print::start_tracing();
    match run(args) {
        Ok(exit) => exit,
        Err(error) => {
            print::error(&format!("{error:#}"));
            VerbExit::Failed
        }
    }
}

fn run(args: &Args) -> anyhow::Result<VerbExit> {
    let runtime = crate::runtime::threads()?;
    // From here on Ctrl-C cancels the evaluation, and not this process.
    let _interrupts = runtime.block_on(async { signal(SignalKind::interrupt()) })?;
    let (url, token, local) = match args.place.remote()? {
        Some((url, token)) => (url, token, None),
        None => {
            let local = runtime.block_on(local::LocalReplServer::start(args.demo));
            let local = local.context("could not start a jail")?;
            (local.url(), Some(ServerToken::unasked(local.secret())), Some(local))
        }
    };
    let address = args.place.address(&url);
    let client = runtime.block_on(ReplClient::connect_with(&address, token.as_ref()))?;
    let history = args.place.data_dir().map(|dir| dir.join("repl-history"));
    let mut prompt = ReplPrompt::new(&client, runtime.handle(), history)?;
    let host = &client.handshake().host;
    let evaluator = &client.handshake().evaluator.name;
    print::report(&format!(
        "{} {} ({evaluator}). .help lists the commands.",
        host.name, host.version
    ));
    let exit = converse(&runtime, &client, &mut prompt);
    prompt.save();
    if let Some(local) = local {
        runtime.block_on(local.shutdown());
    }
    runtime.shutdown_background();
    exit
}

fn converse(
    runtime: &Runtime,
    client: &ReplClient,
    prompt: &mut ReplPrompt,
) -> anyhow::Result<VerbExit> {
    let mut dots = DotCommands::default();
    loop {
        let (text, is_last) = match prompt.read()? {
            PromptLine::Text(text) if text.trim().is_empty() => continue,
            PromptLine::Text(text) => (text, false),
            PromptLine::Last(text) => (text, true),
            PromptLine::Interrupted => continue,
            PromptLine::Over => return Ok(VerbExit::Good),
        };
        prompt.remember(&text);
        if matches!(text.trim(), "..exit" | ".exit") {
            return Ok(VerbExit::Good);
        }
        let done = match dot_commands::behind_dot(&text) {
            Some(dotted) => runtime.block_on(dots.run(client, dotted)),
            None => runtime.block_on(evaluate(client, &text)),
        };
        match done {
            Ok(()) if is_last => return Ok(VerbExit::Good),
            Ok(()) => dots.remember_text(&text),
            Err(error @ (ReplError::Evicted | ReplError::Closed)) => {
                print::error(&error.to_string());
                return Ok(VerbExit::Failed);
            }
            Err(error) => {
                print::complaint(&report_error(&error));
                if is_last {
                    return Ok(VerbExit::Failed);
                }
            }
        }
    }
}

/// Evaluates one text; Ctrl-C cancels the evaluation and not this process.
async fn evaluate(client: &ReplClient, code: &str) -> Result<(), ReplError> {
    let mut interrupts = signal(SignalKind::interrupt()).map_err(|_| ReplError::Closed)?;
    let id = client.fresh("eval");
    let mut result = Box::pin(client.eval_as(&id, code, None));
    let result = loop {
        tokio::select! {
            result = &mut result => break result?,
            Some(()) = interrupts.recv() => client.cancel(&id).await?,
        }
    };
    if let Some(stdout) = &result.stdout {
        print::printed(stdout.trim_end_matches('\n'));
    }
    if let Some(value) = &result.value {
        print::print_evaluated(value.as_text());
    }
    Ok(())
}

fn report_error(error: &ReplError) -> String {
    let ReplError::Failed(failed) = error else { return error.to_string() };
    let details = failed.details.as_ref();
    let text = |name: &str| details.and_then(|it| it.get(name)).and_then(|it| it.as_str());
    let mut told = String::new();
    if let Some(stdout) = text("stdout") {
        told.push_str(stdout);
    }
    told.push_str(&failed.message);
    if let Some(stack) = text("stack") {
        told.push('\n');
        told.push_str(stack);
    }
    let is_lost = details.and_then(|it| it.get("stateLost")).and_then(|it| it.as_bool());
    if is_lost == Some(true) {
        told.push_str("\nThe session was replaced, and its definitions are lost.");
    }
    told
}

#[cfg(test)]
mod tests {
    use super::{report_error, rooted};
    use client::repl::ReplError;
    use serde_json::json;

    #[test]
    fn an_error_says_when_definitions_are_lost() {
        let failed = |details: serde_json::Value| {
            let error = json!({"kind": "internal", "code": "evalFailed", "message": "no", "retryable": false, "details": details});
            report_error(&ReplError::Failed(Box::new(serde_json::from_value(error).unwrap())))
        };
        assert_eq!(failed(json!({"stack": "at 1:1"})), "no\nat 1:1");
        let lost = "no\nThe session was replaced, and its definitions are lost.";
        assert_eq!(failed(json!({"stateLost": true})), lost);
    }

    #[test]
    fn an_address_has_a_path_before_its_query() {
        for (given, told) in [
            ("ws://127.0.0.1:1", "ws://127.0.0.1:1/"),
            ("ws://127.0.0.1:1?values=native", "ws://127.0.0.1:1/?values=native"),
            ("ws://127.0.0.1:1?a=/b", "ws://127.0.0.1:1/?a=/b"),
            ("ws://[::1]:1/", "ws://[::1]:1/"),
            ("ws://h/repl?session=a", "ws://h/repl?session=a"),
        ] {
            assert_eq!(rooted(given), told);
        }
    }
}
