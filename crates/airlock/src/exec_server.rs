//! `airlock exec-server`: processes for agents, over stdio or a WebSocket of its own.

use crate::runtime::{finish, one_thread, threads};
use crate::{Exit, print, stdio};
use anyhow::Context as _;
use processes::{Config, Processes};
use server::auth::Secret;
use server::exec_server::{Choice, Dialect, ExecServer, listen};
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long processes may take to end. They are killed, so this is reached by a stuck kernel only.
const STOPPING_MAX: Duration = Duration::from_secs(2);

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
    listen: Listen,
    /// Asks nobody for a token. On loopback only.
    #[arg(long)]
    no_auth: bool,
    /// What clients speak; auto looks at how they say hello.
    #[arg(long, value_name = "DIALECT", default_value = "auto")]
    dialect: Speech,
}

/// Where to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listen {
    Stdio,
    WebSocket(SocketAddr),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || "an address is stdio:// or ws://IP:PORT, with a number for IP".to_owned();
        match text {
            "stdio" | "stdio://" => Ok(Self::Stdio),
            _ => {
                let address = text.strip_prefix("ws://").ok_or_else(bad)?;
                address.trim_end_matches('/').parse().map(Self::WebSocket).map_err(|_| bad())
            }
        }
    }
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
    if let (true, Listen::WebSocket(at)) = (args.no_auth, args.listen)
        && !at.ip().is_loopback()
    {
        print::note(&format!("--no-auth works on loopback only, and {} is not", at.ip()));
        return Exit::Usage;
    }
    print::start_tracing();
    let ended = match args.listen {
        Listen::Stdio => one_thread().and_then(|runtime| finish(runtime, serve_stdio(args))),
        Listen::WebSocket(at) => threads().and_then(|runtime| finish(runtime, serve(at, args))),
    };
    match ended {
        Ok(()) => Exit::Good,
        Err(error) => {
            print::note(&format!("{error:#}"));
            Exit::Failed
        }
    }
}

fn start(args: &Args) -> anyhow::Result<ExecServer> {
    let processes = Processes::start(&Config::default()).context("could not start the warden")?;
    Ok(ExecServer::new(processes, args.dialect.into()))
}

async fn serve_stdio(args: &Args) -> anyhow::Result<()> {
    let server = start(args)?;
    let (reader, writer) = (stdio::input()?, stdio::output()?);
    tokio::select! {
        () = server.serve_lines(reader, writer) => {}
        stopped = stop_signal() => stopped?,
    }
    let _ = tokio::time::timeout(STOPPING_MAX, server.shutdown()).await;
    Ok(())
}

async fn serve(at: SocketAddr, args: &Args) -> anyhow::Result<()> {
    let given = std::env::var("AIRLOCK_TOKEN").ok().filter(|secret| !secret.is_empty());
    let minted = if !args.no_auth && given.is_none() { Some(Secret::new()?) } else { None };
    let secret = given.as_deref().or(minted.as_ref().map(Secret::text)).filter(|_| !args.no_auth);
    if args.no_auth {
        print::note("WARNING: --no-auth: every program on this machine may spawn processes here");
    }
    let listening = listen(start(args)?, at, secret).await?;
    // A secret that was given is known; one that was minted is known to nobody yet.
    let url = match &minted {
        Some(secret) => format!("ws://{}/?token={}", listening.address, secret.text()),
        None => format!("ws://{}", listening.address),
    };
    // Clients of the seed wait for this line on stderr, today's for the bare URL on stdout.
    print::announce(&format!("codex-exec-server listening on {url}"));
    print::report(&url);
    stop_signal().await?;
    let _ = tokio::time::timeout(STOPPING_MAX, listening.shutdown()).await;
    Ok(())
}

/// Waits for SIGTERM or Ctrl-C.
async fn stop_signal() -> anyhow::Result<()> {
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_stdio_or_a_websocket_with_a_number() {
        assert_eq!("stdio".parse(), Ok(Listen::Stdio));
        assert_eq!("stdio://".parse(), Ok(Listen::Stdio));
        let at = "127.0.0.1:8080".parse().unwrap();
        assert_eq!("ws://127.0.0.1:8080".parse(), Ok(Listen::WebSocket(at)));
        for text in ["ws://localhost:1", "http://127.0.0.1:1", "tcp://127.0.0.1:1", "", "ws://"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }
}
