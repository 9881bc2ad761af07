//! `airlock exec`: shows a terminal of another machine in this one. Keys are sent as they are typed, and output is shown
//! here; a named terminal can be detached and attached again.

mod exec_visit;
mod raw;

use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, data_directory, print, table};
use anyhow::{Context as _, bail};
use client::ServerToken;
use client::exec_server::{ExecServerClient, RemoteExecServerConnectArgs};
use exec_visit::ExecVisit;
use raw::is_terminal;
use std::path::PathBuf;
use store::sqlite::owner_of;

/// Runs a command at an exec-server, with this terminal as its own.
///
/// Keys are sent as they are typed, Ctrl-C and Ctrl-Z too; the exit code is the command's. With --name the terminal remains
/// when you leave it with Ctrl-], and the same name without a command attaches to it again. Without a terminal here, the
/// command gets pipes. A command without a name ends with this one: a signal that ends this one is forwarded to it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An exec-server, such as ws://127.0.0.1:9000; without this, the server that owns the data directory, if it was started
    /// with --exec.
    #[arg(long, value_name = "ws://…", env = "AIRLOCK_EXEC_URL")]
    url: Option<String>,
    /// The token for it; without this, the one in the data directory, for a server on this machine.
    #[arg(long, value_name = "TOKEN", env = "AIRLOCK_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The data directory [default: ~/.airlock].
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// The name of the terminal, so that it can be detached and attached again.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only shows the terminal: no keys are sent.
    #[arg(long, requires = "name", conflicts_with = "command")]
    read_only: bool,
    /// Lists terminals with a name.
    #[arg(long, conflicts_with_all = ["name", "command"])]
    list: bool,
    /// With --list: one line of JSON each.
    #[arg(long, requires = "list")]
    json: bool,
    /// Where the command starts [default: here, if the server is on this machine].
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// The command.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl CommandVerb for Args {
    const NAME: &'static str = "exec";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Protocols, 2);

    fn run(self) -> VerbExit {
        exec(self)
    }
}

/// Runs the command; the exit code is that of the command.
pub(crate) fn exec(args: Args) -> VerbExit {
    print::start_tracing();
    let runtime = match crate::runtime::one_thread() {
        Ok(runtime) => runtime,
        Err(error) => return report_error(&error),
    };
    let program = args.command.first().cloned();
    let has_cwd = args.cwd.is_some();
    let ended = runtime.block_on(visit(args));
    // A thread that blocks in a read of the terminal must not delay the exit.
    runtime.shutdown_background();
    ended.unwrap_or_else(|error| match program.filter(|_| is_not_found(&error)) {
        Some(program) => {
            let or = if has_cwd { ", or there is no such directory to start in" } else { "" };
            print::error(&print::tamed(&format!("{program}: command not found{or}")));
            VerbExit::Code(NOT_FOUND)
        }
        None => report_error(&error),
    })
}

/// The exit code of shells for a command that does not exist.
const NOT_FOUND: u8 = 127;

/// Whether the exec-server reports that the command does not exist, in the words of its system.
fn is_not_found(error: &anyhow::Error) -> bool {
    let text = format!("{error:#}");
    text.starts_with("start the command") && text.contains("No such file or directory")
}

fn report_error(error: &anyhow::Error) -> VerbExit {
    print::error(&print::tamed(&format!("could not {error:#}")));
    VerbExit::Failed
}

async fn visit(args: Args) -> anyhow::Result<VerbExit> {
    if args.command.is_empty() && args.name.is_none() && !args.list {
        print::error("give a command after --, or the name of a terminal with --name");
        return Ok(VerbExit::Usage);
    }
    if !args.command.is_empty() && args.name.is_some() && !is_terminal() {
        print::error(
            "--name is for a terminal, and there is none here; without it the command gets pipes",
        );
        return Ok(VerbExit::Usage);
    }
    let (url, token) = args.address()?;
    let connect = RemoteExecServerConnectArgs::new(&url, "airlock exec");
    let client = ExecServerClient::connect_websocket_with(connect, token).await;
    let client =
        client.context("reach the exec-server (airlock serve --exec opens one at /exec)")?;
    if args.list {
        return list_terminals(&client, args.json).await;
    }
    let events = client.events();
    let visit = ExecVisit { client, id: "terminal".into(), can_leave: args.name.is_some() };
    match (args.command.is_empty(), is_terminal()) {
        (true, false) => bail!("attach to a terminal without a terminal here"),
        (true, true) => visit.come_back(&args, events).await,
        (false, true) => visit.start_terminal(&args, events).await,
        (false, false) => visit.pipe(&args, events).await,
    }
}

async fn list_terminals(client: &ExecServerClient, is_json: bool) -> anyhow::Result<VerbExit> {
    let terminals = client.terminals().await?.terminals;
    if is_json {
        terminals.iter().for_each(print::json);
        return Ok(VerbExit::Good);
    }
    let rows: Vec<_> = terminals
        .iter()
        .map(|terminal| {
            let state = match terminal.exit_code {
                Some(code) => format!("ended with {code}"),
                None => format!("{} looking", terminal.viewers),
            };
            [table::cell(&terminal.name), terminal.pid.to_string(), state]
        })
        .collect();
    table::print(&["NAME", "PID", "STATE"], &rows, "No terminal has a name.");
    Ok(VerbExit::Good)
}

impl Args {
    /// The URL of the server, with the token for it.
    fn address(&self) -> anyhow::Result<(String, Option<ServerToken>)> {
        let given = self.token.as_deref().map(str::trim).filter(|token| !token.is_empty());
        if let Some(url) = &self.url {
            // Any exec-server can listen there; most have no route for challenges.
            let has_token = url.contains("token=");
            return Ok((url.clone(), given.filter(|_| !has_token).map(ServerToken::unasked)));
        }
        let dir = self.data_dir.clone().or_else(data_directory::usual);
        let dir = dir.as_ref().context("find the data directory: HOME is not set")?;
        let note = owner_of(dir).filter(|note| note.starts_with("http://"));
        let note = note.context("find a server: none runs here, and --url is not given")?;
        let found = std::fs::read_to_string(server::auth::secret_file(dir, "admin")).ok();
        let found = found.as_deref().map(ServerToken::found);
        let url = format!("{}/exec", note.replacen("http", "ws", 1));
        Ok((url, given.map(ServerToken::given).or(found)))
    }
}
