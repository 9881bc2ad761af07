//! `airlock mcp`: forwards MCP on stdio to the server, and configures clients for it.

mod bridge;
mod client_token;
mod clients;
mod config;
mod config_file;
mod install;

use crate::server_locator::{NamedServer, ServerChoice, named_server, stored_secret};
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, autostart, data_directory, print};
use client::AirlockClient;
use server::auth::TokenName;
use std::path::PathBuf;

/// Connects an agent: speaks MCP on stdin and stdout, and forwards it to the server.
///
/// Starts a server where none runs. Its token is the client's own, which `airlock mcp install` mints, or `tokens/run` of
/// the data directory. Neither can administer anything, and by default neither can answer: a person does, on the page
/// that the agent names.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<McpVerb>,
    #[command(flatten)]
    link: McpLinkArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "mcp";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Protocols, 1);

    fn run(self) -> VerbExit {
        mcp(self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum McpVerb {
    Install(install::InstallArgs),
    Uninstall(install::UninstallArgs),
}

/// The server, and the options of the connection.
#[derive(Debug, Clone, clap::Args)]
struct McpLinkArgs {
    /// How questions reach a person: the model asks, a page does, or the client's own form. Default: as the token's
    /// value of answers implies: a page for person, the client's form for client, the model for model.
    #[arg(long, value_name = "MODE", value_enum)]
    elicitation_mode: Option<ElicitationModeArg>,
    /// How long a call waits before it is answered with a handle, in milliseconds.
    #[arg(long, value_name = "MS")]
    wait: Option<u64>,
    /// Lists the catalogue's tools beside `execute`, if they are few.
    #[arg(long)]
    direct_tools: bool,
    /// The server's address, or a name that airlock server gave it; without this, the one in use, or the one
    /// that owns the data directory.
    #[arg(long, value_name = "URL|NAME", env = "AIRLOCK_URL")]
    server: Option<String>,
    /// The client that this runs for: its token is in the file tokens/NAME of the data directory.
    #[arg(long = "as", value_name = "NAME", value_parser = token_name)]
    client_name: Option<TokenName>,
    /// The token for it; without this and without --as, the one in tokens/run of the data directory, for a server on this
    /// machine.
    #[arg(long, value_name = "TOKEN", env = "AIRLOCK_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The data directory [default: ~/.airlock].
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ElicitationModeArg {
    Model,
    Browser,
    Native,
}

/// Forwards messages until stdin ends, or configures a client.
pub(crate) fn mcp(args: Args) -> VerbExit {
    match args.verb {
        Some(McpVerb::Install(args)) => return install::install(&args),
        Some(McpVerb::Uninstall(args)) => return install::uninstall(&args),
        None => {}
    }
    print::start_tracing();
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                print::error(&error.to_string());
                return VerbExit::Fault;
            }
        };
    let ended = runtime.block_on(bridge::run(args.link));
    // A blocking read of stdin cannot be cancelled.
    runtime.shutdown_background();
    match ended {
        Ok(()) => VerbExit::Good,
        Err(why) => {
            print::error(&why);
            VerbExit::Failed
        }
    }
}

impl McpLinkArgs {
    /// The query parameters of the MCP endpoint.
    fn query(&self) -> String {
        let mode = self.elicitation_mode.map(|mode| match mode {
            ElicitationModeArg::Model => "elicitation_mode=model".to_owned(),
            ElicitationModeArg::Browser => "elicitation_mode=browser".to_owned(),
            ElicitationModeArg::Native => "elicitation_mode=native".to_owned(),
        });
        let wait = self.wait.map(|wait| format!("wait={wait}"));
        let tools = self.direct_tools.then(|| "tools=direct".to_owned());
        mode.into_iter().chain(wait).chain(tools).collect::<Vec<_>>().join("&")
    }

    /// Returns a client of the server; starts the server if none runs. Blocks.
    fn reach(&self) -> Result<AirlockClient, String> {
        let data_dir = self.data_dir.clone().or_else(data_directory::usual);
        let said = self.server.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let server = named_server(said, data_dir.as_deref()).map_err(|error| error.to_string())?;
        let named = match (server, &data_dir) {
            (ServerChoice::At(named), _) => named,
            (ServerChoice::Ours, Some(dir)) => {
                let url = autostart::running(dir).map_err(|error| format!("could not {error}"))?;
                NamedServer::at_url(url)
            }
            (ServerChoice::Ours, None) => {
                return Err("the server is unknown: set HOME, or use --data-dir or --server".into());
            }
        };
        let client = AirlockClient::new(&named.url, None).map_err(|error| error.to_string())?;
        // The secret of this machine is sent to this machine only, and never the administrator's.
        let ours = data_dir.filter(|_| client.is_loopback());
        let read = |name: &str| stored_secret(ours.as_ref()?, name);
        let token = match &self.client_name {
            // Another token in its place would give this client rights that are not its own.
            Some(name) if named.token.is_none() => {
                let secret = read(name.as_str()).ok_or_else(|| no_token(name))?;
                named.token_for(None, Some(&secret))
            }
            Some(_) | None => named.token_for(self.token.as_deref(), read("run").as_deref()),
        };
        match token {
            Some(token) => client.with_server_token(token).map_err(|error| error.to_string()),
            None => Ok(client),
        }
    }
}

fn token_name(text: &str) -> Result<TokenName, String> {
    TokenName::parse(text).map_err(|error| error.to_string())
}

fn no_token(name: &TokenName) -> String {
    format!(
        "the data directory has no file tokens/{name}; `airlock mcp install` mints a token for a client"
    )
}
