//! `airlock server`: named servers, which other verbs can use.

use crate::print::{self, tamed};
use crate::profiles::{ProfileError, ServerProfile, ServerProfiles};
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, data_directory, input, table};
use client::AirlockClient;
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Longest token that is read.
const TOKEN_BYTES_MAX: u64 = 1 << 20;

/// Manages named servers, and selects the one that other verbs use.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: ServersVerb,
    /// One line of JSON each.
    #[arg(long, global = true)]
    json: bool,
    /// The data directory [default: ~/.airlock].
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR", global = true)]
    data_dir: Option<PathBuf>,
}

impl CommandVerb for Args {
    const NAME: &'static str = "server";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::CommandLine, 1);

    fn run(self) -> VerbExit {
        server(&self)
    }
}

#[derive(Debug, clap::Subcommand)]
enum ServersVerb {
    /// Adds a named server, or changes it.
    Add {
        /// 1 to 64 letters, digits, _ and -.
        name: String,
        /// Where it is, such as http://10.0.0.5:4788.
        url: String,
        /// A file with the token that opens it; - reads it from stdin.
        #[arg(long, value_name = "FILE")]
        token_file: Option<String>,
        /// The server's own IP address and port, where the URL is that of a tunnel: see docs/cli.md.
        #[arg(long, value_name = "IP:PORT")]
        address: Option<SocketAddr>,
        /// Also selects it.
        #[arg(long = "use")]
        is_used: bool,
    },
    /// Lists servers: name, address, whether a token is stored, and which one is in use.
    List,
    /// Selects a server; without a name, the server of this machine.
    Use {
        /// Its name.
        name: Option<String>,
    },
    /// Removes a server.
    Remove {
        /// Its name.
        name: String,
    },
}

const HELP: &str = "\
Examples:
  airlock server add build http://10.0.0.5:4788 --token-file build.token --use
  airlock executions list --server build
  airlock server use                            back to the server of this machine

Names and tokens are kept in servers.json in the data directory, readable by nobody else.";

/// Runs the verb, and prints the result.
pub(crate) fn server(args: &Args) -> VerbExit {
    let Some(data_dir) = args.data_dir.clone().or_else(data_directory::usual) else {
        print::error("the data directory is unknown: set HOME, or name it with --data-dir");
        return VerbExit::Usage;
    };
    match change_profiles(args, &data_dir) {
        Ok(()) => VerbExit::Good,
        Err(ProfileError::Wrong(why)) => {
            print::error(&why);
            VerbExit::Failed
        }
        Err(error @ ProfileError::File(..)) => {
            print::error(&format!("could not {error}"));
            VerbExit::Failed
        }
    }
}

fn change_profiles(args: &Args, data_dir: &Path) -> Result<(), ProfileError> {
    let mut profiles = ServerProfiles::load(data_dir)?;
    match &args.verb {
        ServersVerb::Add { name, url, token_file, address, is_used } => {
            let token = token_file.as_deref().map(token).transpose()?;
            // An invalid URL or token is refused now rather than at its first use.
            let made = AirlockClient::new(url, token.as_deref());
            let url = made.map_err(|error| ProfileError::Wrong(error.to_string()))?;
            let url = url.base_url().to_owned();
            let address = address.map(|address| address.to_string());
            profiles.put(ServerProfile { name: name.clone(), url, token, address })?;
            if *is_used {
                profiles.mean(Some(name))?;
            }
            profiles.save(data_dir)
        }
        ServersVerb::List => {
            print_profiles(&profiles, args.json);
            Ok(())
        }
        ServersVerb::Use { name } => {
            profiles.mean(name.as_deref())?;
            profiles.save(data_dir)
        }
        ServersVerb::Remove { name } => {
            profiles.remove(name)?;
            profiles.save(data_dir)
        }
    }
}

fn token(file: &str) -> Result<String, ProfileError> {
    let read = match file {
        "-" => input::read("stdin", io::stdin().lock(), TOKEN_BYTES_MAX),
        path => std::fs::File::open(path)
            .map_err(|error| format!("cannot open {path}: {error}"))
            .and_then(|file| input::read(path, file, TOKEN_BYTES_MAX)),
    };
    read.map(|token| token.trim().to_owned()).map_err(ProfileError::Wrong)
}

fn print_profiles(profiles: &ServerProfiles, is_json: bool) {
    let is_used = |server: &ServerProfile| profiles.used.as_ref() == Some(&server.name);
    if is_json {
        for server in &profiles.servers {
            print::report(
                &json!({ "name": server.name, "url": server.url, "inUse": is_used(server),
                         "hasToken": server.token.is_some() })
                .to_string(),
            );
        }
        return;
    }
    let row = |server: &ServerProfile| {
        let token = if server.token.is_some() { "token" } else { "no token" };
        let used = if is_used(server) { "in use" } else { "" };
        [tamed(&server.name), tamed(&server.url), token.to_owned(), used.to_owned()]
    };
    let rows: Vec<_> = profiles.servers.iter().map(row).collect();
    table::print(&["NAME", "URL", "TOKEN", "IN USE"], &rows, "No server has a name.");
}
