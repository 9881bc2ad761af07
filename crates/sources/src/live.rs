//! Keeps the catalogue what is written: configuration files that change, sources that are opened beside
//! everything else, and servers whose lists change.

use crate::known::{Known, card, wanted};
use crate::open::{self, Opened};
use crate::proof::Held;
use crate::{SourceError, Sources, ages, kept, said, watch};
use std::sync::PoisonError;
use std::time::Duration;
use store::StoreError;
use tokio::sync::watch as watch_channel;
use tokio_util::sync::CancellationToken;
use tools::mcp::McpServer;
use tools::{Arrival, Change, Credential, Slug};

/// How often configuration files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// First and longest pause before a source that could not be read is tried again.
const RETRY_MIN: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(120);

/// Names in one line of the log; the routes tell them all.
const LOGGED_NAMES_MAX: usize = 20;

impl Sources {
    pub(crate) async fn watch(&self, mut seen: watch::Look) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let commands = self.commands().borrow().clone();
            let now = watch::look(self.0.setup.files.watched().iter().chain(&commands.files));
            if now != seen {
                seen = now;
                if let Err(error) = self.apply().await {
                    tracing::error!(%error, "the configuration could not be applied");
                }
            }
        }
    }

    /// Makes what is known what is written. A broken file changes nothing.
    pub(crate) async fn apply(&self) -> Result<(), StoreError> {
        let read = watch::read(&self.0.setup.files);
        let read = read.and_then(|mut file| {
            let commands = std::mem::take(&mut file.repl).commands()?;
            Ok((file.enclave.aliases()?, commands, file))
        });
        let file = match read {
            Ok((aliases, commands, file)) => {
                *self.0.aliases.write().unwrap_or_else(PoisonError::into_inner) = aliases.into();
                self.0.commands.send_if_modified(|known| {
                    let is_new = **known != commands;
                    if is_new {
                        *known = commands.into();
                    }
                    is_new
                });
                file
            }
            Err(why) => {
                tracing::error!("the configuration is wrong and the old one stays: {why}");
                *self.0.trouble.write().unwrap_or_else(PoisonError::into_inner) = Some(why);
                return Ok(());
            }
        };
        file.notices.iter().for_each(|notice| tracing::warn!("{notice}"));
        let notice = (!file.notices.is_empty()).then(|| file.notices.join("\n"));
        *self.0.trouble.write().unwrap_or_else(PoisonError::into_inner) = notice;
        let (records, engine) = (&*self.0.setup.records, &self.0.setup.engine);
        // First who may call what, then what there is to call.
        let policy = said::policy(records, &file.lists, engine.clock().now()).await?;
        engine.policies().configure(policy).await.map_err(|fault| {
            StoreError::Other(format!("the policies could not be applied: {fault}"))
        })?;
        engine.set_limits(file.limits.on(self.0.setup.usual));
        let wanted = wanted(file, kept::sources(records).await?, kept::connections(records).await?);
        let mut known = self.0.known.lock().await;
        let gone: Vec<_> =
            known.keys().filter(|slug| !wanted.contains_key(*slug)).cloned().collect();
        for slug in gone {
            if let Some(entry) = known.remove(&slug) {
                ages::forget(records, &slug).await?;
                self.forget(&slug, entry).await;
            }
        }
        for (slug, mut entry) in wanted {
            match known.get_mut(&slug) {
                Some(before) if before.spec == entry.spec => {
                    before.is_configured = entry.is_configured;
                    if before.connections != entry.connections {
                        before.connections = entry.connections;
                        let bound = before.bound(&self.0.trust, &slug);
                        self.0.setup.engine.catalogue().bind(&slug, bound);
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
    pub(crate) fn open_later(&self, slug: &Slug, entry: &Known) {
        let card = card(slug, &entry.spec, entry.spec.kind.as_deref().unwrap_or_default());
        self.0.setup.engine.catalogue().set_trouble(slug, &card, Some("it is being read".into()));
        let (sources, slug, watching) = (self.clone(), slug.clone(), entry.watching.clone());
        let unread = Unread::one_more(&self.0.n_unread);
        let opening = async move {
            let (mut pause, mut unread) = (RETRY_MIN, Some(unread));
            while let Err(error) = sources.refresh(&slug).await {
                tracing::warn!(source = %slug, "{error}");
                drop(unread.take());
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
        };
        self.0.tasks.spawn(watching.run_until_cancelled_owned(opening));
    }

    /// Reads a source anew. What it offers now takes the place of what it offered; the difference is told.
    pub async fn refresh(&self, slug: &Slug) -> Result<Change, SourceError> {
        let unknown = || SourceError::Unknown(slug.to_string());
        let reading = match self.0.known.lock().await.get(slug) {
            Some(entry) => entry.reading.clone(),
            None => return Err(unknown()),
        };
        // One reading of a source at a time, and no other source waits for it.
        let _reading = reading.lock().await;
        let (spec, server, proofs, watching) = match self.0.known.lock().await.get(slug) {
            Some(entry) => (
                entry.spec.clone(),
                entry.server.clone(),
                entry.proofs(&self.0.trust, slug),
                entry.watching.clone(),
            ),
            None => return Err(unknown()),
        };
        let credential = listing(proofs).await;
        let opened = match &server {
            Some(server) => reread(slug, server, &credential).await,
            None => self.open(slug, &spec, &credential).await,
        };
        let mut known = self.0.known.lock().await;
        let entry = known.get_mut(slug).filter(|_| !watching.is_cancelled());
        match (entry, opened) {
            (Some(entry), Ok(opened)) => self.show(slug, entry, opened).await,
            (Some(_), Err(error)) => {
                let card = card(slug, &spec, "");
                self.0.setup.engine.catalogue().set_trouble(slug, &card, Some(error.to_string()));
                Err(error)
            }
            // It went, or became another, while it was read.
            (None, opened) => {
                if let (None, Ok(Opened { server: Some(server), .. })) = (server, opened) {
                    server.close().await;
                }
                Err(unknown())
            }
        }
    }

    pub(crate) async fn open(
        &self,
        slug: &Slug,
        spec: &crate::config::Source,
        credential: &Credential,
    ) -> Result<Opened, SourceError> {
        let opening = open::open(spec, credential, self.0.setup.minding, &self.0.setup.http);
        opening.await.map_err(|why| unreadable(slug, why))
    }

    /// Puts what was read into the catalogue. Since when its tools are what they are is kept first: a reading
    /// that nobody remembers could widen what is allowed after the next start.
    pub(crate) async fn show(
        &self,
        slug: &Slug,
        entry: &mut Known,
        opened: Opened,
    ) -> Result<Change, SourceError> {
        let mut card = card(slug, &entry.spec, opened.integration.kind());
        card.can_remove = !entry.is_configured;
        card.title = entry.spec.title.clone().or(opened.title).unwrap_or(card.title);
        card.description =
            entry.spec.description.clone().or(opened.description).unwrap_or_default();
        let (records, now) = (&*self.0.setup.records, self.0.setup.engine.clock().now());
        let before = ages::known(records, slug, &entry.spec).await?;
        let (integration, bound) = (opened.integration, entry.bound(&self.0.trust, slug));
        let mut arrival = Arrival::new(slug, card, integration, bound);
        let after = arrival.age(before.as_ref(), now);
        if before.as_ref() != Some(&after) {
            ages::keep(records, slug, &entry.spec, after).await?;
        }
        if let (None, Some(server)) = (&entry.server, &opened.server) {
            self.follow(slug, server.clone(), entry.watching.clone());
        }
        entry.server = opened.server;
        let change = self.0.setup.engine.catalogue().welcome(arrival);
        log(slug, &change);
        Ok(change)
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

    pub(crate) async fn forget(&self, slug: &Slug, entry: Known) {
        entry.watching.cancel();
        self.0.setup.engine.catalogue().remove(slug);
        if let Some(server) = entry.server {
            server.close().await;
        }
    }
}

/// A source that nobody has tried to read yet.
struct Unread(watch_channel::Sender<usize>);

impl Unread {
    fn one_more(n_unread: &watch_channel::Sender<usize>) -> Self {
        n_unread.send_modify(|n| *n += 1);
        Self(n_unread.clone())
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.send_modify(|n| *n -= 1);
    }
}

/// What a source is read with: the first proof that is at hand.
async fn listing(proofs: Vec<Held>) -> Credential {
    for held in proofs {
        if let Ok(credential) = held.at_hand().await {
            return credential;
        }
    }
    Credential::none()
}

async fn reread(
    slug: &Slug,
    server: &McpServer,
    credential: &Credential,
) -> Result<Opened, SourceError> {
    let integration = server.import(credential).await.map_err(|why| unreadable(slug, why))?;
    Ok(Opened { integration, server: Some(server.clone()), title: None, description: None })
}

fn unreadable(slug: &Slug, why: String) -> SourceError {
    SourceError::Unreadable { source_name: slug.to_string(), why }
}

fn log(slug: &Slug, change: &Change) {
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
