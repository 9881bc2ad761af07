//! The sources there are, and everything that happens to them: added, connected, read anew, removed.

use crate::config::{Connection, Source};
use crate::known::{ConnectionView, Known, view};
use crate::{ages, kept, open, watch};
use engine::Engine;
use lifecycle::{Limits, ToolPath};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use store::{Records, StoreError};
use tokio::sync::{self, Mutex};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::http::HttpClient;
use tools::{Change, ConnectionName, Credential, Minding, Slug};

/// Sources and connections, configured and kept: people do not have more.
const SOURCES_MAX: usize = 1_000;

/// What sources are made of.
#[derive(Clone)]
pub struct Setup {
    /// Whose catalogue their tools go to, and whose policies and limits the files speak about.
    pub engine: Engine,
    /// What programs may use where no file says otherwise.
    pub usual: Limits,
    /// Where what is added is kept.
    pub records: Arc<dyn Records>,
    /// Configuration files, the most important first.
    pub files: Vec<PathBuf>,
    /// Who looks after programs that are started.
    pub minding: Minding,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("files", &self.files).finish_non_exhaustive()
    }
}

/// A handle to the sources of a server. Clones share them.
#[derive(Clone)]
pub struct Sources(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) setup: Setup,
    pub(crate) http: HttpClient,
    /// One change at a time.
    pub(crate) known: Mutex<BTreeMap<Slug, Known>>,
    /// Why the newest edit of a configuration file does not count.
    pub(crate) trouble: RwLock<Option<String>>,
    /// Other names by which enclave's programs call tools.
    pub(crate) aliases: RwLock<Arc<BTreeMap<ToolPath, ToolPath>>>,
    /// Sources that nobody has tried to read yet.
    pub(crate) n_unread: sync::watch::Sender<usize>,
    pub(crate) closing: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// Why something was not done with a source.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SourceError {
    /// No such source.
    #[error("there is no source {0}")]
    Unknown(String),
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
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Sources {
    /// Opens everything that is configured or kept, without waiting for it.
    pub async fn start(setup: Setup) -> Result<Self, StoreError> {
        let sources = Self(Arc::new(Inner {
            setup,
            http: HttpClient::default(),
            known: Mutex::default(),
            trouble: RwLock::default(),
            aliases: RwLock::default(),
            n_unread: sync::watch::Sender::new(0),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }));
        let seen = watch::look(&sources.0.setup.files);
        sources.apply().await?;
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

    /// Waits until each source has been read, or could not be.
    pub async fn tried(&self) {
        let mut n_unread = self.0.n_unread.subscribe();
        // Nobody is left to say otherwise where this fails.
        let _ = n_unread.wait_for(|n| *n == 0).await;
    }

    /// What is wrong with each source that could not be read, by name.
    pub async fn troubles(&self) -> Vec<(String, String)> {
        let snapshot = self.0.setup.engine.catalogue().snapshot();
        let known = self.0.known.lock().await;
        let trouble = |slug: &Slug| {
            let why = snapshot.card(slug.as_str())?.trouble.clone()?;
            Some((slug.to_string(), why))
        };
        known.keys().filter_map(trouble).collect()
    }

    /// What an address seems to be.
    pub async fn detect(&self, url: &str) -> Result<crate::Detected, String> {
        open::detect(url, &self.0.http).await
    }

    /// What an inline description would become.
    pub fn preview(&self, text: &str) -> Result<Value, String> {
        open::preview(text)
    }

    /// Reads a source and keeps it. One that cannot be read is not kept.
    pub async fn add(
        &self,
        slug: &Slug,
        spec: Source,
        connect: bool,
    ) -> Result<Change, SourceError> {
        self.has_room(slug).await?;
        // Others go on while it is read.
        let opened = self.open(slug, &spec, &Credential::none()).await?;
        let mut known = self.0.known.lock().await;
        if known.contains_key(slug) {
            return Err(SourceError::Exists(slug.to_string()));
        }
        let records = &*self.0.setup.records;
        kept::put(records, kept::SOURCE, slug.as_str(), &spec).await?;
        let mut connections = BTreeMap::new();
        if connect {
            let main = Connection::default();
            kept::put(records, kept::CONNECTION, &format!("{slug}/main"), &main).await?;
            connections.insert("main".to_owned(), (main, false));
        }
        let mut entry = Known::new(spec, connections);
        entry.watching = self.0.closing.child_token();
        let change = self.show(slug, &mut entry, opened).await?;
        known.insert(slug.clone(), entry);
        Ok(change)
    }

    async fn has_room(&self, slug: &Slug) -> Result<(), SourceError> {
        let known = self.0.known.lock().await;
        if known.contains_key(slug) {
            return Err(SourceError::Exists(slug.to_string()));
        }
        if known.len() >= SOURCES_MAX {
            let why = format!("there are {SOURCES_MAX} sources, the most there can be");
            return Err(SourceError::Wrong(why));
        }
        Ok(())
    }

    /// Forgets a source and its connections.
    pub async fn remove(&self, slug: &Slug) -> Result<(), SourceError> {
        let mut known = self.0.known.lock().await;
        let entry = known.get(slug).ok_or_else(|| SourceError::Unknown(slug.to_string()))?;
        if entry.is_configured {
            return Err(SourceError::Configured(slug.to_string()));
        }
        let records = &*self.0.setup.records;
        kept::remove(records, kept::SOURCE, slug.as_str()).await?;
        ages::forget(records, slug).await?;
        for name in entry.connections.keys() {
            kept::remove(records, kept::CONNECTION, &format!("{slug}/{name}")).await?;
        }
        if let Some(entry) = known.remove(slug) {
            self.forget(slug, entry).await;
        }
        Ok(())
    }

    /// Binds a source by one more credential; one of the same name gives way.
    pub async fn connect(
        &self,
        slug: &Slug,
        name: &str,
        connection: Connection,
    ) -> Result<ConnectionView, SourceError> {
        let name = ConnectionName::normalised(name)
            .ok_or_else(|| SourceError::Wrong("a connection's name begins with a letter".into()))?;
        connection.owner().and_then(|_| connection.credential()).map_err(SourceError::Wrong)?;
        let mut known = self.0.known.lock().await;
        let entry = known.get_mut(slug).ok_or_else(|| SourceError::Unknown(slug.to_string()))?;
        let key = name.as_str().to_owned();
        if entry.connections.get(&key).is_some_and(|(_, is_configured)| *is_configured) {
            return Err(SourceError::Configured(format!("{slug}.{key}")));
        }
        let records = &*self.0.setup.records;
        kept::put(records, kept::CONNECTION, &format!("{slug}/{key}"), &connection).await?;
        let view = view(slug, &key, &connection);
        entry.connections.insert(key, (connection, false));
        self.0.setup.engine.catalogue().bind(slug, entry.bound());
        Ok(view)
    }

    /// Takes a credential away. Says whether it was there.
    pub async fn disconnect(&self, slug: &Slug, name: &str) -> Result<bool, SourceError> {
        let mut known = self.0.known.lock().await;
        let entry = known.get_mut(slug).ok_or_else(|| SourceError::Unknown(slug.to_string()))?;
        match entry.connections.get(name) {
            None => return Ok(false),
            Some((_, true)) => return Err(SourceError::Configured(format!("{slug}.{name}"))),
            Some((_, false)) => {}
        }
        kept::remove(&*self.0.setup.records, kept::CONNECTION, &format!("{slug}/{name}")).await?;
        entry.connections.remove(name);
        self.0.setup.engine.catalogue().bind(slug, entry.bound());
        Ok(true)
    }

    /// Every connection.
    pub async fn connections(&self) -> Vec<ConnectionView> {
        let known = self.0.known.lock().await;
        let views = known.iter().flat_map(|(slug, entry)| {
            entry
                .connections
                .iter()
                .map(move |(name, (connection, _))| view(slug, name, connection))
        });
        views.collect()
    }

    /// Ends every connection and program.
    pub async fn shutdown(&self) {
        self.0.closing.cancel();
        let known = std::mem::take(&mut *self.0.known.lock().await);
        for (_, entry) in known {
            if let Some(server) = entry.server {
                server.close().await;
            }
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sources")
    }
}
