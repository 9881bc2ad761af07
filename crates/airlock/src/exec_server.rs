//! `airlock exec-server`: processes for agents, over stdio or a WebSocket of its own.

use crate::runtime::{finish, keep_memory, one_thread};
use crate::{Exit, print};
use server::exec_server::{
    Access, Choice, Confines, Dialect, ExecServerTransport, Options, PlainSandbox, run_with,
};

/// Spawns and steers processes for a client, over pipes or terminals.
///
/// Speaks the exec-server protocol of Codex, one JSON message per line of stdin and stdout, or per message of a
/// WebSocket. Whatever a process starts ends with it, with its session, or with this server, however that ends.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen: stdio://, or ws://IP:PORT, where port 0 takes any that is free.
    ///
    /// A WebSocket needs a token: AIRLOCK_TOKEN if it is set, else a new one, printed as part of the URL.
    #[arg(long, value_name = "ADDRESS", default_value = "stdio://")]
    listen: ExecServerTransport,
    /// Asks nobody for a token. On loopback only.
    #[arg(long)]
    no_auth: bool,
    /// What clients speak; auto looks at how they say hello.
    #[arg(long, value_name = "DIALECT", default_value = "auto")]
    dialect: Speech,
    /// Keeps every process to this, such as {"writable": ["/work"], "network": "none"}.
    ///
    /// All else can be read only; "hidden" names what cannot be read. "memoryBytes", "cpuMs" and "processes" limit what a
    /// process and all that it starts may use. Requests about files and HTTP are then refused.
    #[arg(long, value_name = "JSON", value_parser = confines)]
    sandbox: Option<Confines>,
}

fn confines(text: &str) -> Result<Confines, String> {
    serde_json::from_str::<PlainSandbox>(text).map(Into::into).map_err(|error| error.to_string())
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Speech {
    Auto,
    Seed,
    Codex,
}

impl From<Speech> for Choice {
    fn from(speech: Speech) -> Self {
        match speech {
            Speech::Auto => Self::Auto,
            Speech::Seed => Self::Always(Dialect::Seed),
            Speech::Codex => Self::Always(Dialect::Codex),
        }
    }
}

/// Serves, and tells how it ended.
pub(crate) fn exec_server(args: &Args) -> Exit {
    if let (true, ExecServerTransport::WebSocket(at)) = (args.no_auth, args.listen) {
        if !at.ip().is_loopback() {
            print::note(&format!("--no-auth works on loopback only, and {} is not", at.ip()));
            return Exit::Usage;
        }
        print::note("WARNING: --no-auth: every program on this machine may spawn processes here");
    }
    print::start_tracing();
    keep_memory();
    // One thread, whoever listens: a message is never handed from one to another, and the programs have the other cores.
    let runtime = one_thread();
    let access = if args.no_auth { Access::Everybody } else { Access::Token };
    let options = Options { choice: args.dialect.into(), access, sandbox: args.sandbox.clone() };
    let serving = async { Ok(run_with(args.listen, options).await?) };
    match runtime.and_then(|runtime| finish(runtime, serving)) {
        Ok(()) => Exit::Good,
        Err(error) => {
            print::note(&format!("could not {error:#}"));
            Exit::Failed
        }
    }
}
