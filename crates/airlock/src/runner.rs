//! `airlock runner`: runs programs for an execbox host, which executes their tools.

use crate::runtime::{finish, one_thread, threads};
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, print};
use anyhow::Context as _;
use sandbox::{Config, Sandbox};
use server::auth::MintedSecret;
use server::execbox::{self, RunnerAddress};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use transport::stdio;

/// How long runners may take to end. They are killed, so only a stuck kernel reaches this.
const STOPPING_MAX: Duration = Duration::from_secs(2);

/// Runs programs for an execbox host: JavaScript in, tool calls out, each program in a jail.
///
/// Speaks the execbox protocol, one JSON message per line of stdin and stdout, or per frame of a WebSocket. A host that
/// wants several concurrent executions on one channel sets `options.multiplex: true`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Listens instead of using stdin and stdout: ws://IP:PORT, tcp://127.0.0.1:PORT or unix:PATH.
    ///
    /// A WebSocket needs a token: AIRLOCK_TOKEN if it is set, else a new one, printed as part of the URL.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<RunnerAddress>,
    /// Requires no token. On loopback only.
    #[arg(long, requires = "listen")]
    no_auth: bool,
}

impl CommandVerb for Args {
    const NAME: &'static str = "runner";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Protocols, 7);

    fn run(self) -> VerbExit {
        runner(&self)
    }
}

/// Serves hosts until the end, and returns the exit.
pub(crate) fn runner(args: &Args) -> VerbExit {
    if let (true, Some(RunnerAddress::WebSocket(at))) = (args.no_auth, &args.listen)
        && !at.ip().is_loopback()
    {
        print::error(&format!("--no-auth works on loopback only, and {} is not", at.ip()));
        return VerbExit::Usage;
    }
    print::start_tracing();
    let ended = match &args.listen {
        None => one_thread().and_then(|runtime| finish(runtime, serve_stdio())),
        Some(address) => {
            threads().and_then(|runtime| finish(runtime, serve(address, args.no_auth)))
        }
    };
    match ended {
        Ok(()) => VerbExit::Good,
        Err(error) => {
            print::error(&format!("{error:#}"));
            VerbExit::Failed
        }
    }
}

async fn serve_stdio() -> anyhow::Result<()> {
    let stopping = stop_on_signals()?;
    let sandbox = start().await?;
    let (reader, writer) = (stdio::input()?, stdio::output()?);
    execbox::serve_lines(sandbox.clone(), reader, writer, stopping).await;
    shut_down(&sandbox).await;
    Ok(())
}

async fn serve(address: &RunnerAddress, no_auth: bool) -> anyhow::Result<()> {
    let stopping = stop_on_signals()?;
    let has_token = matches!(address, RunnerAddress::WebSocket(_)) && !no_auth;
    let given = std::env::var("AIRLOCK_TOKEN").ok().filter(|secret| !secret.is_empty());
    let minted = if has_token && given.is_none() { Some(MintedSecret::new()?) } else { None };
    let secret =
        given.as_deref().or(minted.as_ref().map(MintedSecret::as_text)).filter(|_| has_token);
    if no_auth {
        print::print_note(
            "WARNING: --no-auth: every program on this machine may run programs here",
        );
    }
    let sandbox = start().await?;
    let listening = execbox::listen(sandbox.clone(), address, secret).await?;
    let shown = &listening.address;
    // A secret that was given is known to the caller; one that was minted must be printed.
    print::report(&match &minted {
        Some(secret) => format!("Airlock's runner is ready at {shown}/?token={}", secret.as_text()),
        None => format!("Airlock's runner is ready at {shown}"),
    });
    stopping.cancelled().await;
    let _ = tokio::time::timeout(STOPPING_MAX, listening.shutdown()).await;
    shut_down(&sandbox).await;
    Ok(())
}

async fn start() -> anyhow::Result<Sandbox> {
    Sandbox::start(Config::default()).await.context("could not start the sandbox")
}

async fn shut_down(sandbox: &Sandbox) {
    if tokio::time::timeout(STOPPING_MAX, sandbox.shutdown()).await.is_err() {
        tracing::warn!("stopped before every runner had ended");
    }
}

/// Cancelled by SIGTERM or Ctrl-C.
fn stop_on_signals() -> anyhow::Result<CancellationToken> {
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stopping = CancellationToken::new();
    let told = stopping.clone();
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends with the process, which waits for nobody"
    )]
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        told.cancel();
    });
    Ok(stopping)
}
