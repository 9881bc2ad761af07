//! The state of a source: its configuration, its connections, its server, and the task that follows it.

use crate::config::ConfigDocument;
use credentials::{ConnectionConfig, ConnectionKey, ConnectionProof, Credentials};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tools::{ConnectionName, IntegrationSlug, SourceCard, SourceConfig, SourceServer};
use url::Url;

/// Connections by owner and name, and whether a file contains them.
pub(crate) type ConnectionsByPlace = BTreeMap<(String, String), (ConnectionConfig, bool)>;

/// The state of a source.
pub(crate) struct SourceState {
    pub(crate) spec: SourceConfig,
    pub(crate) is_configured: bool,
    /// The connections by owner and name.
    pub(crate) connections: ConnectionsByPlace,
    pub(crate) server: Option<Arc<dyn SourceServer>>,
    /// Locked while it is read.
    pub(crate) reading: Arc<Mutex<()>>,
    /// Ends the task that follows it.
    pub(crate) watching: CancellationToken,
}

/// A connection as clients see it: without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionView {
    /// Its source.
    pub integration: String,
    /// `org` or `user`.
    pub owner: String,
    /// Its name in paths.
    pub name: String,
    /// The name of its authentication method.
    pub template: String,
    /// Its description.
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

impl SourceState {
    /// A source that was added while serving, and is not read yet.
    pub(crate) fn new(spec: SourceConfig, connections: ConnectionsByPlace) -> Self {
        Self {
            spec,
            is_configured: false,
            connections,
            server: None,
            reading: Arc::default(),
            watching: CancellationToken::new(),
        }
    }

    /// The credential provider of each connection.
    pub(crate) fn proofs(
        &self,
        credentials: &Arc<Credentials>,
        slug: &IntegrationSlug,
    ) -> Vec<ConnectionProof> {
        let proof = |(owner, name): &(String, String)| self.proof(credentials, slug, (owner, name));
        self.connections.keys().filter_map(proof).collect()
    }

    /// The credential provider of one connection.
    pub(crate) fn proof(
        &self,
        credentials: &Arc<Credentials>,
        slug: &IntegrationSlug,
        (owner, name): (&str, &str),
    ) -> Option<ConnectionProof> {
        let (connection, _) = self.connections.get(&(owner.to_owned(), name.to_owned()))?;
        let key =
            ConnectionKey { slug: slug.clone(), owner: owner.to_owned(), name: name.to_owned() };
        let address = self.spec.base_url.as_deref().or(self.spec.url.as_deref());
        let address = address.and_then(|url| Url::parse(url).ok());
        let described_at = self.spec.url.as_deref().and_then(|url| Url::parse(url).ok());
        let connection = Arc::new(connection.clone());
        Some(ConnectionProof {
            credentials: Arc::clone(credentials),
            key,
            connection,
            address,
            described_at,
        })
    }

    pub(crate) fn bound(
        &self,
        credentials: &Arc<Credentials>,
        slug: &IntegrationSlug,
    ) -> Vec<Arc<tools::Connection>> {
        let mut bound = vec![];
        for proof in self.proofs(credentials, slug) {
            let parts = (ConnectionName::normalised(&proof.key.name), proof.connection.owner());
            match parts {
                (Some(name), Ok(owner)) => {
                    credentials.update(&proof.key, &proof.connection);
                    bound.push(Arc::new(tools::Connection { owner, name, proof: Arc::new(proof) }));
                }
                (_, Err(why)) => {
                    tracing::error!(connection = proof.key.name, "a connection is left out: {why}");
                }
                (None, Ok(_)) => {
                    let connection = proof.key.name;
                    tracing::error!(connection, "a connection's name begins with a letter");
                }
            }
        }
        bound
    }
}

/// The sources that should exist: files win over records. A source of a file without connections has `org.main`.
pub(crate) fn wanted_sources(
    file: ConfigDocument,
    recorded: BTreeMap<String, SourceConfig>,
    recorded_connections: BTreeMap<String, ConnectionConfig>,
) -> BTreeMap<IntegrationSlug, SourceState> {
    let mut wanted = BTreeMap::new();
    let sources = recorded.into_iter().map(|(name, spec)| (name, spec, false));
    let sources = sources.chain(file.sources.into_iter().map(|(name, spec)| (name, spec, true)));
    for (name, spec, is_configured) in sources {
        let Ok(slug) = IntegrationSlug::parse(&name) else {
            tracing::error!(source = name, "a source is left out: its name cannot stand in a path");
            continue;
        };
        let mut connections = ConnectionsByPlace::new();
        let place = |connection: &ConnectionConfig, name: &str| {
            (connection.owner_name().to_owned(), name.to_owned())
        };
        for (key, connection) in &recorded_connections {
            if let Some(rest) = key.strip_prefix(&name).and_then(|rest| rest.strip_prefix('/')) {
                let name = rest.rsplit('/').next().unwrap_or(rest);
                connections.insert(place(connection, name), (connection.clone(), false));
            }
        }
        for (name, connection) in file.connections.get(&name).into_iter().flatten() {
            connections.insert(place(connection, name), (connection.clone(), true));
        }
        if connections.is_empty() && is_configured {
            let main = ConnectionConfig::default();
            connections.insert(place(&main, "main"), (main, true));
        }
        let state = SourceState { is_configured, ..SourceState::new(spec, connections) };
        wanted.insert(slug, state);
    }
    wanted
}

pub(crate) fn card(slug: &IntegrationSlug, spec: &SourceConfig, kind: &str) -> SourceCard {
    SourceCard {
        name: slug.to_string(),
        title: spec.title.clone().unwrap_or_else(|| slug.to_string()),
        kind: kind.to_owned(),
        url: spec.url.clone(),
        can_refresh: true,
        ..SourceCard::default()
    }
}

pub(crate) fn view(
    slug: &IntegrationSlug,
    name: &str,
    connection: &ConnectionConfig,
) -> ConnectionView {
    ConnectionView {
        integration: slug.to_string(),
        owner: connection.owner_name().to_owned(),
        name: name.to_owned(),
        template: connection.template_name().to_owned(),
        description: connection.description.clone(),
    }
}
