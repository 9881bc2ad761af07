//! `airlock repl-server`: a server with the REPL only, for clients that know an address and no path.

use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, listen_address, print, serve};
use server::DoorSelection;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The default port of HotRepl's clients.
const PORT: u16 = 18_590;

/// Serves a persistent JavaScript REPL to HotRepl's clients, until SIGTERM or Ctrl-C.
///
/// Definitions persist between connections; the journal is stored in the data directory. A client that cannot send headers
/// puts its token into the address: ws://127.0.0.1:18590/?token=…
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen; port 0 takes any that is free [default: ws://127.0.0.1:18590, or the port in HOTREPL_PORT].
    #[arg(long, value_name = "ws://IP:PORT|PORT", value_parser = address)]
    listen: Option<SocketAddr>,
    /// The data directory.
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Offers the demonstration tools, as commands too, and demo.artifact.
    #[arg(long)]
    demo: bool,
    /// A configuration file, instead of airlock.toml here or above and the user's own.
    #[arg(long, value_name = "FILE", env = "AIRLOCK_CONFIG")]
    config: Option<PathBuf>,
    /// Requires no token: anyone who can reach the port may evaluate. On loopback only.
    #[arg(long)]
    no_auth: bool,
    #[command(flatten)]
    repl: serve::ReplArgs,
}

impl CommandVerb for Args {
    const NAME: &'static str = "repl-server";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Protocols, 5);

    fn run(self) -> VerbExit {
        repl_server(self)
    }
}

/// Serves until the end, and returns the exit.
pub(crate) fn repl_server(args: Args) -> VerbExit {
    let Args { listen, data_dir, demo, config, no_auth, repl } = args;
    let listen = listen.unwrap_or_else(|| usual(std::env::var("HOTREPL_PORT").ok().as_deref()));
    if no_auth && !listen.ip().is_loopback() {
        print::error(&format!("--no-auth works on loopback only, and {} is not", listen.ip()));
        return VerbExit::Usage;
    }
    serve::serve(serve::Args {
        listen: Some(listen),
        data_dir,
        demo,
        config,
        no_auth,
        repl,
        doors: DoorSelection::Repl,
        ..serve::Args::usual()
    })
}

/// The address on this machine with the given port; as in HotRepl's own servers, an invalid port is ignored.
fn usual(port: Option<&str>) -> SocketAddr {
    let said = port.and_then(|port| port.trim().parse().ok()).filter(|port| *port > 0);
    SocketAddr::from(([127, 0, 0, 1], said.unwrap_or(PORT)))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    listen_address::parse(text.strip_prefix("ws://").unwrap_or(text).trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_given_with_and_without_its_scheme() {
        for text in ["ws://127.0.0.1:18590", "ws://localhost:18590/", "18590"] {
            assert_eq!(address(text), Ok(SocketAddr::from(([127, 0, 0, 1], PORT))), "{text}");
        }
        assert!(address("http://127.0.0.1:1").is_err());
    }

    #[test]
    fn a_port_is_taken_from_the_environment_unless_it_is_none() {
        for (said, port) in [
            (None, PORT),
            (Some("18591"), 18_591),
            (Some(" 7 "), 7),
            (Some("0"), PORT),
            (Some("70000"), PORT),
            (Some("x"), PORT),
        ] {
            assert_eq!(usual(said), SocketAddr::from(([127, 0, 0, 1], port)));
        }
    }
}
