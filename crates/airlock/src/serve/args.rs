//! The command line of `airlock serve`.

use crate::{duration, listen_address, size};
use lifecycle::{AnswerRole, ToolPath};
use server::DoorSelection;
use server::auth::WebOrigin;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// Runs programs for clients over HTTP, until SIGTERM or Ctrl-C.
///
/// The first start mints an admin and a run token and prints where they are; `airlock token` mints more.
/// Executions that are unfinished when the server stops, or dies, continue after the next start.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen, such as 127.0.0.1:4788, localhost:4788 or 4788; port 0 takes any that is free. Without this, as
    /// recorded, or 127.0.0.1:4788.
    #[arg(long, value_name = "IP:PORT|PORT", value_parser = listen_address::parse)]
    pub(crate) listen: Option<SocketAddr>,
    /// The data directory.
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Offers the demonstration tools; demo.append writes to demo-append.txt in the data directory.
    #[arg(long)]
    pub(crate) demo: bool,
    /// A configuration file, instead of airlock.toml here or above and the user's own.
    #[arg(long, value_name = "FILE", env = "AIRLOCK_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Requires no token: anyone who can reach the port may do everything. On loopback only.
    #[arg(long)]
    pub(crate) no_auth: bool,
    /// Who may answer questions at most: person (a token or browser session with the scope answer), client (also the
    /// dialog of an MCP client) or model (also the agent itself). A token's own value may be stricter.
    #[arg(long, value_name = "WHO")]
    pub(crate) answers: Option<AnswerRole>,
    /// The older name of `--answers person`.
    #[arg(long, hide = true, conflicts_with = "answers")]
    pub(crate) no_model_answers: bool,
    /// Enables /exec: a token with the scope process may spawn processes on this machine.
    #[arg(long)]
    pub(crate) exec: bool,
    /// How long finished executions are retained, such as 12h or 30d; then they are deleted.
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = duration::parse_long)]
    pub(crate) keep_for: Duration,
    /// The largest size of the journal on disk, such as 500MB or 4GB; beyond that the oldest finished
    /// executions are deleted earlier.
    #[arg(long, value_name = "SIZE", default_value = "4GB", value_parser = size::parse)]
    pub(crate) keep_bytes: u64,
    /// Reuses a finished runner for the next program of the same caller: faster, and one caller's
    /// programs then share a process.
    #[arg(long)]
    pub(crate) keep_runners: bool,
    /// Memory for all running programs together, such as 2GB; each counts with its limit, 64 MiB.
    /// Default: half of the free memory at the start.
    #[arg(long, value_name = "SIZE", value_parser = memory_budget)]
    pub(crate) memory_budget: Option<u64>,
    /// Another name for a tool of the catalogue in enclave's programs, such as add=demo.add.
    #[arg(long = "enclave-tool", value_name = "NAME=TOOL", value_parser = enclave_tool)]
    pub(crate) enclave_tools: Vec<(ToolPath, ToolPath)>,
    /// Another host name that this server answers to. Without --allowed-origin, pages of https://NAME and http://NAME may
    /// call it.
    #[arg(long = "allowed-host", value_name = "NAME")]
    pub(crate) allowed_hosts: Vec<String>,
    /// Another origin whose pages may call this server, such as http://localhost:5173.
    #[arg(long = "allowed-origin", value_name = "ORIGIN")]
    pub(crate) allowed_origins: Vec<WebOrigin>,
    /// A proxy in front of this server, such as 10.0.0.7 or 10.0.0.0/8: its X-Forwarded-For or Forwarded names the
    /// client of a request, and connections are counted per client. May be repeated.
    #[arg(long = "trusted-proxy", value_name = "IP")]
    pub(crate) trusted_proxies: Vec<String>,
    /// Where browsers find this server, if it is not where it listens: sign-in links and OAuth direct browsers there,
    /// and its origin replaces the listen address as the one whose pages may call.
    #[arg(long, value_name = "URL", value_parser = public_url)]
    pub(crate) public_url: Option<Url>,
    /// The file with the key that seals secrets; default: vault.key in the data directory.
    #[arg(long, value_name = "FILE", env = "AIRLOCK_VAULT_KEY_FILE")]
    pub(crate) vault_key: Option<PathBuf>,
    /// Records this command line as the settings, also where it loosens one (for containers).
    #[arg(long)]
    pub(crate) replace_settings: bool,
    /// A supervisor starts this server again when it ends: clients wait for it instead of starting another.
    #[arg(long)]
    pub(crate) supervised: bool,
    /// A client verb starts this server: it records no settings, and an operator's server may replace it.
    #[arg(long, hide = true)]
    pub(crate) started_by_client: bool,
    /// How long a call waits for a source that is not available; default 30s.
    #[arg(long, value_name = "TIME", value_parser = duration::parse_long, hide = true)]
    pub(crate) source_wait: Option<Duration>,
    #[command(flatten)]
    pub(crate) repl: ReplArgs,
    /// `repl-server` enables only some.
    #[arg(skip)]
    pub(crate) doors: DoorSelection,
}

/// The options of the REPL's evaluators.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ReplArgs {
    /// A script that every new evaluator of the REPL runs first; it may register commands.
    #[arg(long = "repl-script", value_name = "FILE")]
    pub(crate) scripts: Vec<PathBuf>,
    /// Sends the REPL's clients the local paths of the files of commands.
    #[arg(long)]
    pub(crate) artifact_paths: bool,
    /// The frequency of the clock of the REPL's watches.
    #[arg(long, value_name = "HZ", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) frames_per_second: u32,
}

impl Args {
    /// The default arguments.
    pub(crate) fn usual() -> Self {
        Self {
            listen: None,
            data_dir: None,
            demo: false,
            config: None,
            no_auth: false,
            answers: None,
            no_model_answers: false,
            exec: false,
            keep_for: KEEP_FOR,
            keep_bytes: KEEP_BYTES,
            keep_runners: false,
            memory_budget: None,
            enclave_tools: vec![],
            allowed_hosts: vec![],
            allowed_origins: vec![],
            trusted_proxies: vec![],
            public_url: None,
            vault_key: None,
            replace_settings: false,
            supervised: false,
            started_by_client: false,
            source_wait: None,
            repl: ReplArgs::default(),
            doors: DoorSelection::All,
        }
    }

    /// The answer role of the command line.
    pub(super) const fn answers(&self) -> AnswerRole {
        match (self.answers, self.no_model_answers) {
            (Some(answers), false) => answers,
            (Some(_) | None, _) => AnswerRole::Person,
        }
    }
}

/// The default retention time of finished executions.
const KEEP_FOR: Duration = Duration::from_secs(30 * 24 * 3_600);

/// The default limit of the journal's size.
const KEEP_BYTES: u64 = 4 << 30;

fn public_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match (url.scheme(), url.path()) {
        ("http" | "https", "/") => Ok(url),
        _ => Err("it is http:// or https://, a host, and no path".into()),
    }
}

fn enclave_tool(text: &str) -> Result<(ToolPath, ToolPath), String> {
    let (name, tool) = text.split_once('=').ok_or("it must be NAME=TOOL")?;
    let parse = |text: &str| ToolPath::parse(text).map_err(|why| why.to_string());
    Ok((parse(name)?, parse(tool)?))
}

/// Less than one program's share would admit no program.
fn memory_budget(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        bytes if bytes < sandbox::MEMORY_BYTES_DEFAULT => {
            Err("a program counts with 64MiB: there is no room for one".into())
        }
        bytes => Ok(bytes),
    }
}
