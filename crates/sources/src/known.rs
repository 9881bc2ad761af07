//! A source as it is known: what is written about it, its connections, and who looks after it.

use crate::config::{Connection, File, Source};
use crate::proof::{Held, Key, Trust};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tools::mcp::McpServer;
use tools::{Card, ConnectionName, Slug};
use url::Url;

/// By owner and name, and whether each stands in a file.
pub(crate) type Connections = BTreeMap<(String, String), (Connection, bool)>;

/// A source as it is known.
pub(crate) struct Known {
    pub(crate) spec: Source,
    pub(crate) is_configured: bool,
    /// By owner and name.
    pub(crate) connections: Connections,
    pub(crate) server: Option<McpServer>,
    /// Held while it is read.
    pub(crate) reading: Arc<Mutex<()>>,
    /// Ends the task that looks after it.
    pub(crate) watching: CancellationToken,
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
    pub template: String,
    /// What people read.
    pub description: Option<String>,
}

impl ConnectionView {
    /// What clients and programs read about it, in the members of Executor's connections. It has no secret.
    pub fn row(&self) -> Value {
        json!({
            "owner": self.owner,
            "name": self.name,
            "integration": self.integration,
            "template": self.template,
            "provider": "vault",
            "address": format!("tools.{}.{}.{}", self.integration, self.owner, self.name),
            "description": self.description,
            "identityLabel": null,
            "expiresAt": null,
            "oauthClient": null,
            "oauthClientOwner": null,
            "oauthScope": null,
        })
    }
}

impl Known {
    /// One that was added while serving, and is not read yet.
    pub(crate) fn new(spec: Source, connections: Connections) -> Self {
        Self {
            spec,
            is_configured: false,
            connections,
            server: None,
            reading: Arc::default(),
            watching: CancellationToken::new(),
        }
    }

    /// What proves who calls, for each connection.
    pub(crate) fn proofs(&self, trust: &Arc<Trust>, slug: &Slug) -> Vec<Held> {
        let held = |(owner, name): &(String, String)| self.held(trust, slug, (owner, name));
        self.connections.keys().filter_map(held).collect()
    }

    /// What proves who calls, for one connection.
    pub(crate) fn held(
        &self,
        trust: &Arc<Trust>,
        slug: &Slug,
        (owner, name): (&str, &str),
    ) -> Option<Held> {
        let (connection, _) = self.connections.get(&(owner.to_owned(), name.to_owned()))?;
        let key = Key { slug: slug.clone(), owner: owner.to_owned(), name: name.to_owned() };
        let address = self.spec.base_url.as_deref().or(self.spec.url.as_deref());
        let address = address.and_then(|url| Url::parse(url).ok());
        let described_at = self.spec.url.as_deref().and_then(|url| Url::parse(url).ok());
        let connection = Arc::new(connection.clone());
        Some(Held { trust: Arc::clone(trust), key, connection, address, described_at })
    }

    pub(crate) fn bound(&self, trust: &Arc<Trust>, slug: &Slug) -> Vec<Arc<tools::Connection>> {
        let mut bound = vec![];
        for held in self.proofs(trust, slug) {
            let parts = (ConnectionName::normalised(&held.key.name), held.connection.owner());
            match parts {
                (Some(name), Ok(owner)) => {
                    trust.update(&held.key, &held.connection);
                    bound.push(Arc::new(tools::Connection { owner, name, proof: Arc::new(held) }));
                }
                (_, Err(why)) => {
                    tracing::error!(connection = held.key.name, "a connection is left out: {why}");
                }
                (None, Ok(_)) => {
                    let connection = held.key.name;
                    tracing::error!(connection, "a connection's name begins with a letter");
                }
            }
        }
        bound
    }
}

/// What should be there: files go over what was kept. A source that nothing connects has `org.main`.
pub(crate) fn wanted(
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
        let mut connections = Connections::new();
        let place = |connection: &Connection, name: &str| {
            (connection.owner_name().to_owned(), name.to_owned())
        };
        for (key, connection) in &kept_connections {
            if let Some(rest) = key.strip_prefix(&name).and_then(|rest| rest.strip_prefix('/')) {
                let name = rest.rsplit('/').next().unwrap_or(rest);
                connections.insert(place(connection, name), (connection.clone(), false));
            }
        }
        for (name, connection) in file.connections.get(&name).into_iter().flatten() {
            connections.insert(place(connection, name), (connection.clone(), true));
        }
        if connections.is_empty() && is_configured {
            let main = Connection::default();
            connections.insert(place(&main, "main"), (main, true));
        }
        let known = Known { is_configured, ..Known::new(spec, connections) };
        wanted.insert(slug, known);
    }
    wanted
}

pub(crate) fn card(slug: &Slug, spec: &Source, kind: &str) -> Card {
    Card {
        name: slug.to_string(),
        title: spec.title.clone().unwrap_or_else(|| slug.to_string()),
        kind: kind.to_owned(),
        url: spec.url.clone(),
        can_refresh: true,
        ..Card::default()
    }
}

pub(crate) fn view(slug: &Slug, name: &str, connection: &Connection) -> ConnectionView {
    ConnectionView {
        integration: slug.to_string(),
        owner: connection.owner_name().to_owned(),
        name: name.to_owned(),
        template: connection.kind().to_owned(),
        description: connection.description.clone(),
    }
}
