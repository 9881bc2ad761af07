//! `airlock serve`: the server, until it receives a signal to stop.

mod admin_token;
mod args;
mod build;
mod data_loss;
mod port_owner;
mod settings;
mod signals;
mod supervisor;
mod takeover;

pub(crate) use args::{Args, ReplArgs};

use crate::doctor::hiding::VISIBLE_FILES;
use crate::notify::{self, QuestionNotifier};
use crate::process_host::ProcessHost;
use crate::repl::InstanceFile;
use crate::verb::{CommandVerb, HelpGroup};
use crate::{VerbExit, config_files, data_directory, print, runtime, trust};
use anyhow::Context as _;
use build::{config, engine, open_sources};
use engine::Clock;
use server::settings::{server_account, shared_account};
use server::{DoorSelection, RunningServer};
use signals::StopSignals;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use store::sqlite::SqliteStore;
use tools::http::ApiClient;
use url::Url;

/// A service manager kills a service soon after its stop signal: unfinished work is in the journal anyway.
const STOPPING_MAX: Duration = Duration::from_millis(4_500);

impl CommandVerb for Args {
    const NAME: &'static str = "serve";
    const HELP_PLACE: (HelpGroup, u8) = (HelpGroup::Server, 1);

    fn run(self) -> VerbExit {
        serve(self)
    }
}

/// Serves until the end, and returns the exit.
pub(crate) fn serve(args: Args) -> VerbExit {
    if let Some(listen) = args.listen.filter(|listen| args.no_auth && !listen.ip().is_loopback()) {
        print::error(&format!("--no-auth works on loopback only, and {} is not", listen.ip()));
        return VerbExit::Usage;
    }
    let Some(data_dir) = args.data_dir.clone().or_else(data_directory::usual) else {
        print::error("the data directory is unknown: set HOME, or name it with --data-dir");
        return VerbExit::Usage;
    };
    let data_dir = config_files::absolute(&data_dir);
    print::start_tracing();
    let served =
        runtime::threads().and_then(|runtime| runtime::finish(runtime, run(args, &data_dir)));
    match served {
        Ok(()) => VerbExit::Good,
        Err(error) => {
            print::error(&format!("{error:#}"));
            VerbExit::of_error(&error, VerbExit::Failed)
        }
    }
}

async fn run(args: Args, data_dir: &Path) -> anyhow::Result<()> {
    // From here on a signal means an orderly stop, also during the start.
    let mut signals = StopSignals::listen()?;
    settings::check_command_line(&args, data_dir)?;
    let store = takeover::open(&args, data_dir)?;
    let result = serve_until_stopped(args, data_dir, &store, &mut signals).await;
    let _ = tokio::time::timeout(STOPPING_MAX, store.close()).await;
    result
}

async fn serve_until_stopped(
    args: Args,
    data_dir: &Path,
    store: &SqliteStore,
    signals: &mut StopSignals,
) -> anyhow::Result<()> {
    let doors = args.doors;
    let settings = settings::read(&args, data_dir, store).await?;
    let files = settings.files();
    trust::ask_about(&files)?;
    let listen = listen_address(&args, &settings)?;
    // Before anything is written: a start that fails leaves no tokens and no settings.
    let listener = server::bind(listen).await.map_err(port_owner::explain)?;
    let housing = ProcessHost::open(&files, settings.vault_key(), args.exec)?;
    let http = ApiClient::default();
    http.rules().add_listener(listener.local_addr().context("could not listen")?);
    data_loss::announce(store).await?;
    let engine = engine(&args, data_dir, store, &housing, &settings).await?;
    if !args.started_by_client {
        settings.record(store, Clock::system().now()).await?;
    }
    let sources = match open_sources(&settings, data_dir, &engine, (store, &http)).await {
        Ok(sources) => sources,
        Err(error) => {
            engine.shutdown().await;
            return Err(error);
        }
    };
    let config = match config(&args, &engine, data_dir, store, &settings).await {
        Ok(mut config) => {
            config.listen = listen;
            config.sources = Some(sources.clone());
            if args.exec {
                config.doors.exec_server = housing.exec_server(http.rules());
            }
            config
        }
        Err(error) => {
            tokio::join!(sources.shutdown(), engine.shutdown());
            return Err(error);
        }
    };
    let server = match RunningServer::start_on(listener, config).await {
        Ok(server) => server,
        Err(error) => {
            tokio::join!(sources.shutdown(), engine.shutdown());
            return Err(anyhow::Error::new(error).context("could not start"));
        }
    };
    if let Ok(origin) = Url::parse(server.origin().as_str()) {
        sources.listens_at(origin);
    }
    store.set_owner_note(&server.url()).context("could not say where we listen")?;
    // HotRepl's clients search for instance files; the file is removed at the end.
    let _announced = (doors == DoorSelection::Repl).then(|| announce(server.local_addr()));
    report_ready(&server, doors, args.started_by_client, &settings).await;
    if let Some(why) = housing.visible_files(data_dir).await {
        print::print_note(&format!("WARNING: {VISIBLE_FILES} ({why})"));
    }
    let origin = server.origin().to_string();
    let (notified, url) = (engine.clone(), origin);
    let notifier = QuestionNotifier::start(notify::Config { engine: notified, files, url, http });
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

/// The recorded address; a server with the REPL only may have another.
fn listen_address(args: &Args, settings: &settings::StartSettings) -> anyhow::Result<SocketAddr> {
    match args.listen.filter(|_| args.doors == DoorSelection::Repl) {
        Some(listen) => Ok(listen),
        None => settings.listen(),
    }
}

/// Prints where the server listens, and where people decide.
async fn report_ready(
    server: &RunningServer,
    doors: DoorSelection,
    started_by_client: bool,
    settings: &settings::StartSettings,
) {
    let url = server.url();
    print::report(&format!("Airlock is ready at {url}"));
    if doors == DoorSelection::Repl {
        print::print_note(&format!("the REPL is at {}", url.replacen("http", "ws", 1)));
    } else if settings.is_operator_mode() || started_by_client {
        // Other accounts may read a log: a person who needs a link requests one.
        print::print_note("sign in with airlock sign-in, under the account of this server");
    } else if let Ok(link) = server.sign_in_link().await {
        print::print_note(&format!("questions are decided at {link}"));
    }
    warn_of_shared_account(settings);
}

fn announce(listens: SocketAddr) -> Option<InstanceFile> {
    InstanceFile::write(listens, Clock::system().now()).unwrap_or_else(|error| {
        tracing::warn!(kind = %error.kind(), "could not say to HotRepl's clients where we listen");
        None
    })
}

/// Warns in one line, because nothing else protects the server in that configuration.
fn warn_of_shared_account(settings: &settings::StartSettings) {
    if let Some(why) = shared_account(&server_account()).filter(|_| !settings.is_operator_mode()) {
        print::print_note(&format!(
            "WARNING: agents may share this server's account ({why}), and then can answer for you; docs/security.md says \
             how to separate them"
        ));
    }
}
