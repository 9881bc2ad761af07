//! The registry of sources, and all operations on it: add, connect, refresh, remove.

use crate::config::ReplCommands;
use crate::config_files::ConfigFiles;
use crate::descriptions::DescriptionStore;
use crate::engine_host::EngineHost;
use crate::live::unreadable;
use crate::source_state::{ConnectionView, SourceState, view};
use crate::{records, tool_first_seen, watch};
use credentials::records::CONNECTION;
use credentials::{
    ConnectionConfig, ConnectionProof, CredentialError, CredentialOffer, CredentialSetup,
    Credentials, Vault, VaultError, VaultImport, connection_from_offer,
};
use engine::Engine;
use lifecycle::{ExecutionLimits, ToolPath};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use store::{RecordStore, StoreError};
use tokio::sync::{self, Mutex};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::http::ApiClient;
use tools::{
    CatalogueChange, ChildSupervision, DetectedSource, IntegrationSlug, SourceConfig, SourceKinds,
    ToolCredential, openapi,
};
use url::Url;

/// Maximum number of sources and connections, configured and added: people do not have more.
const SOURCES_MAX: usize = 1_000;

/// Names that belong to built-in tools. A source of such a name could replace a management tool.
const RESERVED: [&str; 2] = ["executor", "management"];

/// The dependencies of a source registry.
#[derive(Clone)]
pub struct SourcesSetup {
    /// The engine that the catalogue, the policies and the limits belong to.
    pub engine: Engine,
    /// The default limits of programs.
    pub usual: ExecutionLimits,
    /// The kinds of sources.
    pub kinds: SourceKinds,
    /// Stores sources that are added.
    pub records: Arc<dyn RecordStore>,
    /// Where the last good description of each source is stored; none stores nothing.
    pub descriptions: Option<PathBuf>,
    /// Configuration files, the most important first.
    pub files: ConfigFiles,
    /// How child processes are supervised.
    pub minding: ChildSupervision,
    /// Stores secrets.
    pub vault: Vault,
    /// The HTTP client.
    pub http: ApiClient,
    /// Whether browsers can reach the server: see [`SourceRegistry::listens_at`].
    pub serves: bool,
}

impl std::fmt::Debug for SourcesSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("files", &self.files).finish_non_exhaustive()
    }
}

/// A handle to the sources of a server. Clones share them.
#[derive(Clone)]
pub struct SourceRegistry(pub(crate) Arc<SourcesInner>);

pub(crate) struct SourcesInner {
    pub(crate) setup: SourcesSetup,
    pub(crate) credentials: Arc<Credentials>,
    /// Locked during a change.
    pub(crate) states: Mutex<BTreeMap<IntegrationSlug, SourceState>>,
    /// Why the newest edit of a configuration file does not apply.
    pub(crate) trouble: RwLock<Option<String>>,
    /// Aliases by which programs of enclave clients call tools.
    pub(crate) aliases: RwLock<Arc<BTreeMap<ToolPath, ToolPath>>>,
    /// Files that project files name and that trust covers: they are watched too.
    pub(crate) named_files: RwLock<Vec<PathBuf>>,
    /// REPL commands of the configuration files.
    pub(crate) commands: sync::watch::Sender<Arc<ReplCommands>>,
    /// Sources whose first reading is in progress.
    pub(crate) loading: sync::watch::Sender<Vec<IntegrationSlug>>,
    pub(crate) descriptions: DescriptionStore,
    pub(crate) closing: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// Why an operation on a source failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SourceError {
    /// The source does not exist.
    #[error("there is no source {0}")]
    Unknown(String),
    /// The connection does not exist.
    #[error("there is no connection {0}")]
    NoConnection(String),
    /// The name is taken.
    #[error("there is a source {0} already")]
    Exists(String),
    /// The source is in a configuration file and can be changed only there.
    #[error("{0} stands in a configuration file; change it there")]
    Configured(String),
    /// The request is invalid.
    #[error("{0}")]
    Wrong(String),
    /// The source cannot be read.
    #[error("source {source_name} cannot be read: {why}")]
    Unreadable {
        /// The name of the source.
        source_name: String,
        /// The reason.
        why: String,
    },
    /// A secret could not be stored or opened.
    #[error("{0}")]
    Vault(VaultError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CredentialError> for SourceError {
    fn from(error: CredentialError) -> Self {
        match error {
            CredentialError::Invalid(why) => Self::Wrong(why),
            CredentialError::Vault(error) => error.into(),
        }
    }
}

impl From<VaultError> for SourceError {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Store(error) => Self::Store(error),
            error @ (VaultError::Locked(_)
            | VaultError::Damaged(_)
            | VaultError::TooLong
            | VaultError::Backup(_)
            | VaultError::Machine(_)) => Self::Vault(error),
        }
    }
}

impl SourceRegistry {
    /// Adds everything that is configured or stored to the catalogue: first by its stored description, and again
    /// as soon as it has been read, without waiting for that.
    pub async fn start(setup: SourcesSetup) -> Result<Self, StoreError> {
        match credentials::records::seal_connections(&*setup.records, &setup.vault).await {
            Ok(()) => {}
            Err(VaultError::Store(error)) => return Err(error),
            Err(error) => tracing::error!("secrets of earlier days stay as they are: {error}"),
        }
        let (closing, tasks) = (CancellationToken::new(), TaskTracker::new());
        let credentials = Arc::new(Credentials::new(credential_setup(&setup, &closing, &tasks)));
        let descriptions = DescriptionStore::new(setup.descriptions.clone(), setup.kinds.clone());
        let sources = Self(Arc::new(SourcesInner {
            setup,
            credentials,
            states: Mutex::default(),
            trouble: RwLock::default(),
            aliases: RwLock::default(),
            named_files: RwLock::default(),
            commands: sync::watch::Sender::default(),
            loading: sync::watch::Sender::default(),
            descriptions,
            closing,
            tasks,
        }));
        let seen = watch::file_signatures(&sources.0.setup.files.watched());
        sources.apply().await?;
        if sources.trouble().is_none() {
            let states = sources.0.states.lock().await;
            sources.0.descriptions.retain(states.keys());
        }
        if let Err(trouble) = sources.0.credentials.resume_flows().await {
            tracing::warn!(
                "what people were asked to visit is not looked after: {}",
                trouble.message
            );
        }
        let watching = sources.clone();
        let closing = sources.0.closing.clone();
        sources
            .0
            .tasks
            .spawn(closing.run_until_cancelled_owned(async move { watching.watch(seen).await }));
        Ok(sources)
    }

    /// Why the newest edit of a configuration file does not apply.
    pub fn trouble(&self) -> Option<String> {
        self.0.trouble.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The current aliases by which programs of enclave clients call tools.
    pub fn aliases(&self) -> Arc<BTreeMap<ToolPath, ToolPath>> {
        Arc::clone(&self.0.aliases.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The REPL commands of the configuration files, with updates.
    pub fn commands(&self) -> sync::watch::Receiver<Arc<ReplCommands>> {
        self.0.commands.subscribe()
    }

    /// Waits until each source has been read or has failed.
    pub async fn tried(&self) {
        let mut loading = self.0.loading.subscribe();
        // Fails only during shutdown.
        let _ = loading.wait_for(Vec::is_empty).await;
    }

    /// Names of the sources whose first reading since the start is in progress, sorted.
    pub fn loading(&self) -> Vec<String> {
        let names: BTreeSet<_> =
            self.0.loading.borrow().iter().map(IntegrationSlug::to_string).collect();
        names.into_iter().collect()
    }

    /// Names of the sources without a stored or read description, sorted.
    pub fn undescribed(&self) -> Vec<String> {
        let snapshot = self.0.setup.engine.catalogue().snapshot();
        snapshot.undescribed().map(str::to_owned).collect()
    }

    /// The error of each source that could not be read, by name.
    pub async fn troubles(&self) -> Vec<(String, String)> {
        let snapshot = self.0.setup.engine.catalogue().snapshot();
        let states = self.0.states.lock().await;
        let trouble = |slug: &IntegrationSlug| {
            let why = snapshot.card(slug.as_str())?.trouble.clone()?;
            Some((slug.to_string(), why))
        };
        states.keys().filter_map(trouble).collect()
    }

    /// Determines the kind of an address.
    pub async fn detect(&self, url: &str) -> Result<DetectedSource, String> {
        self.0.setup.kinds.detect(url, &self.0.setup.http).await
    }

    /// Previews the import of an inline description.
    pub async fn preview(&self, text: String, source: Option<Url>) -> Result<Value, String> {
        openapi::preview(text, source).await
    }

    /// Previews the import of the description at an address.
    pub async fn preview_at(&self, url: &str) -> Result<Value, String> {
        openapi::preview_at(url, &self.0.setup.http).await
    }

    /// Whether there is a source of this name.
    pub async fn has(&self, slug: &IntegrationSlug) -> bool {
        self.0.states.lock().await.contains_key(slug)
    }

    /// Reads a source and stores it. A source that cannot be read is not stored.
    pub async fn add(
        &self,
        slug: &IntegrationSlug,
        spec: SourceConfig,
        connect: bool,
    ) -> Result<CatalogueChange, SourceError> {
        self.has_room(slug).await?;
        // Other requests continue while it is read.
        let opened = match self.open(&spec, &ToolCredential::none()).await {
            Ok(opened) => Some(opened),
            // It is read as soon as there is a credential.
            Err(error) if error.wants_credential => None,
            Err(error) => return Err(unreadable(slug, error.message)),
        };
        let mut states = self.0.states.lock().await;
        if states.contains_key(slug) {
            return Err(SourceError::Exists(slug.to_string()));
        }
        let records = &*self.0.setup.records;
        records::put_source(records, slug.as_str(), &spec).await?;
        let mut connections = BTreeMap::new();
        if connect {
            let main = ConnectionConfig::default();
            credentials::records::put(records, CONNECTION, &format!("{slug}/org/main"), &main)
                .await?;
            connections.insert(("org".to_owned(), "main".to_owned()), (main, false));
        }
        let mut entry = SourceState::new(spec, connections);
        entry.watching = self.0.closing.child_token();
        let change = match opened {
            Some(opened) => self.publish_source(slug, &mut entry, opened).await?,
            None => {
                self.open_later(slug, &entry);
                CatalogueChange::default()
            }
        };
        states.insert(slug.clone(), entry);
        Ok(change)
    }

    async fn has_room(&self, slug: &IntegrationSlug) -> Result<(), SourceError> {
        if RESERVED.contains(&slug.as_str()) {
            return Err(SourceError::Wrong(format!("{slug} is the name of built-in tools")));
        }
        let states = self.0.states.lock().await;
        if states.contains_key(slug) {
            return Err(SourceError::Exists(slug.to_string()));
        }
        if states.len() >= SOURCES_MAX {
            let why = format!("there are {SOURCES_MAX} sources, the most there can be");
            return Err(SourceError::Wrong(why));
        }
        Ok(())
    }

    /// Removes a source and its connections.
    pub async fn remove(&self, slug: &IntegrationSlug) -> Result<(), SourceError> {
        let mut states = self.0.states.lock().await;
        let entry = states.get(slug).ok_or_else(|| SourceError::Unknown(slug.to_string()))?;
        if entry.is_configured {
            return Err(SourceError::Configured(slug.to_string()));
        }
        let records = &*self.0.setup.records;
        records::remove_source(records, slug.as_str()).await?;
        tool_first_seen::remove_ages(records, slug).await?;
        self.0.descriptions.remove(slug);
        for proof in entry.proofs(&self.0.credentials, slug) {
            self.unseal(&proof).await?;
        }
        if let Some(entry) = states.remove(slug) {
            self.remove_source(slug, entry).await;
        }
        Ok(())
    }

    /// Deletes the records and secrets of a connection.
    async fn unseal(&self, proof: &ConnectionProof) -> Result<(), SourceError> {
        for name in proof.connection.sealed_names() {
            self.0.setup.vault.remove(&name).await?;
        }
        self.0.credentials.forget_grant(&proof.key).await?;
        self.0.credentials.drop_current(&proof.key);
        credentials::records::remove(&*self.0.setup.records, CONNECTION, &proof.key.to_string())
            .await?;
        // The key of earlier versions, which would otherwise be found again.
        let old = format!("{}/{}", proof.key.slug, proof.key.name);
        Ok(credentials::records::remove(&*self.0.setup.records, CONNECTION, &old).await?)
    }

    /// The credential provider of one connection.
    pub(crate) async fn proof(
        &self,
        slug: &IntegrationSlug,
        owner: &str,
        name: &str,
    ) -> Result<ConnectionProof, SourceError> {
        let states = self.0.states.lock().await;
        let entry = states.get(slug).ok_or_else(|| SourceError::Unknown(slug.to_string()))?;
        let proof = entry.proof(&self.0.credentials, slug, (owner, name));
        proof.ok_or_else(|| SourceError::NoConnection(format!("{slug}.{owner}.{name}")))
    }

    /// Sets the address where browsers reach this server.
    pub fn listens_at(&self, origin: Url) {
        self.0.credentials.listens_at(origin);
    }

    /// The credentials of its connections.
    pub fn credentials(&self) -> &Arc<Credentials> {
        &self.0.credentials
    }

    /// The vault with its secrets.
    pub fn vault(&self) -> &Vault {
        &self.0.setup.vault
    }

    /// Imports a vault backup, with its connections.
    pub async fn import(&self, passphrase: &str, text: &str) -> Result<VaultImport, SourceError> {
        let done = self.0.setup.vault.import(passphrase, text).await?;
        self.apply().await?;
        Ok(done)
    }

    /// The connection for the values that a user offers, by the authentication methods of the source.
    pub fn offered(
        &self,
        slug: &IntegrationSlug,
        offer: CredentialOffer,
    ) -> Result<ConnectionConfig, String> {
        let snapshot = self.0.setup.engine.catalogue().snapshot();
        let integration = snapshot.integration(slug.as_str());
        let own = integration.map(|integration| integration.auth_methods()).unwrap_or_default();
        connection_from_offer(&own, offer)
    }

    /// Removes a connection. Returns whether it existed.
    pub async fn disconnect(
        &self,
        slug: &IntegrationSlug,
        owner: &str,
        name: &str,
    ) -> Result<bool, SourceError> {
        let mut states = self.0.states.lock().await;
        let entry = states.get_mut(slug).ok_or_else(|| SourceError::Unknown(slug.to_string()))?;
        let place = (owner.to_owned(), name.to_owned());
        match entry.connections.get(&place) {
            None => return Ok(false),
            Some((_, true)) => {
                return Err(SourceError::Configured(format!("{slug}.{owner}.{name}")));
            }
            Some((_, false)) => {}
        }
        if let Some(proof) = entry.proof(&self.0.credentials, slug, (owner, name)) {
            self.unseal(&proof).await?;
        }
        entry.connections.remove(&place);
        self.0.setup.engine.catalogue().bind(slug, entry.bound(&self.0.credentials, slug));
        Ok(true)
    }

    /// Every connection.
    pub async fn connections(&self) -> Vec<ConnectionView> {
        let states = self.0.states.lock().await;
        let views = states.iter().flat_map(|(slug, entry)| {
            entry
                .connections
                .iter()
                .map(move |((_, name), (connection, _))| view(slug, name, connection))
        });
        views.collect()
    }

    /// Closes every connection and ends every program.
    pub async fn shutdown(&self) {
        self.0.closing.cancel();
        let known = std::mem::take(&mut *self.0.states.lock().await);
        for (_, entry) in known {
            if let Some(server) = entry.server {
                server.close().await;
            }
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

fn credential_setup(
    setup: &SourcesSetup,
    closing: &CancellationToken,
    tasks: &TaskTracker,
) -> CredentialSetup {
    CredentialSetup {
        vault: setup.vault.clone(),
        http: setup.http.clone(),
        host: Arc::new(EngineHost(setup.engine.clone())),
        minding: setup.minding,
        serves: setup.serves,
        closing: closing.clone(),
        tasks: tasks.clone(),
    }
}

impl std::fmt::Debug for SourceRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sources")
    }
}
