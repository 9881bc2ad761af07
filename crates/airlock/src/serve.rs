//! `airlock serve`: the server, until it is told to stop.

use crate::housing::Housing;
use crate::notify::{self, Notifier};
use crate::repl::Announced;
use crate::{Exit, data_directory, duration, print, runtime, size};
use anyhow::Context as _;
use engine::policies::Policies;
use engine::{Clock, Config, Engine, Retention};
use lifecycle::{Limits, ToolPath};
use server::{Auth, Doors, Lanes, ReplSettings, Server};
use sources::vault::{KeyPlace, Vault};
use sources::{Management, Setup, Sources};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::sqlite::{OpenError, SqliteStore};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tools::builtin::Builtin;
use tools::demo::Demo;
use tools::http::HttpClient;
use tools::{Catalogue, Found, Minding};
use url::Url;

/// Whoever stops a service kills it soon after: what is not done by then is in the journal anyway.
const STOPPING_MAX: Duration = Duration::from_millis(4_500);

/// Runs programs for clients over HTTP, until SIGTERM or Ctrl-C.
///
/// The first start mints an admin and a run token and says where they are; `airlock token` mints more.
/// What is under way when the server stops, or dies, goes on after the next start.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen; port 0 takes any that is free.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:4788")]
    pub(crate) listen: SocketAddr,
    /// Where Airlock keeps what must last.
    #[arg(long, value_name = "DIR", env = "AIRLOCK_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Offers the demonstration tools; demo.append writes to demo-append.txt in the data directory.
    #[arg(long)]
    pub(crate) demo: bool,
    /// A configuration file, instead of airlock.toml here or above and the user's own.
    #[arg(long, value_name = "FILE", env = "AIRLOCK_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Asks nobody for a token: whoever can reach the port may do everything. On loopback only.
    #[arg(long)]
    pub(crate) no_auth: bool,
    /// Whoever runs a program may not answer its questions.
    #[arg(long)]
    pub(crate) no_model_answers: bool,
    /// Opens /exec: whoever has a token with the scope process may spawn processes on this machine.
    #[arg(long)]
    pub(crate) exec: bool,
    /// How long finished executions stay readable, such as 12h or 30d; then they are forgotten.
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = duration::parse_long)]
    pub(crate) keep_for: Duration,
    /// What the journal may take on the disk, such as 500MB or 4GB; beyond that the oldest finished
    /// executions are forgotten before their time.
    #[arg(long, value_name = "SIZE", default_value = "4GB", value_parser = size::parse)]
    pub(crate) keep_bytes: u64,
    /// Keeps a finished runner for the next program of the same caller: faster, and one caller's
    /// programs then share a process.
    #[arg(long)]
    pub(crate) keep_runners: bool,
    /// What all programs under way may use together, such as 2GB; each counts with its limit, 64 MiB.
    /// Half of what is free at start, where nothing is said.
    #[arg(long, value_name = "SIZE", value_parser = memory_budget)]
    pub(crate) memory_budget: Option<u64>,
    /// Another name for a tool of the catalogue in enclave's programs, such as add=demo.add.
    #[arg(long = "enclave-tool", value_name = "NAME=TOOL", value_parser = enclave_tool)]
    pub(crate) enclave_tools: Vec<(ToolPath, ToolPath)>,
    /// One more name that this server answers to, and whose pages may call it.
    #[arg(long = "allowed-host", value_name = "NAME")]
    pub(crate) allowed_hosts: Vec<String>,
    /// Where browsers find this server, if it is not where it listens: OAuth sends people back there.
    #[arg(long, value_name = "URL", value_parser = public_url)]
    pub(crate) public_url: Option<Url>,
    /// The file with the key that seals secrets; vault.key in the data directory where none is named.
    #[arg(long, value_name = "FILE", env = "AIRLOCK_VAULT_KEY_FILE")]
    pub(crate) vault_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) repl: ReplArgs,
    /// `repl-server` has only some.
    #[arg(skip)]
    pub(crate) doors: Doors,
}

/// What the REPL's evaluators are given.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ReplArgs {
    /// A script that every new evaluator of the REPL runs first; it may register commands.
    #[arg(long = "repl-script", value_name = "FILE")]
    scripts: Vec<PathBuf>,
    /// Tells the REPL's clients where on this machine the files of commands lie.
    #[arg(long)]
    artifact_paths: bool,
    /// How fast the clock of the REPL's watches ticks.
    #[arg(long, value_name = "HZ", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1000))]
    frames_per_second: u32,
}

impl Args {
    /// What nobody said anything about.
    pub(crate) fn usual() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            data_dir: None,
            demo: false,
            config: None,
            no_auth: false,
            no_model_answers: false,
            exec: false,
            keep_for: KEEP_FOR,
            keep_bytes: KEEP_BYTES,
            keep_runners: false,
            memory_budget: None,
            enclave_tools: vec![],
            allowed_hosts: vec![],
            public_url: None,
            vault_key: None,
            repl: ReplArgs::default(),
            doors: Doors::All,
        }
    }
}

/// How long finished executions stay readable where nobody says.
const KEEP_FOR: Duration = Duration::from_secs(30 * 24 * 3_600);

/// What the journal may take where nobody says.
const KEEP_BYTES: u64 = 4 << 30;

/// Serves, and tells how it ended.
pub(crate) fn serve(args: Args) -> Exit {
    if args.no_auth && !args.listen.ip().is_loopback() {
        print::note(&format!("--no-auth works on loopback only, and {} is not", args.listen.ip()));
        return Exit::Usage;
    }
    let Some(data_dir) = args.data_dir.clone().or_else(data_directory::usual) else {
        print::note("neither HOME nor --data-dir says where to keep what must last");
        return Exit::Usage;
    };
    print::start_tracing();
    // Connections have lanes of their own besides.
    let served =
        runtime::one_thread().and_then(|runtime| runtime::finish(runtime, run(args, &data_dir)));
    match served {
        Ok(()) => Exit::Good,
        Err(error) => {
            print::note(&format!("{error:#}"));
            Exit::Failed
        }
    }
}

async fn run(args: Args, data_dir: &Path) -> anyhow::Result<()> {
    // From here on a signal means "stop in order", also while we start.
    let mut signals = Signals::listen()?;
    let store = open(data_dir, args.doors)?;
    let result = attend(args, data_dir, &store, &mut signals).await;
    let _ = tokio::time::timeout(STOPPING_MAX, store.close()).await;
    result
}

async fn attend(
    args: Args,
    data_dir: &Path,
    store: &SqliteStore,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    let doors = args.doors;
    let lanes = Lanes::start().context("could not start threads")?;
    let housing = Housing::open(&config_files(args.config.as_deref(), data_dir), args.exec)?;
    let engine = engine(&args, data_dir, store, &housing).await?;
    let sources = match open_sources(&args, data_dir, &engine, store).await {
        Ok(sources) => sources,
        Err(error) => {
            engine.shutdown().await;
            return Err(error);
        }
    };
    let config = match config(&args, &engine, data_dir, store).await {
        Ok(config) => server::Config {
            lanes: lanes.handles(),
            sources: Some(sources.clone()),
            exec_server: if args.exec { housing.exec_server() } else { None },
            ..config
        },
        Err(error) => {
            tokio::join!(sources.shutdown(), engine.shutdown());
            return Err(error);
        }
    };
    let server = match Server::start(config).await {
        Ok(server) => server,
        Err(error) => {
            tokio::join!(sources.shutdown(), engine.shutdown());
            return Err(anyhow::Error::new(error).context("could not start"));
        }
    };
    let url = server.url();
    if let Some(origin) = args.public_url.clone().or_else(|| Url::parse(&url).ok()) {
        sources.listens_at(origin);
    }
    store.set_owner_note(&url).context("could not say where we listen")?;
    // HotRepl's clients look for documents; it goes when we do.
    let _announced = (doors == Doors::Repl).then(|| announce(server.local_addr()));
    print::report(&format!("Airlock is ready at {url}"));
    if doors == Doors::Repl {
        print::note(&format!("the REPL is at {}", url.replacen("http", "ws", 1)));
    } else if let Ok(link) = server.sign_in_link().await {
        print::note(&format!("questions are decided at {link}"));
    }
    let notifier = Notifier::start(notify::Config {
        engine: engine.clone(),
        files: config_files(args.config.as_deref(), data_dir),
        url: url.clone(),
    });
    signals.next().await;
    let stopping = async {
        notifier.shutdown().await;
        tokio::join!(server.shutdown(), engine.shutdown());
        sources.shutdown().await;
        housing.shutdown().await;
    };
    if tokio::time::timeout(STOPPING_MAX, stopping).await.is_err() {
        tracing::warn!("stopped before everything had ended; the journal has it");
    }
    Ok(())
}

fn announce(listens: SocketAddr) -> Option<Announced> {
    Announced::write(listens, Clock::system().now()).unwrap_or_else(|error| {
        tracing::warn!(kind = %error.kind(), "could not say to HotRepl's clients where we listen");
        None
    })
}

fn open(data_dir: &Path, doors: Doors) -> anyhow::Result<SqliteStore> {
    let shown = data_dir.display();
    SqliteStore::open(data_dir).map_err(|error| {
        if let OpenError::Owned { note } = &error
            && note.starts_with("http")
        {
            let socket = note.replacen("http", "ws", 1);
            return match doors {
                Doors::All => {
                    anyhow::anyhow!("a server already owns {shown}: it listens at {note}")
                }
                Doors::Repl => {
                    anyhow::anyhow!("a server already owns {shown}: its REPL is at {socket}/repl")
                }
            };
        }
        anyhow::Error::new(error).context(format!("could not open {shown}"))
    })
}

async fn engine(
    args: &Args,
    data_dir: &Path,
    store: &SqliteStore,
    housing: &Housing,
) -> anyhow::Result<Engine> {
    let mut sources: Vec<Arc<dyn tools::Source>> = vec![];
    if args.demo {
        sources.push(Arc::new(Demo::new(data_dir)));
    }
    let catalogue = Catalogue::new(sources)?;
    housing.offer(&catalogue)?;
    let files = config_files(args.config.as_deref(), data_dir);
    let (clock, records) = (Clock::system(), Arc::new(store.clone()));
    let usual = Limits::default();
    let (policy, limits) = sources::configured(&files, &*records, clock.now(), usual)
        .await
        .map_err(|why| anyhow::anyhow!("the configuration is wrong: {why}"))?;
    let policies = Arc::new(Policies::open(records, policy).await?);
    let shown = Arc::clone(&policies);
    let shows = move |found: &Found| shown.live().shows(&found.path(), found.traits());
    catalogue.add(Arc::new(Builtin::new(&catalogue, Arc::new(shows))))?;
    let age_ms_max = u64::try_from(args.keep_for.as_millis()).unwrap_or(u64::MAX);
    let retention = Retention { age_ms_max, bytes_max: args.keep_bytes };
    let mut config =
        Config { policies, limits, clock, retention, ..Config::new(store.clone(), catalogue) };
    config.sandbox.reuse = args.keep_runners;
    if let Some(bytes) = args.memory_budget {
        config.sandbox.memory_budget_bytes = bytes;
    }
    Ok(Engine::start(config).await?)
}

/// What configuration files and earlier days say that there is.
async fn open_sources(
    args: &Args,
    data_dir: &Path,
    engine: &Engine,
    store: &SqliteStore,
) -> anyhow::Result<Sources> {
    let vault =
        Vault::open(Arc::new(store.clone()), key_place(args.vault_key.as_deref(), data_dir));
    let vault = vault.await?;
    if let Some(why) = vault.status().await?.trouble {
        print::note(&format!(
            "WARNING: the vault is locked, and connections that need it do not work: {why}"
        ));
    }
    let setup = Setup {
        engine: engine.clone(),
        usual: Limits::default(),
        records: Arc::new(store.clone()),
        files: config_files(args.config.as_deref(), data_dir),
        minding: Minding::ThisBinary,
        vault,
        http: HttpClient::default(),
        serves: true,
    };
    let sources = Sources::start(setup).await?;
    engine.catalogue().add(Arc::new(Management::new(sources.clone())))?;
    Ok(sources)
}

/// Where the key of the vault is.
pub(crate) fn key_place(named: Option<&Path>, data_dir: &Path) -> KeyPlace {
    KeyPlace::File(named.map_or_else(|| data_dir.join("vault.key"), Path::to_owned))
}

fn allowed_hosts(args: &Args) -> Vec<String> {
    let public = args.public_url.as_ref().and_then(Url::host_str).map(str::to_owned);
    args.allowed_hosts.iter().cloned().chain(public).collect()
}

fn public_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match (url.scheme(), url.path()) {
        ("http" | "https", "/") => Ok(url),
        _ => Err("it is http:// or https://, a host, and no path".into()),
    }
}

/// The file that is named, or the project's over the user's own.
pub(crate) fn config_files(named: Option<&Path>, data_dir: &Path) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named.to_owned()];
    }
    let here = std::env::current_dir().ok();
    let project = here.and_then(|here| sources::project_file(&here));
    project.into_iter().chain(sources::user_file()).chain([data_dir.join("airlock.toml")]).collect()
}

async fn config(
    args: &Args,
    engine: &Engine,
    data_dir: &Path,
    store: &SqliteStore,
) -> anyhow::Result<server::Config> {
    let clock = Clock::system();
    let auth = if args.no_auth {
        print::note(
            "WARNING: --no-auth: every program on this machine, and every page that gets past the \
             browser, may run programs and answer their questions",
        );
        Auth::Off
    } else {
        if let Some(folder) = server::auth::first_tokens(store, data_dir, clock.now()).await? {
            let folder = folder.display();
            print::note(&format!("the first tokens are in {folder}/admin and {folder}/run"));
        }
        Auth::Tokens { environment: std::env::var("AIRLOCK_TOKEN").ok() }
    };
    Ok(server::Config {
        listen: args.listen,
        auth,
        allowed_hosts: allowed_hosts(args),
        enclave_tools: args.enclave_tools.iter().cloned().collect(),
        model_answers: !args.no_model_answers,
        clock,
        repl: repl_settings(args, data_dir)?,
        doors: args.doors,
        ..server::Config::new(engine.clone(), store.clone())
    })
}

fn repl_settings(args: &Args, data_dir: &Path) -> anyhow::Result<ReplSettings> {
    let read = |path: &PathBuf| {
        let shown = path.display();
        std::fs::read_to_string(path).with_context(|| format!("could not read the script {shown}"))
    };
    let scripts: Vec<String> = args.repl.scripts.iter().map(read).collect::<Result<_, _>>()?;
    Ok(ReplSettings {
        scripts: Arc::new(scripts),
        artifact_paths: args.repl.artifact_paths.then(|| data_dir.join("blobs")),
        demo: args.demo,
        frames_per_second: args.repl.frames_per_second.max(1),
    })
}

fn enclave_tool(text: &str) -> Result<(ToolPath, ToolPath), String> {
    let (name, tool) = text.split_once('=').ok_or("it must be NAME=TOOL")?;
    let parse = |text: &str| ToolPath::parse(text).map_err(|why| why.to_string());
    Ok((parse(name)?, parse(tool)?))
}

/// Less than one program's share would let nobody in.
fn memory_budget(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        bytes if bytes < sandbox::MEMORY_BYTES_DEFAULT => {
            Err("a program counts with 64MiB: there is no room for one".into())
        }
        bytes => Ok(bytes),
    }
}

/// What tells us to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
