//! A source as it is known: what is written about it, its connections, and who looks after it.

use crate::config::{Connection, File, Source};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tools::mcp::McpServer;
use tools::{Card, ConnectionName, Credential, Slug};

/// A source as it is known.
pub(crate) struct Known {
    pub(crate) spec: Source,
    pub(crate) is_configured: bool,
    /// By name.
    pub(crate) connections: BTreeMap<String, (Connection, bool)>,
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
    pub template: &'static str,
    /// What people read.
    pub description: Option<String>,
}

impl Known {
    /// One that was added while serving, and is not read yet.
    pub(crate) fn new(spec: Source, connections: BTreeMap<String, (Connection, bool)>) -> Self {
        Self {
            spec,
            is_configured: false,
            connections,
            server: None,
            reading: Arc::default(),
            watching: CancellationToken::new(),
        }
    }

    /// The credential that listing uses: the first that can be read.
    pub(crate) fn credential(&self) -> Option<Credential> {
        self.connections.values().find_map(|(connection, _)| connection.credential().ok())
    }

    pub(crate) fn bound(&self) -> Vec<Arc<tools::Connection>> {
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
        owner: connection.owner.clone().unwrap_or_else(|| "org".into()),
        name: name.to_owned(),
        template: connection.template(),
        description: connection.description.clone(),
    }
}
