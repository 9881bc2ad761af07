//! Builds the parts of a server from its command line: engine, sources, and the server's configuration.

use super::Args;
use crate::housing::Housing;
use crate::print;
use anyhow::Context as _;
use engine::policies::Policies;
use engine::{Clock, Config, Engine, Retention};
use lifecycle::Limits;
use server::{Auth, ReplSettings};
use sources::vault::{KeyPlace, Vault};
use sources::{Management, Setup, Sources};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::sqlite::SqliteStore;
use tools::builtin::Builtin;
use tools::demo::Demo;
use tools::http::HttpClient;
use tools::{Catalogue, Found, Minding};
use url::Url;

pub(super) async fn engine(
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
pub(super) async fn open_sources(
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

/// The file that is named, or the project's over the user's own.
pub(crate) fn config_files(named: Option<&Path>, data_dir: &Path) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named.to_owned()];
    }
    let here = std::env::current_dir().ok();
    let project = here.and_then(|here| sources::project_file(&here));
    project.into_iter().chain(sources::user_file()).chain([data_dir.join("airlock.toml")]).collect()
}

pub(super) async fn config(
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
        answers: args.answers(),
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
