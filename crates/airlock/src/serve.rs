//! `airlock serve`: the server, until it receives a signal to stop.

mod args;
mod build;
mod signals;

pub(crate) use args::{Args, ReplArgs};
pub(crate) use build::{config_files, key_place};

use crate::housing::Housing;
use crate::notify::{self, Notifier};
use crate::repl::Announced;
use crate::{Exit, data_directory, print, runtime};
use anyhow::Context as _;
use build::{config, engine, open_sources};
use engine::Clock;
use server::{Doors, Lanes, Server};
use signals::StopSignals;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use store::sqlite::{OpenError, SqliteStore};
use url::Url;

/// Whoever stops a service kills it soon after: what is not done by then is in the journal anyway.
const STOPPING_MAX: Duration = Duration::from_millis(4_500);

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
    let mut signals = StopSignals::listen()?;
    let store = open(data_dir, args.doors)?;
    let result = attend(args, data_dir, &store, &mut signals).await;
    let _ = tokio::time::timeout(STOPPING_MAX, store.close()).await;
    result
}

async fn attend(
    args: Args,
    data_dir: &Path,
    store: &SqliteStore,
    signals: &mut StopSignals,
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
