//! The sources there are, and everything that happens to them: added, connected, read anew, removed.

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

/// Sources and connections, configured and kept: people do not have more.
const SOURCES_MAX: usize = 1_000;

/// Names under which built-in tools are found. A source of such a name could take the place of a management tool.
const RESERVED: [&str; 2] = ["executor", "management"];

/// What sources are made of.
#[derive(Clone)]
pub struct SourcesSetup {
    /// Whose catalogue their tools go to, and whose policies and limits the files speak about.
    pub engine: Engine,
    /// What programs may use where no file says otherwise.
    pub usual: ExecutionLimits,
    /// The kinds of sources.
    pub kinds: SourceKinds,
    /// Where what is added is kept.
    pub records: Arc<dyn RecordStore>,
    /// Where the last good description of each source is stored; none stores nothing.
    pub descriptions: Option<PathBuf>,
    /// Configuration files, the most important first.
    pub files: ConfigFiles,
    /// Who looks after programs that are started.
    pub minding: ChildSupervision,
    /// Where secrets are kept.
    pub vault: Vault,
    /// What the network is reached by.
    pub http: ApiClient,
    /// Whether browsers will find us: see [`SourceRegistry::listens_at`].
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
    /// One change at a time.
    pub(crate) states: Mutex<BTreeMap<IntegrationSlug, SourceState>>,
    /// Why the newest edit of a configuration file does not count.
    pub(crate) trouble: RwLock<Option<String>>,
    /// Other names by which enclave's programs call tools.
    pub(crate) aliases: RwLock<Arc<BTreeMap<ToolPath, ToolPath>>>,
    /// Files that project files name and that credentials covers: they are watched too.
    pub(crate) named_files: RwLock<Vec<PathBuf>>,
    /// Commands that the files give to the REPL.
    pub(crate) commands: sync::watch::Sender<Arc<ReplCommands>>,
    /// Sources whose first reading is under way.
    pub(crate) loading: sync::watch::Sender<Vec<IntegrationSlug>>,
    pub(crate) descriptions: DescriptionStore,
    pub(crate) closing: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// Why something was not done with a source.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SourceError {
    /// No such source.
    #[error("there is no source {0}")]
    Unknown(String),
    /// No such connection.
    #[error("there is no connection {0}")]
    NoConnection(String),
    /// The name is taken.
    #[error("there is a source {0} already")]
    Exists(String),
    /// It stands in a file, and only there can it be changed.
    #[error("{0} stands in a configuration file; change it there")]
    Configured(String),
    /// What was said does not make sense.
    #[error("{0}")]
    Wrong(String),
    /// It cannot be read.
    #[error("source {source_name} cannot be read: {why}")]
    Unreadable {
        /// Which.
        source_name: String,
        /// Why.
        why: String,
    },
    /// A secret could not be kept or opened.
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
    /// Puts everything that is configured or was added into the catalogue: what is stored about it first, and what
    /// it offers now as soon as it is read, without waiting for that.
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

    /// Why the newest edit of a configuration file does not count.
    pub fn trouble(&self) -> Option<String> {
        self.0.trouble.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Other names by which enclave's programs call tools, as the files say now.
    pub fn aliases(&self) -> Arc<BTreeMap<ToolPath, ToolPath>> {
        Arc::clone(&self.0.aliases.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Commands that the files give to the REPL, now and as they change.
    pub fn commands(&self) -> sync::watch::Receiver<Arc<ReplCommands>> {
        self.0.commands.subscribe()
    }

    /// Waits until each source has been read, or could not be.
    pub async fn tried(&self) {
        let mut loading = self.0.loading.subscribe();
        // Nobody is left to say otherwise where this fails.
        let _ = loading.wait_for(Vec::is_empty).await;
    }

    /// Names of the sources whose first reading since the start is under way, sorted.
    pub fn loading(&self) -> Vec<String> {
        let names: BTreeSet<_> =
            self.0.loading.borrow().iter().map(IntegrationSlug::to_string).collect();
        names.into_iter().collect()
    }

    /// Names of the sources of which there is no description, neither stored nor read, sorted.
    pub fn undescribed(&self) -> Vec<String> {
        let snapshot = self.0.setup.engine.catalogue().snapshot();
        snapshot.undescribed().map(str::to_owned).collect()
    }

    /// What is wrong with each source that could not be read, by name.
    pub async fn troubles(&self) -> Vec<(String, String)> {
        let snapshot = self.0.setup.engine.catalogue().snapshot();
        let states = self.0.states.lock().await;
        let trouble = |slug: &IntegrationSlug| {
            let why = snapshot.card(slug.as_str())?.trouble.clone()?;
            Some((slug.to_string(), why))
        };
        states.keys().filter_map(trouble).collect()
    }

    /// What an address seems to be.
    pub async fn detect(&self, url: &str) -> Result<DetectedSource, String> {
        self.0.setup.kinds.detect(url, &self.0.setup.http).await
    }

    /// What an inline description would become.
    pub async fn preview(&self, text: String, source: Option<Url>) -> Result<Value, String> {
        openapi::preview(text, source).await
    }

    /// What the description at an address would become.
    pub async fn preview_at(&self, url: &str) -> Result<Value, String> {
        openapi::preview_at(url, &self.0.setup.http).await
    }

    /// Whether there is a source of this name.
    pub async fn has(&self, slug: &IntegrationSlug) -> bool {
        self.0.states.lock().await.contains_key(slug)
    }

    /// Reads a source and keeps it. One that cannot be read is not kept.
    pub async fn add(
        &self,
        slug: &IntegrationSlug,
        spec: SourceConfig,
        connect: bool,
    ) -> Result<CatalogueChange, SourceError> {
        self.has_room(slug).await?;
        // Others go on while it is read.
        let opened = match self.open(&spec, &ToolCredential::none()).await {
            Ok(opened) => Some(opened),
            // It is read once there is a credential.
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

    /// Forgets a source and its connections.
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

    /// Forgets what a connection has in records and in the vault.
    async fn unseal(&self, proof: &ConnectionProof) -> Result<(), SourceError> {
        for name in proof.connection.sealed_names() {
            self.0.setup.vault.remove(&name).await?;
        }
        self.0.credentials.forget_grant(&proof.key).await?;
        self.0.credentials.drop_current(&proof.key);
        credentials::records::remove(&*self.0.setup.records, CONNECTION, &proof.key.to_string())
            .await?;
        // As it was kept in earlier days, and would be found again.
        let old = format!("{}/{}", proof.key.slug, proof.key.name);
        Ok(credentials::records::remove(&*self.0.setup.records, CONNECTION, &old).await?)
    }

    /// The proof of one connection.
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

    /// Browsers find this server there.
    pub fn listens_at(&self, origin: Url) {
        self.0.credentials.listens_at(origin);
    }

    /// The credentials of its connections.
    pub fn credentials(&self) -> &Arc<Credentials> {
        &self.0.credentials
    }

    /// Where its secrets are.
    pub fn vault(&self) -> &Vault {
        &self.0.setup.vault
    }

    /// Takes what a backup of a vault brings, connections too.
    pub async fn import(&self, passphrase: &str, text: &str) -> Result<VaultImport, SourceError> {
        let done = self.0.setup.vault.import(passphrase, text).await?;
        self.apply().await?;
        Ok(done)
    }

    /// The connection that somebody offers, by the ways that the source knows.
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

    /// Takes a credential away. Says whether it was there.
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

    /// Ends every connection and program.
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
