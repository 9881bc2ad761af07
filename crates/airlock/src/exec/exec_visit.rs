//! One command at a server, with the local terminal or pipes as its own: input is sent there while output is shown here.
//! Neither direction waits for the other: a command may read only after its output was consumed, or write only after it has
//! read.

use super::Args;
use super::raw::{RawMode, RawTerminalInput, size};
use crate::{VerbExit, print};
use anyhow::{Context as _, bail};
use client::exec_server::{
    AttachParams, EnvPolicy, EnvironmentBase, ExecOutputStream, ExecServerClient, ExecServerError,
    ExecServerEvent, ProcessEvents, ProcessSignal, TerminateParams, exec_params,
};
use std::future::pending;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The key that detaches from a named terminal: Ctrl-].
const LEAVE: u8 = 0x1d;

/// How long the end of a command may take; the server kills it earlier.
const ENDING_TIME_MAX: Duration = Duration::from_secs(5);

/// Chunks of one stream that are not written yet, some kilobytes each. When full, the other stream waits, too.
const UNSHOWN_CHUNKS_MAX: usize = 256;

/// Undoes the changes of a program to this terminal: its screen, its keys, its mouse, its colours.
const UNDO: &[u8] = b"\x1b[?1049l\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1l\x1b>\x1b[?25h\x1b[m\r\n";

/// One command at a server.
pub(super) struct ExecVisit {
    pub(super) client: ExecServerClient,
    pub(super) id: String,
    /// Whether the command continues after this client has left.
    pub(super) can_leave: bool,
}

/// How the connection to a command ended.
enum ExecVisitEnd {
    /// The command ended.
    Done(VerbExit),
    /// The person typed the key that leaves.
    Left,
    /// A signal arrived.
    Told,
}

impl ExecVisit {
    async fn params(&self, args: &Args) -> anyhow::Result<client::exec_server::ExecParams> {
        let info =
            self.client.environment_info().await.context("request information about the server")?;
        let words: Vec<&str> = args.command.iter().map(String::as_str).collect();
        let here = std::env::current_dir().ok().and_then(|here| here.to_str().map(str::to_owned));
        let is_here = |url: &str| url.contains("//127.") || url.contains("//[::1]");
        let here = here.filter(|_| args.url.as_deref().is_none_or(is_here));
        let cwd = args.cwd.clone().or(here).unwrap_or(info.cwd);
        let mut params = exec_params(&self.id, &words, &cwd);
        params.env.clear();
        // The local terminal determines these variables.
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

    /// Opens a new terminal.
    pub(super) async fn start_terminal(
        self,
        args: &Args,
        events: ProcessEvents,
    ) -> anyhow::Result<VerbExit> {
        let mut params = self.params(args).await?;
        (params.tty, params.size, params.name) = (true, Some(size()), args.name.clone());
        params.answers_queries = true;
        self.client.exec(params).await.context("start the command")?;
        self.relay_until_end(events, false).await
    }

    /// Attaches to an existing terminal.
    pub(super) async fn come_back(
        self,
        args: &Args,
        events: ProcessEvents,
    ) -> anyhow::Result<VerbExit> {
        let params = AttachParams {
            process_id: self.id.clone(),
            name: args.name.clone().unwrap_or_default(),
            read_only: args.read_only,
            answers_queries: !args.read_only,
            size: Some(size()),
        };
        let attached = self.client.attach(&params).await.context("attach to the terminal")?;
        show_output(ExecOutputStream::Pty, attached.paint.0).await?;
        self.relay_until_end(events, args.read_only).await
    }

    /// Without a terminal here: connects stdin, stdout and stderr by pipes.
    pub(super) async fn pipe(self, args: &Args, events: ProcessEvents) -> anyhow::Result<VerbExit> {
        let mut params = self.params(args).await?;
        params.pipe_stdin = true;
        self.client.exec(params).await.context("start the command")?;
        let ended = self.stay(hear_pipes(events), self.feed(RawTerminalInput::start())).await;
        Ok(match ended? {
            ExecVisitEnd::Done(exit) => exit,
            ExecVisitEnd::Left | ExecVisitEnd::Told => VerbExit::Interrupted,
        })
    }

    async fn relay_until_end(
        self,
        events: ProcessEvents,
        is_read_only: bool,
    ) -> anyhow::Result<VerbExit> {
        let _raw = RawMode::enter_raw_mode().context("take over this terminal")?;
        let typing = self.type_in(RawTerminalInput::start(), is_read_only);
        let ended = self.stay(hear_terminal(events), typing).await;
        if !matches!(ended, Ok(ExecVisitEnd::Done(_))) {
            // An error here means that the terminal is gone and shows nothing.
            let _ = show_output(ExecOutputStream::Pty, UNDO.to_vec()).await;
        }
        Ok(match ended? {
            ExecVisitEnd::Done(exit) => exit,
            ExecVisitEnd::Told => VerbExit::Interrupted,
            ExecVisitEnd::Left => {
                print::print_note("left; the terminal goes on");
                VerbExit::Good
            }
        })
    }

    /// Runs until the command has ended or is left. A command that cannot continue without this client ends with it.
    async fn stay(
        &self,
        hearing: impl Future<Output = anyhow::Result<VerbExit>>,
        typing: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<ExecVisitEnd> {
        let mut signals = TerminationSignals::listen()?;
        let mut hearing = Box::pin(hearing);
        let ended = tokio::select! {
            ended = &mut hearing => ended.map(ExecVisitEnd::Done),
            left = typing => left.map(|()| ExecVisitEnd::Left),
            signal = signals.next() => match self.can_leave {
                true => Ok(ExecVisitEnd::Told),
                false => self.end_by(signal, hearing.as_mut(), &mut signals).await,
            },
        };
        // Its event receiver would delay the answers to the requests below.
        drop(hearing);
        if !self.can_leave && !matches!(ended, Ok(ExecVisitEnd::Done(_))) {
            let _ = timeout(ENDING_TIME_MAX, self.end_command()).await;
        }
        ended
    }

    /// Ends the command, and waits until it has ended.
    async fn end_command(&self) -> Result<(), ExecServerError> {
        self.client.terminate(&self.id).await?;
        self.client.wait(&self.id).await.map(drop)
    }

    /// Forwards our signal to the command and shows its remaining output, unless that takes too long or another signal
    /// arrives.
    async fn end_by(
        &self,
        signal: ProcessSignal,
        hearing: Pin<&mut impl Future<Output = anyhow::Result<VerbExit>>>,
        signals: &mut TerminationSignals,
    ) -> anyhow::Result<ExecVisitEnd> {
        let (process_id, signal) = (self.id.clone(), Some(signal));
        let asking =
            self.client.terminate_with(TerminateParams { process_id, signal, grace_ms: None });
        let asking = async {
            let _ = asking.await;
            pending::<()>().await;
        };
        tokio::select! {
            ended = hearing => ended.map(ExecVisitEnd::Done),
            _ = timeout(ENDING_TIME_MAX, asking) => Ok(ExecVisitEnd::Told),
            _ = signals.next() => Ok(ExecVisitEnd::Told),
        }
    }

    /// Forwards the input, then its end.
    async fn feed(&self, mut input: RawTerminalInput) -> anyhow::Result<()> {
        while let Some(bytes) = input.next().await {
            // An error means that the command has ended or closed its input; its output shows which.
            let _ = self.client.write(&self.id, bytes).await;
        }
        let _ = self.client.close_stdin(&self.id).await;
        pending().await
    }

    /// Sends keys and sizes until the terminal is left.
    async fn type_in(&self, mut input: RawTerminalInput, is_read_only: bool) -> anyhow::Result<()> {
        let mut resized = signal(SignalKind::window_change())?;
        let mut is_open = true;
        loop {
            tokio::select! {
                keys = input.next(), if is_open => match keys {
                    Some(keys) => if self.typed(&keys, is_read_only).await? { return Ok(()) },
                    None => is_open = false,
                },
                // An error means that the command has just ended.
                _ = resized.recv() => if !is_read_only {
                    let _ = self.client.resize(&self.id, size()).await;
                },
            }
        }
    }

    /// Sends keys; returns whether the terminal was left.
    async fn typed(&self, keys: &[u8], is_read_only: bool) -> anyhow::Result<bool> {
        let left = keys.iter().position(|key| *key == LEAVE).filter(|_| self.can_leave);
        let keys = &keys[..left.unwrap_or(keys.len())];
        // In read-only mode the usual keys, Ctrl-C and q, leave too.
        let is_left =
            left.is_some() || is_read_only && keys.iter().any(|key| [3, b'q'].contains(key));
        if !is_read_only && !keys.is_empty() {
            self.client.write(&self.id, keys).await.context("send the input")?;
        }
        Ok(is_left)
    }
}

/// The signals that end this program.
struct TerminationSignals {
    hang_up: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl TerminationSignals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> ProcessSignal {
        tokio::select! {
            _ = self.hang_up.recv() => ProcessSignal::Hangup,
            _ = self.interrupt.recv() => ProcessSignal::Interrupt,
            _ = self.terminate.recv() => ProcessSignal::Terminate,
        }
    }
}

/// Shows the output of a terminal, until its command ends.
async fn hear_terminal(mut events: ProcessEvents) -> anyhow::Result<VerbExit> {
    loop {
        match events.next().await {
            Some(ExecServerEvent::OutputDelta(output)) => {
                show_output(output.stream, output.chunk.0).await?;
            }
            Some(ExecServerEvent::Exited(exited)) => return Ok(code(exited.exit_code)),
            Some(ExecServerEvent::Closed(_) | ExecServerEvent::Lost { .. }) => {}
            None => bail!("stay connected"),
        }
    }
}

/// Forwards the output of a command, until it and its background processes have ended.
async fn hear_pipes(mut events: ProcessEvents) -> anyhow::Result<VerbExit> {
    let mut ended = VerbExit::Failed;
    let [mut out, mut errors] =
        [ExecOutputStream::Stdout, ExecOutputStream::Stderr].map(OutputPump::open);
    loop {
        match events.next().await {
            Some(ExecServerEvent::OutputDelta(output)) => match output.stream {
                ExecOutputStream::Stderr => errors.pass(output.chunk.0).await?,
                ExecOutputStream::Stdout | ExecOutputStream::Pty => {
                    out.pass(output.chunk.0).await?;
                }
            },
            Some(ExecServerEvent::Exited(exited)) => ended = code(exited.exit_code),
            Some(ExecServerEvent::Closed(_)) => {
                out.close().await?;
                errors.close().await?;
                return Ok(ended);
            }
            Some(ExecServerEvent::Lost { bytes, .. }) => {
                print::print_note(&format!("{bytes} bytes were lost"));
            }
            None => bail!("stay connected"),
        }
    }
}

/// One output stream, written by a separate thread: a reader may read one stream only after the other.
struct OutputPump {
    chunks: mpsc::Sender<Vec<u8>>,
    shown: JoinHandle<io::Result<()>>,
}

impl OutputPump {
    fn open(stream: ExecOutputStream) -> Self {
        let (chunks, mut unshown) = mpsc::channel::<Vec<u8>>(UNSHOWN_CHUNKS_MAX);
        let shown = tokio::task::spawn_blocking(move || {
            while let Some(bytes) = unshown.blocking_recv() {
                write(stream, &bytes)?;
            }
            Ok(())
        });
        Self { chunks, shown }
    }

    async fn pass(&mut self, bytes: Vec<u8>) -> anyhow::Result<()> {
        match self.chunks.send(bytes).await {
            Ok(()) => Ok(()),
            Err(_) => (&mut self.shown).await?.context("show what came"),
        }
    }

    /// Waits until everything is written.
    async fn close(self) -> anyhow::Result<()> {
        drop(self.chunks);
        self.shown.await?.context("show what came")
    }
}

/// Writes from another thread: if the reader of the output blocks, a signal still ends this program.
async fn show_output(stream: ExecOutputStream, bytes: Vec<u8>) -> anyhow::Result<()> {
    let showing = tokio::task::spawn_blocking(move || write(stream, &bytes));
    showing.await?.context("show what came")
}

fn write(stream: ExecOutputStream, bytes: &[u8]) -> io::Result<()> {
    match stream {
        ExecOutputStream::Stderr => io::stderr().write_all(bytes),
        ExecOutputStream::Stdout | ExecOutputStream::Pty => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        }
    }
}

fn code(code: i32) -> VerbExit {
    VerbExit::Code(u8::try_from(code).unwrap_or(1))
}
