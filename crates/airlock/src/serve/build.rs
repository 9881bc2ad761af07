//! Builds the parts of a server from its command line: engine, sources, and the server's configuration.

use super::settings::StartSettings;
use super::{Args, admin_token, data_loss};
use crate::exit::UsageError;
use crate::process_host::ProcessHost;
use crate::{management_review, print};
use anyhow::Context as _;
use credentials::{KeyPlace, Vault};
use engine::policies::PolicySet;
use engine::{Clock, Config, Engine, RetentionPolicy};
use lifecycle::{ExecutionLimits, Timestamp};
use server::auth::{SignInKey, WebOrigin};
use server::settings::{SettingsRegistry, close_admin_access};
use server::{AuthMode, DoorSelection, DoorSettings};
use sources::{ManagementTools, SourceRegistry, SourcesSetup};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::sqlite::SqliteStore;
use tools::builtin::BuiltinTools;
use tools::demo::DemoTools;
use tools::http::ApiClient;
use tools::{Catalogue, ChildSupervision, FoundTool, SourceKinds};
use url::Url;

pub(super) async fn engine(
    args: &Args,
    data_dir: &Path,
    store: &SqliteStore,
    housing: &ProcessHost,
    settings: &StartSettings,
) -> anyhow::Result<Engine> {
    let mut sources: Vec<Arc<dyn tools::Source>> = vec![];
    if args.demo {
        sources.push(Arc::new(DemoTools::new(data_dir)));
    }
    let catalogue = Catalogue::new(sources)?;
    housing.offer(&catalogue)?;
    let files = settings.files();
    let (clock, records) = (Clock::system(), Arc::new(store.clone()));
    let wrong = |why| UsageError(format!("the configuration is wrong: {why}"));
    let quotas = sources::quotas(&files).map_err(wrong)?;
    let usual = ExecutionLimits::default();
    let (policy, limits) =
        sources::configured(&files, &*records, clock.now(), usual).await.map_err(wrong)?;
    // Before any execution continues: no call may be approved by a policy that does not count.
    management_review::review(store, clock.now()).await?;
    let noted = Some(Arc::clone(&records) as _);
    let policies = Arc::new(PolicySet::open(records, policy).await?);
    let shown = Arc::clone(&policies);
    let shows = move |found: &FoundTool| shown.live().shows(&found.path(), found.traits());
    catalogue.add(Arc::new(BuiltinTools::new(&catalogue, Arc::new(shows))))?;
    let age_ms_max = u64::try_from(args.keep_for.as_millis()).unwrap_or(u64::MAX);
    let retention = RetentionPolicy { age_ms_max, bytes_max: args.keep_bytes };
    let mut config = Config {
        policies,
        limits,
        clock,
        retention,
        quotas,
        records: noted,
        ..Config::new(store.clone(), catalogue)
    };
    config.sandbox.reuse = args.keep_runners;
    if let Some(bytes) = args.memory_budget {
        config.sandbox.memory_budget_bytes = bytes;
    }
    if let Some(wait) = args.source_wait {
        config.source_wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    }
    Ok(Engine::prepare(config).await?)
}

/// Opens the sources that are configured or were added, and then recovers unfinished executions.
pub(super) async fn open_sources(
    settings: &StartSettings,
    data_dir: &Path,
    engine: &Engine,
    (store, http): (&SqliteStore, &ApiClient),
) -> anyhow::Result<SourceRegistry> {
    let key = KeyPlace::File(settings.vault_key().to_owned());
    let vault = Vault::open(Arc::new(store.clone()), key).await?;
    if let Some(why) = vault.status().await?.trouble {
        print::print_note(&format!(
            "WARNING: the vault is locked, and connections that need it do not work: {why}"
        ));
    }
    let setup = SourcesSetup {
        engine: engine.clone(),
        usual: ExecutionLimits::default(),
        kinds: SourceKinds::default(),
        records: Arc::new(store.clone()),
        descriptions: Some(data_dir.join("descriptions")),
        files: settings.files(),
        minding: ChildSupervision::ThisBinary,
        vault,
        http: http.clone(),
        serves: true,
    };
    let sources = SourceRegistry::start(setup).await?;
    engine.catalogue().add(Arc::new(ManagementTools::new(sources.clone())))?;
    // Unfinished executions continue only now: the tools that they may call are in the catalogue.
    if let Err(fault) = engine.recover().await {
        sources.shutdown().await;
        return Err(fault.into());
    }
    data_loss::announce_unreadable(&engine.unreadable());
    Ok(sources)
}

/// The origin of the public URL.
fn public_origin(public_url: Option<&Url>) -> anyhow::Result<Option<WebOrigin>> {
    let origin = public_url.map(|url| url.origin().ascii_serialization());
    Ok(origin.map(|origin| origin.parse()).transpose()?)
}

pub(super) async fn config(
    args: &Args,
    engine: &Engine,
    data_dir: &Path,
    store: &SqliteStore,
    settings: &StartSettings,
) -> anyhow::Result<server::Config> {
    // One clock: timestamps of the engine must not lie in the server's future.
    let clock = engine.clock().clone();
    let auth = if args.no_auth {
        print::print_note(
            "WARNING: --no-auth: every program on this machine, and every page of an origin named with \
             --allowed-origin, may run programs and answer their questions",
        );
        AuthMode::Off
    } else {
        let environment = admin_token::read(store).await?;
        first_tokens(store, data_dir, clock.now(), settings.is_operator_mode()).await?;
        warn_of_builtin_names(store).await?;
        AuthMode::Tokens { environment }
    };
    // Sign-in codes for browsers are minted by the routes of the full server only.
    let mints_codes = !args.no_auth && args.doors == DoorSelection::All;
    let sign_in_key = mints_codes.then(|| SignInKey::create(data_dir)).transpose()?;
    Ok(server::Config {
        listen: settings.listen()?,
        auth,
        sign_in_key,
        allowed_hosts: settings.allowed_hosts(),
        connections: settings.connections()?,
        settings: Some(SettingsRegistry::new(Arc::new(store.clone()), data_dir)),
        allowed_origins: settings.allowed_origins()?,
        public_origin: public_origin(settings.public_url().as_ref())?,
        answers: settings.answers(),
        clock,
        doors: DoorSettings {
            which: args.doors,
            enclave_tools: args.enclave_tools.iter().cloned().collect(),
            repl: repl_settings(args, data_dir)?,
            ..DoorSettings::default()
        },
        ..server::Config::new(engine.clone(), store.clone())
    })
}

/// Mints the first tokens. In operator mode no file contains an administrator's secret: not even one that an earlier start
/// wrote.
async fn first_tokens(
    store: &SqliteStore,
    data_dir: &Path,
    now: Timestamp,
    is_operator_mode: bool,
) -> anyhow::Result<()> {
    let minted = server::auth::first_tokens(store, data_dir, now).await?;
    if is_operator_mode {
        if server::auth::secret_file(data_dir, "admin").exists() {
            close_admin_access(store, data_dir).await?;
        }
        return Ok(());
    }
    if let Some(folder) = minted {
        let folder = folder.display();
        print::print_note(&format!("the first tokens are in {folder}/admin and {folder}/run"));
    }
    Ok(())
}

/// Reports tokens that predate the refusal of built-in caller names.
async fn warn_of_builtin_names(store: &SqliteStore) -> anyhow::Result<()> {
    for token in server::auth::list_tokens(store).await? {
        let (name, caller) = (&token.name, token.name.caller());
        if caller.0 != name.as_str() {
            print::print_note(&format!(
                "WARNING: the token {name} has the name of a built-in caller and continues as {caller}; replace it with one \
                 of another name"
            ));
        }
    }
    Ok(())
}

fn repl_settings(args: &Args, data_dir: &Path) -> anyhow::Result<::repl::ReplSettings> {
    let read = |path: &PathBuf| {
        let shown = path.display();
        std::fs::read_to_string(path).with_context(|| format!("could not read the script {shown}"))
    };
    let scripts: Vec<String> = args.repl.scripts.iter().map(read).collect::<Result<_, _>>()?;
    Ok(::repl::ReplSettings {
        scripts: Arc::new(scripts),
        artifact_paths: args.repl.artifact_paths.then(|| data_dir.join("blobs")),
        demo: args.demo,
        frames_per_second: args.repl.frames_per_second.max(1),
    })
}
