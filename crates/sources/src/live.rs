//! Synchronises the catalogue with the configuration: files that change, sources that are opened in the
//! background, and servers whose lists change.

use crate::source_state::{SourceState, card, wanted_sources};
use crate::{SourceError, SourceRegistry, policy_first_seen, records, tool_first_seen, watch};
use credentials::ConnectionProof;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use store::StoreError;
use tokio::sync::watch as watch_channel;
use tokio_util::sync::CancellationToken;
use tools::{
    CatalogueChange, IntegrationArrival, IntegrationSlug, OpenedSource, SourceConfig,
    SourceContext, SourceOpenError, SourceServer, ToolCredential,
};

/// Polling interval of the configuration files.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// First and longest delay before retrying a source that could not be read.
const RETRY_MIN: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(120);

/// Retry interval for a lost server while calls wait for it.
const DEMAND_EVERY: Duration = Duration::from_millis(500);

/// Maximum number of names in one line of the log; the HTTP routes return them all.
const LOGGED_NAMES_MAX: usize = 20;

impl SourceRegistry {
    pub(crate) async fn watch(&self, mut seen: watch::FileSignature) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let commands = self.commands().borrow().clone();
            let named = self.0.named_files.read().unwrap_or_else(PoisonError::into_inner).clone();
            let files = self.0.setup.files.watched();
            let now = watch::file_signatures(files.iter().chain(&commands.files).chain(&named));
            if now != seen {
                seen = now;
                if let Err(error) = self.apply().await {
                    tracing::error!(%error, "the configuration could not be applied");
                }
            }
        }
    }

    /// Applies the configuration. A file with errors changes nothing.
    pub(crate) async fn apply(&self) -> Result<(), StoreError> {
        let read = watch::read(&self.0.setup.files);
        let read = read.and_then(|mut file| {
            let commands = std::mem::take(&mut file.repl).commands()?;
            // Before anything is read over the network.
            file.network.configure(self.0.setup.http.rules())?;
            Ok((file.enclave.aliases()?, commands, file))
        });
        let (aliases, commands, file) = match read {
            Ok(read) => read,
            Err(why) => {
                tracing::error!("the configuration is wrong and the old one stays: {why}");
                *self.0.trouble.write().unwrap_or_else(PoisonError::into_inner) = Some(why);
                return Ok(());
            }
        };
        *self.0.aliases.write().unwrap_or_else(PoisonError::into_inner) = aliases.into();
        self.0.commands.send_if_modified(|known| {
            let is_new = **known != commands;
            if is_new {
                *known = commands.into();
            }
            is_new
        });
        let named_files = file.named_files.clone();
        *self.0.named_files.write().unwrap_or_else(PoisonError::into_inner) = named_files;
        file.notices.iter().for_each(|notice| tracing::warn!("{notice}"));
        let notice = (!file.notices.is_empty()).then(|| file.notices.join("\n"));
        *self.0.trouble.write().unwrap_or_else(PoisonError::into_inner) = notice;
        let (records, engine) = (&*self.0.setup.records, &self.0.setup.engine);
        // First the policies, then the tools that they apply to.
        let policy = policy_first_seen::policy(records, &file.lists, engine.clock().now()).await?;
        engine.policies().configure(policy).await.map_err(|fault| {
            StoreError::Other(format!("the policies could not be applied: {fault}"))
        })?;
        engine.set_limits(file.limits.on(self.0.setup.usual));
        engine.set_quotas(file.quotas.settings());
        let connections = credentials::records::connections(records).await?;
        let wanted = wanted_sources(file, records::sources(records).await?, connections);
        let mut states = self.0.states.lock().await;
        let gone: Vec<_> =
            states.keys().filter(|slug| !wanted.contains_key(*slug)).cloned().collect();
        for slug in gone {
            if let Some(entry) = states.remove(&slug) {
                tool_first_seen::remove_ages(records, &slug).await?;
                self.0.descriptions.remove(&slug);
                self.remove_source(&slug, entry).await;
            }
        }
        for (slug, mut entry) in wanted {
            match states.get_mut(&slug) {
                Some(before) if before.spec == entry.spec => {
                    before.is_configured = entry.is_configured;
                    if before.connections != entry.connections {
                        before.connections = entry.connections;
                        let bound = before.bound(&self.0.credentials, &slug);
                        self.0.setup.engine.catalogue().bind(&slug, bound);
                    }
                }
                Some(_) | None => {
                    if let Some(before) = states.remove(&slug) {
                        self.remove_source(&slug, before).await;
                    }
                    entry.watching = self.0.closing.child_token();
                    self.show_offline(&slug, &mut entry).await;
                    self.open_later(&slug, &entry);
                    states.insert(slug, entry);
                }
            }
        }
        Ok(())
    }

    /// Opens a source in the background, and retries until it can be read.
    pub(crate) fn open_later(&self, slug: &IntegrationSlug, entry: &SourceState) {
        let catalogue = self.0.setup.engine.catalogue();
        if catalogue.snapshot().integration(slug.as_str()).is_none() {
            let card = card(slug, &entry.spec, entry.spec.kind.as_deref().unwrap_or_default());
            catalogue.set_trouble(slug, &card, Some("it is being read".into()));
        } else if self.0.setup.kinds.is_self_contained(&entry.spec) {
            return;
        }
        let (sources, slug, watching) = (self.clone(), slug.clone(), entry.watching.clone());
        let loading = LoadingSource::begin_loading(&self.0.loading, &slug);
        let opening = async move {
            let (mut pause, mut loading) = (RETRY_MIN, Some(loading));
            while let Err(error) = sources.refresh(&slug).await {
                tracing::warn!(source = %slug, "{error}");
                drop(loading.take());
                pause = sources.pause_before_retry(&slug, pause).await;
            }
        };
        self.0.tasks.spawn(watching.run_until_cancelled_owned(opening));
    }

    /// Waits before a source is retried, shorter if a call or an answer needs it. Returns the next delay.
    async fn pause_before_retry(&self, slug: &IntegrationSlug, pause: Duration) -> Duration {
        tokio::time::sleep(RETRY_MIN).await;
        let demand = self.0.setup.engine.catalogue().demand(slug);
        let demanded = async {
            match &demand {
                Some(demand) => demand.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = demanded => RETRY_MIN,
            () = tokio::time::sleep(pause.saturating_sub(RETRY_MIN)) => (pause * 2).min(RETRY_MAX),
        }
    }

    /// Adds a source to the catalogue by its stored description or a complete configuration, without reading it.
    async fn show_offline(&self, slug: &IntegrationSlug, entry: &mut SourceState) {
        let stored = self.0.descriptions.load(slug, &entry.spec).await;
        let kinds = &self.0.setup.kinds;
        match kinds.open_offline(&entry.spec, stored, self.context()).await {
            None => {}
            Some(Ok(opened)) => {
                if let Err(error) = self.publish_source(slug, entry, opened).await {
                    tracing::warn!(source = %slug, "what is stored about it is not shown: {error}");
                }
            }
            Some(Err(why)) => {
                tracing::warn!(source = %slug, "what is stored does not count: {why}")
            }
        }
    }

    /// Reads a source again. Its present tools replace the previous ones; returns the difference.
    pub async fn refresh(&self, slug: &IntegrationSlug) -> Result<CatalogueChange, SourceError> {
        let unknown = || SourceError::Unknown(slug.to_string());
        let reading = match self.0.states.lock().await.get(slug) {
            Some(entry) => entry.reading.clone(),
            None => return Err(unknown()),
        };
        // One reading per source at a time; other sources do not wait.
        let _reading = reading.lock().await;
        let (spec, server, proofs, watching) = match self.0.states.lock().await.get(slug) {
            Some(entry) => (
                entry.spec.clone(),
                entry.server.clone(),
                entry.proofs(&self.0.credentials, slug),
                entry.watching.clone(),
            ),
            None => return Err(unknown()),
        };
        let credential = listing(proofs).await;
        let opened = match &server {
            Some(server) => server.reread(&credential).await,
            None => self.open(&spec, &credential).await.map_err(|error| error.message),
        };
        let opened = opened.map_err(|why| unreadable(slug, why));
        let mut states = self.0.states.lock().await;
        let entry = states.get_mut(slug).filter(|_| !watching.is_cancelled());
        match (entry, opened) {
            (Some(entry), Ok(opened)) => self.publish_source(slug, entry, opened).await,
            (Some(_), Err(error)) => {
                let card = card(slug, &spec, "");
                self.0.setup.engine.catalogue().set_trouble(slug, &card, Some(error.to_string()));
                Err(error)
            }
            // It was removed or replaced while it was read.
            (None, opened) => {
                if let (None, Ok(OpenedSource { server: Some(server), .. })) = (server, opened) {
                    server.close().await;
                }
                Err(unknown())
            }
        }
    }

    /// Opens a source of any kind.
    pub(crate) async fn open(
        &self,
        spec: &SourceConfig,
        credential: &ToolCredential,
    ) -> Result<OpenedSource, SourceOpenError> {
        self.0.setup.kinds.open(spec, credential, self.context()).await
    }

    /// The dependencies of opening and checking a source.
    pub(crate) fn context(&self) -> SourceContext<'_> {
        SourceContext { minding: self.0.setup.minding, http: &self.0.setup.http }
    }

    /// Adds a source that was read to the catalogue. The ages of its tools are stored first: a refresh
    /// that is not recorded could widen what is allowed after the next start.
    pub(crate) async fn publish_source(
        &self,
        slug: &IntegrationSlug,
        entry: &mut SourceState,
        opened: OpenedSource,
    ) -> Result<CatalogueChange, SourceError> {
        let mut card = card(slug, &entry.spec, opened.integration.kind());
        card.can_remove = !entry.is_configured;
        card.title = entry.spec.title.clone().or(opened.title).unwrap_or(card.title);
        card.description =
            entry.spec.description.clone().or(opened.description).unwrap_or_default();
        let (records, now) = (&*self.0.setup.records, self.0.setup.engine.clock().now());
        let before = tool_first_seen::load(records, slug, &entry.spec).await?;
        card.may_elicit =
            self.0.setup.kinds.by_name(&card.kind).is_some_and(|kind| kind.may_elicit());
        let (integration, bound) = (opened.integration, entry.bound(&self.0.credentials, slug));
        let mut arrival = IntegrationArrival::new(slug, card, integration, bound);
        let after = arrival.age(before.as_ref(), now);
        if before.as_ref() != Some(&after) {
            tool_first_seen::save(records, slug, &entry.spec, after).await?;
        }
        if let Some(described) = opened.described {
            self.0.descriptions.save(slug, &entry.spec, described).await;
        }
        if let (None, Some(server)) = (&entry.server, &opened.server) {
            self.follow(slug, server.clone(), entry.watching.clone());
        }
        entry.server = opened.server;
        let catalogue = self.0.setup.engine.catalogue();
        let change = catalogue.welcome(arrival);
        let (snapshot, name) = (catalogue.snapshot(), slug.to_string());
        // Runs in the background: a search that comes earlier waits only for the remaining part.
        self.0.tasks.spawn_blocking(move || snapshot.index_source(&name));
        log(slug, &change);
        Ok(change)
    }

    /// Reads a server's list again when it reports a change, and when it is needed and was lost.
    fn follow(
        &self,
        slug: &IntegrationSlug,
        server: Arc<dyn SourceServer>,
        watching: CancellationToken,
    ) {
        let (sources, slug) = (self.clone(), slug.clone());
        let following = async move {
            loop {
                let demand = sources.0.setup.engine.catalogue().demand(&slug).unwrap_or_default();
                tokio::select! {
                    () = server.changed() => {}
                    () = demand.notified() => {}
                }
                if let Err(error) = sources.refresh(&slug).await {
                    tracing::warn!(source = %slug, "{error}");
                }
                // While a call waits for the server, it is retried at a fixed interval.
                tokio::time::sleep(DEMAND_EVERY).await;
            }
        };
        self.0.tasks.spawn(watching.run_until_cancelled_owned(following));
    }

    pub(crate) async fn remove_source(&self, slug: &IntegrationSlug, entry: SourceState) {
        entry.watching.cancel();
        self.0.setup.engine.catalogue().remove(slug);
        if let Some(server) = entry.server {
            server.close().await;
        }
    }
}

/// A source whose first reading is in progress.
struct LoadingSource(watch_channel::Sender<Vec<IntegrationSlug>>, IntegrationSlug);

impl LoadingSource {
    fn begin_loading(
        loading: &watch_channel::Sender<Vec<IntegrationSlug>>,
        slug: &IntegrationSlug,
    ) -> Self {
        loading.send_modify(|slugs| slugs.push(slug.clone()));
        Self(loading.clone(), slug.clone())
    }
}

impl Drop for LoadingSource {
    fn drop(&mut self) {
        self.0.send_modify(|slugs| {
            if let Some(at) = slugs.iter().position(|slug| *slug == self.1) {
                slugs.swap_remove(at);
            }
        });
    }
}

/// The credential for reading a source: the first one that is available.
async fn listing(proofs: Vec<ConnectionProof>) -> ToolCredential {
    for proof in proofs {
        if let Ok(credential) = proof.available().await {
            return credential;
        }
    }
    ToolCredential::none()
}

/// The error of a source that could not be opened.
pub(crate) fn unreadable(slug: &IntegrationSlug, why: String) -> SourceError {
    SourceError::Unreadable { source_name: slug.to_string(), why }
}

fn log(slug: &IntegrationSlug, change: &CatalogueChange) {
    let names = |names: &[String]| {
        let mut shown = names.iter().take(LOGGED_NAMES_MAX).cloned().collect::<Vec<_>>().join(" ");
        if names.len() > LOGGED_NAMES_MAX {
            shown.push_str(" …");
        }
        shown
    };
    tracing::info!(
        source = %slug, added = change.added.len(), removed = change.removed.len(),
        changed = change.changed.len(), left_out = change.left_out.len(), "source read"
    );
    if !change.grown.is_empty() {
        tracing::warn!(source = %slug, tools = names(&change.grown), "approvals no longer cover these tools");
    }
    if !change.removed.is_empty() {
        tracing::info!(source = %slug, tools = names(&change.removed), "tools are gone");
    }
}
