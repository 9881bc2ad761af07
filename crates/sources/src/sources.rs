//! The sources there are, and everything that happens to them: added, connected, read anew, removed.

use crate::config::{Connection, File, Source};
use crate::open::{self, Opened};
use crate::{kept, watch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use store::{Records, StoreError};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::http::HttpClient;
use tools::mcp::McpServer;
use tools::{Card, Catalogue, Change, ConnectionName, Credential, Minding, Slug};

/// How often configuration files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// First and longest pause before a source that could not be read is tried again.
const RETRY_MIN: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(120);

/// Sources and connections, configured and kept: people do not have more.
const SOURCES_MAX: usize = 1_000;

/// What sources are made of.
#[derive(Clone)]
pub struct Setup {
    /// Where their tools go.
    pub catalogue: Catalogue,
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
pub struct Sources(Arc<Inner>);

struct Inner {
    setup: Setup,
    http: HttpClient,
    /// One change at a time.
    known: Mutex<BTreeMap<Slug, Known>>,
    /// Why the newest edit of a configuration file does not count.
    trouble: RwLock<Option<String>>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

/// A source as it is known.
struct Known {
    spec: Source,
    is_configured: bool,
    /// By name.
    connections: BTreeMap<String, (Connection, bool)>,
    server: Option<McpServer>,
    /// Ends the task that looks after it.
    watching: CancellationToken,
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

/// A connection as it is shown: without what it proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionView {
    /// Of which source.
    pub integration: String,
    /// `org` or `user`.
    pub owner: String,
    /// Its name in paths.
    pub name: String,
    /// What kind of proof it holds.
    pub template: &'static str,
    /// What people read.
    pub description: Option<String>,
}

impl Sources {
    /// Opens everything that is configured or kept, without waiting for it.
    pub async fn start(setup: Setup) -> Result<Self, StoreError> {
        let sources = Self(Arc::new(Inner {
            setup,
            http: HttpClient::default(),
            known: Mutex::default(),
            trouble: RwLock::default(),
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
        let mut known = self.0.known.lock().await;
        if known.contains_key(slug) {
            return Err(SourceError::Exists(slug.to_string()));
        }
        if known.len() >= SOURCES_MAX {
            return Err(SourceError::Wrong(format!(
                "there are {SOURCES_MAX} sources, the most there can be"
            )));
        }
        let opened = self.open(slug, &spec, &Credential::none()).await?;
        kept::put(&*self.0.setup.records, kept::SOURCE, slug.as_str(), &spec).await?;
        let mut connections = BTreeMap::new();
        if connect {
            let main = Connection::default();
            kept::put(&*self.0.setup.records, kept::CONNECTION, &format!("{slug}/main"), &main)
                .await?;
            connections.insert("main".to_owned(), (main, false));
        }
        let mut entry = Known {
            spec,
            is_configured: false,
            connections,
            server: None,
            watching: self.0.closing.child_token(),
        };
        let change = self.show(slug, &mut entry, opened);
        known.insert(slug.clone(), entry);
        Ok(change)
    }

    /// Reads a source anew. What it offers now takes the place of what it offered; the difference is told.
    pub async fn refresh(&self, slug: &Slug) -> Result<Change, SourceError> {
        let mut known = self.0.known.lock().await;
        let entry = known.get_mut(slug).ok_or_else(|| SourceError::Unknown(slug.to_string()))?;
        let credential = entry.credential().unwrap_or_default();
        let opened = match &entry.server {
            Some(server) => self.reread(slug, server, &credential).await,
            None => self.open(slug, &entry.spec, &credential).await,
        };
        match opened {
            Ok(opened) => Ok(self.show(slug, entry, opened)),
            Err(error) => {
                let card = card(slug, &entry.spec, "");
                self.0.setup.catalogue.set_trouble(slug, &card, Some(error.to_string()));
                Err(error)
            }
        }
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
        self.0.setup.catalogue.bind(slug, entry.bound());
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
        self.0.setup.catalogue.bind(slug, entry.bound());
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

    async fn watch(&self, mut seen: watch::Look) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = watch::look(&self.0.setup.files);
            if now != seen {
                seen = now;
                if let Err(error) = self.apply().await {
                    tracing::error!(%error, "the configuration could not be applied");
                }
            }
        }
    }

    /// Makes what is known what is written. A broken file changes nothing.
    async fn apply(&self) -> Result<(), StoreError> {
        let file = match watch::read(&self.0.setup.files) {
            Ok(file) => file,
            Err(why) => {
                tracing::error!("the configuration is wrong and the old one stays: {why}");
                *self.0.trouble.write().unwrap_or_else(PoisonError::into_inner) = Some(why);
                return Ok(());
            }
        };
        *self.0.trouble.write().unwrap_or_else(PoisonError::into_inner) = None;
        let records = &*self.0.setup.records;
        let wanted = wanted(file, kept::sources(records).await?, kept::connections(records).await?);
        let mut known = self.0.known.lock().await;
        let gone: Vec<_> =
            known.keys().filter(|slug| !wanted.contains_key(*slug)).cloned().collect();
        for slug in gone {
            if let Some(entry) = known.remove(&slug) {
                self.forget(&slug, entry).await;
            }
        }
        for (slug, mut entry) in wanted {
            match known.get_mut(&slug) {
                Some(before) if before.spec == entry.spec => {
                    before.is_configured = entry.is_configured;
                    if before.connections != entry.connections {
                        before.connections = entry.connections;
                        self.0.setup.catalogue.bind(&slug, before.bound());
                    }
                }
                Some(_) | None => {
                    if let Some(before) = known.remove(&slug) {
                        self.forget(&slug, before).await;
                    }
                    entry.watching = self.0.closing.child_token();
                    self.open_later(&slug, &entry);
                    known.insert(slug, entry);
                }
            }
        }
        Ok(())
    }

    /// Opens a source beside everything else, again and again until it can be read.
    fn open_later(&self, slug: &Slug, entry: &Known) {
        let card = card(slug, &entry.spec, entry.spec.kind.as_deref().unwrap_or_default());
        self.0.setup.catalogue.set_trouble(slug, &card, Some("it is being read".into()));
        let (sources, slug, watching) = (self.clone(), slug.clone(), entry.watching.clone());
        let opening = async move {
            let mut pause = RETRY_MIN;
            while let Err(error) = sources.refresh(&slug).await {
                tracing::warn!(source = %slug, "{error}");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
        };
        self.0.tasks.spawn(watching.run_until_cancelled_owned(opening));
    }

    async fn open(
        &self,
        slug: &Slug,
        spec: &Source,
        credential: &Credential,
    ) -> Result<Opened, SourceError> {
        let opening = open::open(spec, credential, self.0.setup.minding, &self.0.http);
        opening.await.map_err(|why| SourceError::Unreadable { source_name: slug.to_string(), why })
    }

    async fn reread(
        &self,
        slug: &Slug,
        server: &McpServer,
        credential: &Credential,
    ) -> Result<Opened, SourceError> {
        let imported = server.import(credential).await;
        let integration = imported
            .map_err(|why| SourceError::Unreadable { source_name: slug.to_string(), why })?;
        Ok(Opened { integration, server: Some(server.clone()), title: None, description: None })
    }

    /// Puts what was read into the catalogue.
    fn show(&self, slug: &Slug, entry: &mut Known, opened: Opened) -> Change {
        let mut card = card(slug, &entry.spec, opened.integration.kind());
        card.can_remove = !entry.is_configured;
        card.title = entry.spec.title.clone().or(opened.title).unwrap_or(card.title);
        card.description =
            entry.spec.description.clone().or(opened.description).unwrap_or_default();
        if let (None, Some(server)) = (&entry.server, &opened.server) {
            self.follow(slug, server.clone(), entry.watching.clone());
        }
        entry.server = opened.server;
        let change = self.0.setup.catalogue.put(slug, card, opened.integration, entry.bound());
        tracing::info!(
            source = %slug, added = change.added.len(), removed = change.removed.len(),
            changed = change.changed.len(), left_out = change.left_out.len(), "source read"
        );
        change
    }

    /// Reads a server's list anew whenever it says that it changed.
    fn follow(&self, slug: &Slug, server: McpServer, watching: CancellationToken) {
        let (sources, slug) = (self.clone(), slug.clone());
        let following = async move {
            loop {
                server.changed().await;
                if let Err(error) = sources.refresh(&slug).await {
                    tracing::warn!(source = %slug, "{error}");
                }
            }
        };
        self.0.tasks.spawn(watching.run_until_cancelled_owned(following));
    }

    async fn forget(&self, slug: &Slug, entry: Known) {
        entry.watching.cancel();
        self.0.setup.catalogue.remove(slug);
        if let Some(server) = entry.server {
            server.close().await;
        }
    }
}

impl Known {
    /// The credential that listing uses: the first that can be read.
    fn credential(&self) -> Option<Credential> {
        self.connections.values().find_map(|(connection, _)| connection.credential().ok())
    }

    fn bound(&self) -> Vec<Arc<tools::Connection>> {
        let mut bound = vec![];
        for (name, (connection, _)) in &self.connections {
            let parts =
                (ConnectionName::normalised(name), connection.owner(), connection.credential());
            match parts {
                (Some(name), Ok(owner), Ok(credential)) => {
                    bound.push(Arc::new(tools::Connection { owner, name, credential }));
                }
                (_, Err(why), _) | (_, _, Err(why)) => {
                    tracing::error!(connection = name, "a connection is left out: {why}");
                }
                (None, ..) => {
                    tracing::error!(connection = name, "a connection's name begins with a letter")
                }
            }
        }
        bound
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sources")
    }
}

/// What should be there: files go over what was kept. A source that nothing connects has `org.main`.
fn wanted(
    file: File,
    kept: BTreeMap<String, Source>,
    kept_connections: BTreeMap<String, Connection>,
) -> BTreeMap<Slug, Known> {
    let mut wanted = BTreeMap::new();
    let sources = kept.into_iter().map(|(name, spec)| (name, spec, false));
    let sources = sources.chain(file.sources.into_iter().map(|(name, spec)| (name, spec, true)));
    for (name, spec, is_configured) in sources {
        let Ok(slug) = Slug::parse(&name) else {
            tracing::error!(source = name, "a source is left out: its name cannot stand in a path");
            continue;
        };
        let mut connections = BTreeMap::new();
        for (key, connection) in &kept_connections {
            if let Some(name) = key.strip_prefix(&name).and_then(|rest| rest.strip_prefix('/')) {
                connections.insert(name.to_owned(), (connection.clone(), false));
            }
        }
        for (name, connection) in file.connections.get(&name).into_iter().flatten() {
            connections.insert(name.clone(), (connection.clone(), true));
        }
        if connections.is_empty() && is_configured {
            connections.insert("main".to_owned(), (Connection::default(), true));
        }
        let watching = CancellationToken::new();
        wanted.insert(slug, Known { spec, is_configured, connections, server: None, watching });
    }
    wanted
}

fn card(slug: &Slug, spec: &Source, kind: &str) -> Card {
    Card {
        name: slug.to_string(),
        title: spec.title.clone().unwrap_or_else(|| slug.to_string()),
        kind: kind.to_owned(),
        url: spec.url.clone(),
        can_refresh: true,
        ..Card::default()
    }
}

fn view(slug: &Slug, name: &str, connection: &Connection) -> ConnectionView {
    ConnectionView {
        integration: slug.to_string(),
        owner: connection.owner.clone().unwrap_or_else(|| "org".into()),
        name: name.to_owned(),
        template: connection.template(),
        description: connection.description.clone(),
    }
}
