//! `airlock exec-server`: processes for agents, over stdio or a separate WebSocket.

use crate::config_files::vault_key;
use crate::process_host::retention;
use crate::protected::protected_paths;
use crate::runtime::{finish, keep_memory, one_thread};
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, data_directory, print};
use ::exec_server::{Config, DialectChoice, ExecServerDialect, PlainSandbox, SandboxConfines};
use processes::{ProtectedPaths, ProtectionScope};
use server::exec_server::{ExecServerTransport, Options, WebSocketAccess, run_with};
use sources::config::RETENTION_SECONDS_MAX;
use std::path::PathBuf;

/// Spawns and controls processes for a client, over pipes or terminals.
///
/// Speaks the exec-server protocol of Codex, one JSON message per line of stdin and stdout, or per message of a
/// WebSocket. A process and its descendants end with it, with its session, or with this server, however that ends.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen: stdio://, or ws://IP:PORT, where port 0 takes any that is free.
    ///
    /// A WebSocket needs a token: AIRLOCK_TOKEN if it is set, else a new one, printed as part of the URL.
    #[arg(long, value_name = "ADDRESS", default_value = "stdio://")]
    listen: ExecServerTransport,
    /// Requires no token. On loopback only.
    #[arg(long)]
    no_auth: bool,
    /// The dialect of the clients; auto detects it from their first message.
    #[arg(long, value_name = "DIALECT", default_value = "auto")]
    dialect: DialectArg,
    /// Confines every process, such as {"writable": ["/work"], "network": "none"}.
    ///
    /// Everything else is read-only; "hidden" names what cannot be read. "memoryBytes", "cpuMs" and "processes" limit
    /// what a process and its descendants may use. Requests about files and HTTP are then refused.
    #[arg(long, value_name = "JSON", value_parser = confines)]
    sandbox: Option<SandboxConfines>,
    /// How long the processes of a disconnected client wait for it to reconnect. Codex 0.166 had 30 seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 80, value_parser = retention_seconds())]
    detached_seconds: u64,
    /// How long a process remains known to its client after its end. Codex 0.166 had 30 seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 80, value_parser = retention_seconds())]
    ended_seconds: u64,
    /// Lets processes without a sandbox use the data directory of a server of this account, the key of its vault, and
    /// its configuration files.
    ///
    /// Otherwise these are hidden, where the system allows it. Some programs need this where the account is not root,
    /// because hiding takes a user namespace: sudo, and others that change their user.
    #[arg(long)]
    show_server_files: bool,
}

impl CommandVerb for Args {
    const NAME: &'static str = "exec-server";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Protocols, 3);

    fn run(self) -> VerbExit {
        exec_server(&self)
    }
}

fn retention_seconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(..=RETENTION_SECONDS_MAX)
}

fn confines(text: &str) -> Result<SandboxConfines, String> {
    serde_json::from_str::<PlainSandbox>(text).map(Into::into).map_err(|error| error.to_string())
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum DialectArg {
    Auto,
    Seed,
    Codex,
}

impl From<DialectArg> for DialectChoice {
    fn from(speech: DialectArg) -> Self {
        match speech {
            DialectArg::Auto => Self::Auto,
            DialectArg::Seed => Self::Always(ExecServerDialect::Seed),
            DialectArg::Codex => Self::Always(ExecServerDialect::Codex),
        }
    }
}

/// The paths that no process may use: there may be a server of this account.
fn protected(args: &Args) -> ProtectedPaths {
    let scope = match args.show_server_files {
        true => ProtectionScope::CagedPrograms,
        false => ProtectionScope::EveryProgram,
    };
    let named = std::env::var_os("AIRLOCK_DATA_DIR").map(PathBuf::from);
    let files: Vec<PathBuf> = sources::user_file().into_iter().collect();
    let key = named.clone().or_else(data_directory::usual).map(|at| vault_key(None, &at));
    let protected = protected_paths(named.as_deref(), key.as_deref(), &files, scope);
    // Where this account has no server there is nothing to hide, and programs need no namespace.
    match protected.hidden.iter().any(|path| path.exists()) {
        true => protected,
        false => ProtectedPaths::default(),
    }
}

/// Serves until the end, and returns the exit.
pub(crate) fn exec_server(args: &Args) -> VerbExit {
    if let (true, ExecServerTransport::WebSocket(at)) = (args.no_auth, args.listen) {
        if !at.ip().is_loopback() {
            print::error(&format!("--no-auth works on loopback only, and {} is not", at.ip()));
            return VerbExit::Usage;
        }
        print::print_note(
            "WARNING: --no-auth: every program on this machine may spawn processes here",
        );
    }
    print::start_tracing();
    keep_memory();
    // One thread for any transport: a message never moves between threads, and the programs use the other cores.
    let runtime = one_thread();
    let access = if args.no_auth { WebSocketAccess::Everybody } else { WebSocketAccess::Token };
    let server = Config {
        dialect: args.dialect.into(),
        imposed: args.sandbox.clone(),
        retention: retention(Some(args.detached_seconds), Some(args.ended_seconds)),
        ..Config::default()
    };
    let options = Options { access, server, protected: protected(args) };
    let serving = async { Ok(run_with(args.listen, options).await?) };
    match runtime.and_then(|runtime| finish(runtime, serving)) {
        Ok(()) => VerbExit::Good,
        Err(error) => {
            print::error(&format!("could not {error:#}"));
            VerbExit::Failed
        }
    }
}
