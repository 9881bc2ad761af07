//! `web` and `daemon`: the server of the data directory, with Executor's options.

use super::target::data_dir;
use crate::{VerbExit, autostart, print, serve, stop};
use clap::Parser as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::sqlite::{directory_owner, owner_of};

/// The default port of Executor's clients.
const PORT: u16 = 4788;

/// Longest wait for a server that was asked to stop, and for one that starts in this terminal.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(30);

/// Pause between two checks of the directory's lock.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The listen options of a server.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct ListenOptions {
    /// Port.
    #[arg(long)]
    port: Option<u16>,
    /// Bind address.
    #[arg(long)]
    hostname: Option<String>,
    /// A further name in the Host header (repeatable).
    #[arg(long)]
    allowed_host: Vec<String>,
    /// Refused: every account of this machine can read command lines.
    #[arg(long, value_name = "TOKEN")]
    auth_token: Option<String>,
    /// Run in this terminal.
    #[arg(long)]
    foreground: bool,
    /// Accepted and ignored: Airlock's server has one configuration.
    #[arg(long, value_name = "DIR")]
    scope: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct WebArgs {
    #[command(flatten)]
    listening: ListenOptions,
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum DaemonVerb {
    /// Run the local daemon (background by default).
    Run(ListenOptions),
    /// Show daemon status.
    Status(IgnoredDaemonArgs),
    /// Stop the local daemon.
    Stop(IgnoredDaemonArgs),
    /// Restart the local daemon.
    Restart(IgnoredDaemonArgs),
}

/// Accepted and ignored: there is one server for a data directory.
#[derive(Debug, clap::Args)]
pub(super) struct IgnoredDaemonArgs {
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    #[arg(long, value_name = "DIR")]
    scope: Option<String>,
}

pub(super) fn web(args: &WebArgs) -> Result<VerbExit, String> {
    let dir = directory()?;
    let listening = args.listening.checked()?;
    if listening.foreground {
        return in_terminal(&dir, listening, |url| {
            print::report(&format!("{}\n\nPress Ctrl+C to stop.", addresses(url)));
        });
    }
    let url = started(&dir, listening)?;
    print::report(&addresses(&url));
    Ok(VerbExit::Good)
}

fn addresses(url: &str) -> String {
    format!(
        "Executor is ready.\nWeb:     {url}\nMCP:     {url}/mcp\nOpenAPI: {url}/api/openapi.json\n\n\
         airlock open signs your browser in."
    )
}

pub(super) fn daemon(verb: &DaemonVerb) -> Result<VerbExit, String> {
    let dir = directory()?;
    if let DaemonVerb::Run(listening) = verb {
        listening.checked()?;
    }
    match verb {
        DaemonVerb::Run(listening) if listening.foreground => {
            in_terminal(&dir, listening, |url| print::report(&format!("Daemon ready on {url}")))
        }
        DaemonVerb::Run(listening) => {
            let text = match running(&dir) {
                Some(url) => format!("Daemon already running at {url}."),
                None => format!("Daemon ready on {}", started(&dir, listening)?),
            };
            print::report(&text);
            Ok(VerbExit::Good)
        }
        DaemonVerb::Status(_) => {
            let text = match (running(&dir), directory_owner(&dir)) {
                (Some(url), Some(owner)) => format!("Daemon running at {url} (pid {}).", owner.pid),
                (_, _) => format!("Daemon not running at {}.", usual_url()),
            };
            print::report(&text);
            Ok(VerbExit::Good)
        }
        DaemonVerb::Stop(_) => {
            stop(&dir)?;
            Ok(VerbExit::Good)
        }
        DaemonVerb::Restart(_) => {
            stop(&dir)?;
            let url = started(&dir, &ListenOptions::usual())?;
            print::report(&format!("Daemon restarted at {url}."));
            Ok(VerbExit::Good)
        }
    }
}

impl ListenOptions {
    const fn usual() -> Self {
        Self {
            port: None,
            hostname: None,
            allowed_host: vec![],
            auth_token: None,
            foreground: false,
            scope: None,
        }
    }

    /// Returns the options unless they contain a secret.
    fn checked(&self) -> Result<&Self, String> {
        match self.auth_token {
            None => Ok(self),
            Some(_) => Err("--auth-token is not taken, because every account of this machine can read command lines: set \
                            AIRLOCK_ADMIN_TOKEN, with at least 32 characters, and use --foreground."
                .into()),
        }
    }

    /// The listen address, where an option sets it.
    fn address(&self) -> Option<String> {
        (self.port.is_some() || self.hostname.is_some()).then(|| {
            let host = match self.hostname.as_deref() {
                None | Some("localhost") => "127.0.0.1",
                Some(host) => host,
            };
            format!("{host}:{}", self.port.unwrap_or(PORT))
        })
    }
}

fn directory() -> Result<PathBuf, String> {
    data_dir()
        .ok_or_else(|| "The data directory is unknown: set HOME or AIRLOCK_DATA_DIR.".to_owned())
}

fn usual_url() -> String {
    format!("http://127.0.0.1:{PORT}")
}

fn running(dir: &Path) -> Option<String> {
    owner_of(dir).filter(|note| note.starts_with("http"))
}

fn started(dir: &Path, listening: &ListenOptions) -> Result<String, String> {
    if !listening.allowed_host.is_empty() {
        return Err(
            "--allowed-host needs --foreground; airlock settings set allowed-hosts records it."
                .into(),
        );
    }
    let started = autostart::running_at(dir, listening.address().as_deref());
    started.map_err(|error| format!("Could not {error}."))
}

/// Stops the owner of the directory, and waits for its end.
fn stop(dir: &Path) -> Result<(), String> {
    let (Some(url), Some(owner)) = (running(dir), directory_owner(dir)) else {
        print::report(&format!("No daemon running at {}.", usual_url()));
        return Ok(());
    };
    print::report(&format!("Stopping daemon at {url} (pid {})...", owner.pid));
    stop::terminate(owner.pid, dir).map_err(|error| error.to_string())?;
    let deadline = Instant::now() + CHANGE_TIME_MAX;
    while directory_owner(dir).is_some_and(|now| now.pid == owner.pid) {
        if Instant::now() > deadline {
            return Err(format!(
                "Daemon at {url} did not stop within {} s.",
                CHANGE_TIME_MAX.as_secs()
            ));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    print::report(&format!("Daemon stopped at {url}."));
    Ok(())
}

/// The command line of `airlock serve` with these options.
#[derive(Debug, clap::Parser)]
struct ServeLine {
    #[command(flatten)]
    serve: serve::Args,
}

/// Serves in this terminal; `say` is called with the address once there is one.
fn in_terminal(
    dir: &Path,
    listening: &ListenOptions,
    say: impl FnOnce(&str) + Send + 'static,
) -> Result<VerbExit, String> {
    let mut words = vec!["serve".to_owned(), "--data-dir".to_owned(), dir.display().to_string()];
    if let Some(address) = listening.address() {
        words.extend(["--listen".to_owned(), address]);
    }
    for host in &listening.allowed_host {
        words.extend(["--allowed-host".to_owned(), host.clone()]);
    }
    let line = ServeLine::try_parse_from(words).map_err(|error| error.to_string())?;
    let dir = dir.to_owned();
    // The lock of the directory contains the server's address; the thread ends with this process.
    std::thread::spawn(move || {
        let deadline = Instant::now() + CHANGE_TIME_MAX;
        while Instant::now() < deadline {
            if let Some(url) = running(&dir) {
                return say(&url);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    });
    Ok(serve::serve(line.serve))
}
