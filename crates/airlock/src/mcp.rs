//! `airlock mcp`: MCP on stdio, passed on to the server; and the configuration of clients for it.

mod bridge;
mod install;
mod merge;

use crate::reach::{Server, named_server};
use crate::{Exit, autostart, data_directory, print};
use client::HttpClient;
use std::path::PathBuf;

/// Lets an agent in: speaks MCP on stdin and stdout, and passes it on to the server.
///
/// Starts a server where none runs. Its token is `tokens/run` of the data directory, which cannot
/// administer anything.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    link: Link,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Install(install::Args),
}

/// Which server, and on what terms.
#[derive(Debug, Clone, clap::Args)]
struct Link {
    /// How questions reach a person: the model asks, a page does, or the client's own form.
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Mode::Model)]
    elicitation_mode: Mode,
    /// How long a call waits before it is answered with a handle, in milliseconds.
    #[arg(long, value_name = "MS")]
    wait: Option<u64>,
    /// Lists the catalogue's tools beside `execute`, if they are few.
    #[arg(long)]
    direct_tools: bool,
    /// Where the server is, or a name that airlock server gave it; without this, the one in use, or the one
    /// that owns the data directory.
    #[arg(long, visible_alias = "server", value_name = "URL|NAME", env = "AIRLOCK_URL")]
    base_url: Option<String>,
    /// What opens it; without this, what tokens/run in the data directory holds.
    #[arg(long, value_name = "TOKEN", env = "AIRLOCK_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Where Airlock keeps what must last [default: ~/.airlock].
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    Model,
    Browser,
    Native,
}

/// Passes messages on until stdin ends, or configures a client.
pub(crate) fn mcp(args: Args) -> Exit {
    if let Some(Verb::Install(args)) = args.verb {
        return install::install(&args);
    }
    print::start_tracing();
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                print::note(&error.to_string());
                return Exit::Fault;
            }
        };
    let ended = runtime.block_on(bridge::run(args.link));
    // A read of stdin cannot be called off.
    runtime.shutdown_background();
    match ended {
        Ok(()) => Exit::Good,
        Err(why) => {
            print::note(&why);
            Exit::Failed
        }
    }
}

impl Link {
    /// What the URL says about how we want to be served.
    fn query(&self) -> String {
        let mode = match self.elicitation_mode {
            Mode::Model => "model",
            Mode::Browser => "browser",
            Mode::Native => "native",
        };
        let mut query = format!("elicitation_mode={mode}");
        if let Some(wait) = self.wait {
            query.push_str(&format!("&wait={wait}"));
        }
        if self.direct_tools {
            query.push_str("&tools=direct");
        }
        query
    }

    /// The server, started if need be. Blocks.
    fn reach(&self) -> Result<HttpClient, String> {
        let data_dir = self.data_dir.clone().or_else(data_directory::usual);
        let named = |text: &Option<String>| {
            text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let said = named(&self.base_url);
        let server = named_server(said.as_deref(), data_dir.as_deref());
        let (url, kept) = match (server.map_err(|error| error.to_string())?, &data_dir) {
            (Server::At { url, token }, _) => (url, token),
            (Server::Ours, Some(dir)) => {
                (autostart::running(dir).map_err(|error| format!("could not {error}"))?, None)
            }
            (Server::Ours, None) => {
                return Err(
                    "neither HOME, --data-dir nor --base-url says where the server is".into()
                );
            }
        };
        let client = HttpClient::new(&url, None).map_err(|error| error.to_string())?;
        // The secret of this machine goes to this machine only, and never the administrator's.
        let ours = data_dir.filter(|_| client.is_loopback());
        let secret = named(&self.token)
            .or(kept)
            .or_else(|| std::fs::read_to_string(server::auth::secret_file(&ours?, "run")).ok());
        match secret {
            Some(secret) => client.with_token(&secret).map_err(|error| error.to_string()),
            None => Ok(client),
        }
    }
}
