//! A complete exec-server, from the transport to the last process, for a program that is nothing else.

use super::{ExecListenError, listen};
use crate::auth::MintedSecret;
use ::exec_server::{Config, ExecServer};
use processes::{ProcessSpawner, ProtectedPaths};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use transport::stdio;

/// How long processes may take to end. They are killed, so only a stuck kernel reaches this limit.
const STOPPING_TIME_MAX: Duration = Duration::from_secs(2);

/// The variable that holds the token that clients already know.
const TOKEN: &str = "AIRLOCK_TOKEN";

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExecServerTransport {
    /// One client on standard input and output.
    #[default]
    Stdio,
    /// Clients of a WebSocket at this address; port 0 selects any free port.
    WebSocket(SocketAddr),
}

/// The text names no transport.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an address is stdio:// or ws://IP:PORT, with a number for IP")]
pub struct BadTransport;

impl FromStr for ExecServerTransport {
    type Err = BadTransport;

    fn from_str(text: &str) -> Result<Self, BadTransport> {
        if matches!(text, "stdio" | "stdio://") {
            return Ok(Self::Stdio);
        }
        let address = text.strip_prefix("ws://").ok_or(BadTransport)?;
        address.trim_end_matches('/').parse().map(Self::WebSocket).map_err(|_| BadTransport)
    }
}

/// Which clients a WebSocket admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WebSocketAccess {
    /// Those with the token: `AIRLOCK_TOKEN` if it is set, otherwise a new one, printed as part of the URL.
    #[default]
    Token,
    /// All clients; on loopback only.
    Everybody,
}

/// The options of a server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which clients a WebSocket admits.
    pub access: WebSocketAccess,
    /// How clients are served.
    pub server: Config,
    /// Paths that no process may access.
    pub protected: ProtectedPaths,
}

/// Why a server did not serve.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The fork server could not be started.
    #[error("start the fork server: {0}")]
    ForkServer(#[source] io::Error),
    /// Standard input and output, or the signal handlers, failed.
    #[error("use the standard streams: {0}")]
    Streams(#[from] io::Error),
    /// The listener could not be started.
    #[error(transparent)]
    Listen(#[from] ExecListenError),
    /// The system has no randomness for a token.
    #[error("make a token: {0}")]
    Token(String),
}

/// Serves one client on standard input and output until it leaves, or SIGTERM or Ctrl-C comes.
///
/// ```no_run
/// // First thing in `main`: processes are started by this same binary.
/// processes::enter_if_asked();
/// let runtime = tokio::runtime::Runtime::new()?;
/// runtime.block_on(server::exec_server::run_main())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn run_main() -> Result<(), RunError> {
    run_main_with_transport(ExecServerTransport::Stdio).await
}

/// Like `run_main`, over any transport, for clients of either dialect, with a token if one is needed.
pub async fn run_main_with_transport(transport: ExecServerTransport) -> Result<(), RunError> {
    run_with(transport, Options::default()).await
}

/// Like `run_main_with_transport`, with options.
pub async fn run_with(transport: ExecServerTransport, options: Options) -> Result<(), RunError> {
    let Options { access, server, protected } = options;
    let config = processes::Config { protected, ..processes::Config::default() };
    let processes = ProcessSpawner::start(&config).map_err(RunError::ForkServer)?;
    let server = ExecServer::new(processes, server);
    match transport {
        ExecServerTransport::Stdio => serve_stdio(server).await,
        ExecServerTransport::WebSocket(at) => serve_socket(server, at, access).await,
    }
}

async fn serve_stdio(server: ExecServer) -> Result<(), RunError> {
    let (reader, writer) = (stdio::input()?, stdio::output()?);
    tokio::select! {
        () = server.serve_lines(reader, writer) => {}
        stopped = stop_signal() => stopped?,
    }
    let _ = tokio::time::timeout(STOPPING_TIME_MAX, server.shutdown()).await;
    Ok(())
}

async fn serve_socket(
    server: ExecServer,
    at: SocketAddr,
    access: WebSocketAccess,
) -> Result<(), RunError> {
    let given = std::env::var(TOKEN).ok().filter(|secret| !secret.is_empty());
    let minted = match (access, &given) {
        (WebSocketAccess::Token, None) => {
            Some(MintedSecret::new().map_err(|error| RunError::Token(error.to_string()))?)
        }
        (WebSocketAccess::Token, Some(_)) | (WebSocketAccess::Everybody, _) => None,
    };
    let secret = given.as_deref().or(minted.as_ref().map(MintedSecret::as_text));
    let secret = secret.filter(|_| access == WebSocketAccess::Token);
    let listening = listen(server, at, secret).await?;
    // A configured secret is already known to clients; a minted one must be printed.
    announce(&match &minted {
        Some(secret) => format!("ws://{}/?token={}", listening.address, secret.as_text()),
        None => format!("ws://{}", listening.address),
    });
    stop_signal().await?;
    let _ = tokio::time::timeout(STOPPING_TIME_MAX, listening.shutdown()).await;
    Ok(())
}

/// Clients of the seed wait for a line on stderr, current ones for the bare URL on stdout.
fn announce(url: &str) {
    // If the stream is closed, its reader does not need the line.
    let _ = writeln!(io::stderr(), "codex-exec-server listening on {url}");
    let _ = writeln!(io::stdout(), "{url}");
}

/// Waits for SIGTERM or Ctrl-C.
async fn stop_signal() -> io::Result<()> {
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
        assert_eq!("stdio".parse(), Ok(ExecServerTransport::Stdio));
        assert_eq!("stdio://".parse(), Ok(ExecServerTransport::Stdio));
        let at = "127.0.0.1:8080".parse().unwrap();
        assert_eq!("ws://127.0.0.1:8080".parse(), Ok(ExecServerTransport::WebSocket(at)));
        for text in ["ws://localhost:1", "http://127.0.0.1:1", "tcp://127.0.0.1:1", "", "ws://"] {
            assert_eq!(text.parse::<ExecServerTransport>(), Err(BadTransport), "{text}");
        }
    }
}
