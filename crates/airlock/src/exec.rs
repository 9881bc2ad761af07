//! `airlock exec`: a terminal of another machine in this one. Keys go there as they are typed, and what it shows comes
//! here; it can be left and come back to by its name.

mod raw;

use crate::{Exit, data_directory, print};
use anyhow::{Context as _, bail};
use client::exec_server::{
    AttachParams, EnvPolicy, EnvironmentBase, Events, ExecOutputStream, ExecServerClient,
    ExecServerEvent, RemoteExecServerConnectArgs, TerminalSize, exec_params,
};
use raw::{Input, RawMode, is_terminal, size};
use std::io::Write as _;
use std::path::PathBuf;
use store::sqlite::owner_of;
use tokio::signal::unix::{SignalKind, signal};

/// Runs a command at an exec-server, with this terminal as its own.
///
/// Keys go there as they are typed, Ctrl-C and Ctrl-Z too; the exit code is the command's. With --name the terminal stays
/// when you leave it with Ctrl-], and the same name without a command comes back to it. Without a terminal here, the
/// command gets pipes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// An exec-server, such as ws://127.0.0.1:9000; without this, the server that owns the data directory, if it was started
    /// with --exec.
    #[arg(long, value_name = "ws://…", env = "AIRLOCK_EXEC_URL")]
    url: Option<String>,
    /// What opens it; without this, what the data directory holds, for a server on this machine.
    #[arg(long, value_name = "TOKEN", env = "AIRLOCK_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Where Airlock keeps what must last [default: ~/.airlock].
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// What the terminal is called, so that it can be left and come back to.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only looks: nothing that is typed goes there.
    #[arg(long, requires = "name", conflicts_with = "command")]
    read_only: bool,
    /// Lists terminals with a name.
    #[arg(long, conflicts_with_all = ["name", "command"])]
    list: bool,
    /// Where the command starts [default: here, if the server is on this machine].
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// The command.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The key that leaves a terminal with a name: Ctrl-].
const LEAVE: u8 = 0x1d;

/// What undoes whatever a program has done to this terminal: its screen, its keys, its mouse, its looks.
const UNDO: &[u8] = b"\x1b[?1049l\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1l\x1b>\x1b[?25h\x1b[m\r\n";

/// Runs it; the exit code is that of the command.
pub(crate) fn exec(args: Args) -> Exit {
    print::start_tracing();
    let runtime = match crate::runtime::one_thread() {
        Ok(runtime) => runtime,
        Err(error) => return told(&error),
    };
    let ended = runtime.block_on(visit(args));
    // A thread that waits for somebody to type must not keep us.
    runtime.shutdown_background();
    ended.unwrap_or_else(|error| told(&error))
}

fn told(error: &anyhow::Error) -> Exit {
    print::note(&print::tamed(&format!("could not {error:#}")));
    Exit::Failed
}

async fn visit(args: Args) -> anyhow::Result<Exit> {
    if args.command.is_empty() && args.name.is_none() && !args.list {
        print::note("say what to run after --, or which terminal to come back to with --name");
        return Ok(Exit::Usage);
    }
    let url = args.address()?;
    let connect = RemoteExecServerConnectArgs::new(&url, "airlock exec");
    let client = ExecServerClient::connect_websocket(connect).await;
    let client =
        client.context("reach the exec-server (airlock serve --exec opens one at /exec)")?;
    if args.list {
        return list(&client).await;
    }
    let events = client.events();
    let visit = Visit { client, id: "terminal".into(), can_leave: args.name.is_some() };
    match (args.command.is_empty(), is_terminal()) {
        (true, false) => bail!("come back to a terminal without having one here"),
        (true, true) => visit.come_back(&args, events).await,
        (false, true) => visit.begin(&args, events).await,
        (false, false) => visit.pipe(&args, events).await,
    }
}

async fn list(client: &ExecServerClient) -> anyhow::Result<Exit> {
    for terminal in client.terminals().await?.terminals {
        let state = match terminal.exit_code {
            Some(code) => format!("ended with {code}"),
            None => format!("{} looking", terminal.viewers),
        };
        print::report(&print::tamed(&format!("{}\tpid {}\t{state}", terminal.name, terminal.pid)));
    }
    Ok(Exit::Good)
}

impl Args {
    /// Where the server is, with what opens it.
    fn address(&self) -> anyhow::Result<String> {
        let dir = self.data_dir.clone().or_else(data_directory::usual);
        let (url, kept) = match &self.url {
            Some(url) => (url.clone(), None),
            None => {
                let dir = dir.as_ref().context("find the data directory: HOME is not set")?;
                let note = owner_of(dir).filter(|note| note.starts_with("http://"));
                let note = note.context("find a server: none runs here, and --url names none")?;
                let kept = std::fs::read_to_string(server::auth::secret_file(dir, "admin")).ok();
                (format!("{}/exec", note.replacen("http", "ws", 1)), kept)
            }
        };
        let token = self.token.clone().or(kept);
        Ok(match token.as_deref().map(str::trim).filter(|token| !token.is_empty()) {
            Some(_) if url.contains("token=") => url,
            Some(token) if url.contains('?') => format!("{url}&token={token}"),
            Some(token) => {
                let has_path = url.splitn(4, '/').nth(3).is_some();
                format!("{url}{}?token={token}", if has_path { "" } else { "/" })
            }
            None => url,
        })
    }
}

/// One command at a server.
struct Visit {
    client: ExecServerClient,
    id: String,
    can_leave: bool,
}

impl Visit {
    async fn params(&self, args: &Args) -> anyhow::Result<client::exec_server::ExecParams> {
        let info = self.client.environment_info().await.context("ask the server about itself")?;
        let words: Vec<&str> = args.command.iter().map(String::as_str).collect();
        let here = std::env::current_dir().ok().and_then(|here| here.to_str().map(str::to_owned));
        let is_here = |url: &str| url.contains("//127.") || url.contains("//[::1]");
        let here = here.filter(|_| args.url.as_deref().is_none_or(is_here));
        let cwd = args.cwd.clone().or(here).unwrap_or(info.cwd);
        let mut params = exec_params(&self.id, &words, &cwd);
        params.env.clear();
        // A terminal is described by whoever looks at it.
        for name in ["TERM", "COLORTERM", "LANG", "LC_ALL"] {
            if let Ok(value) = std::env::var(name) {
                params.env.insert(name.into(), value);
            }
        }
        params.env_policy = Some(EnvPolicy {
            inherit: EnvironmentBase::All,
            ignore_default_excludes: true,
            exclude: vec![],
            set: std::collections::BTreeMap::new(),
            include_only: vec![],
        });
        Ok(params)
    }

    async fn begin(self, args: &Args, events: Events) -> anyhow::Result<Exit> {
        let mut params = self.params(args).await?;
        (params.tty, params.size, params.name) = (true, Some(size()), args.name.clone());
        params.answers_queries = true;
        self.client.exec(params).await.context("start the command")?;
        self.attend(events, false).await
    }

    async fn come_back(self, args: &Args, events: Events) -> anyhow::Result<Exit> {
        let params = AttachParams {
            process_id: self.id.clone(),
            name: args.name.clone().unwrap_or_default(),
            read_only: args.read_only,
            answers_queries: !args.read_only,
            size: Some(size()),
        };
        let attached = self.client.attach(&params).await.context("come back to the terminal")?;
        show(&attached.paint.0)?;
        self.attend(events, args.read_only).await
    }

    /// Keys there, and what it shows here, until it ends or is left.
    async fn attend(self, mut events: Events, is_read_only: bool) -> anyhow::Result<Exit> {
        let _raw = RawMode::enter().context("take over this terminal")?;
        let mut input = Input::start();
        let mut resized = signal(SignalKind::window_change())?;
        let mut hung_up = signal(SignalKind::hangup())?;
        let mut is_open = true;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(ExecServerEvent::OutputDelta(output)) => show(&output.chunk.0)?,
                    Some(ExecServerEvent::Exited(exited)) => return Ok(code(exited.exit_code)),
                    Some(ExecServerEvent::Closed(_) | ExecServerEvent::Lost { .. }) => {}
                    None => {
                        show(UNDO)?;
                        bail!("stay connected");
                    }
                },
                keys = input.next(), if is_open => match keys {
                    Some(keys) => if self.typed(&keys, is_read_only).await? {
                        show(UNDO)?;
                        print::note("left; the terminal goes on");
                        return Ok(Exit::Good);
                    },
                    None => is_open = false,
                },
                _ = resized.recv() => if !is_read_only { self.resize(size()).await },
                _ = hung_up.recv() => return Ok(Exit::Interrupted),
            }
        }
    }

    /// Sends keys; whether the terminal was left.
    async fn typed(&self, keys: &[u8], is_read_only: bool) -> anyhow::Result<bool> {
        let left = keys.iter().position(|key| *key == LEAVE).filter(|_| self.can_leave);
        let keys = &keys[..left.unwrap_or(keys.len())];
        // Whoever only looks leaves as one leaves anything.
        let is_left =
            left.is_some() || is_read_only && keys.iter().any(|key| [3, b'q'].contains(key));
        if !is_read_only && !keys.is_empty() {
            self.client.write(&self.id, keys).await.context("send what was typed")?;
        }
        Ok(is_left)
    }

    async fn resize(&self, size: TerminalSize) {
        // One that has just ended does not mind.
        let _ = self.client.resize(&self.id, size).await;
    }

    /// Without a terminal here: input, output and errors as they are.
    async fn pipe(self, args: &Args, mut events: Events) -> anyhow::Result<Exit> {
        let mut params = self.params(args).await?;
        (params.pipe_stdin, params.name) = (true, None);
        self.client.exec(params).await.context("start the command")?;
        let mut input = Input::start();
        let (mut is_open, mut ended) = (true, Exit::Failed);
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(ExecServerEvent::OutputDelta(output)) => match output.stream {
                        ExecOutputStream::Stderr => {
                            std::io::stderr().write_all(&output.chunk.0)?;
                        }
                        ExecOutputStream::Stdout | ExecOutputStream::Pty => {
                            show(&output.chunk.0)?;
                        }
                    },
                    Some(ExecServerEvent::Exited(exited)) => ended = code(exited.exit_code),
                    Some(ExecServerEvent::Closed(_)) => return Ok(ended),
                    Some(ExecServerEvent::Lost { bytes, .. }) => {
                        print::note(&format!("{bytes} bytes were lost"));
                    }
                    None => bail!("stay connected"),
                },
                bytes = input.next(), if is_open => match bytes {
                    Some(bytes) => drop(self.client.write(&self.id, bytes).await),
                    None => {
                        is_open = false;
                        let _ = self.client.close_stdin(&self.id).await;
                    }
                },
            }
        }
    }
}

fn show(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).context("show what came")
}

fn code(code: i32) -> Exit {
    Exit::Code(u8::try_from(code).unwrap_or(1))
}
