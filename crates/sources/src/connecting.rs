//! Adds a connection to a source, or replaces one: the old one is removed only after the new one works.

use crate::source_state::{ConnectionView, view};
use crate::{SourceError, SourceRegistry};
use credentials::{ConnectionConfig, records};
use tools::{ConnectionName, IntegrationSlug};

/// Maximum number of connections of one source: users have a handful, and each has every tool of its source.
const CONNECTIONS_MAX: usize = 100;

/// The connection that was replaced.
struct ReplacedConnection {
    owner: String,
    name: String,
    before: Option<ConnectionConfig>,
}

impl SourceRegistry {
    /// Adds a connection to a source; replaces one of the same name.
    pub async fn connect(
        &self,
        slug: &IntegrationSlug,
        name: &str,
        connection: ConnectionConfig,
    ) -> Result<ConnectionView, SourceError> {
        let (view, replaced) = self.exchange(slug, name, connection).await?;
        self.let_go(slug, &replaced).await?;
        Ok(view)
    }

    /// The same, followed by another step: if that fails, everything is rolled back.
    pub async fn connect_and<T, E: From<SourceError>>(
        &self,
        slug: &IntegrationSlug,
        name: &str,
        connection: ConnectionConfig,
        then: impl AsyncFnOnce(&ConnectionView) -> Result<T, E>,
    ) -> Result<(ConnectionView, T), E> {
        let (view, replaced) = self.exchange(slug, name, connection).await?;
        match then(&view).await {
            Ok(done) => {
                self.let_go(slug, &replaced).await?;
                Ok((view, done))
            }
            Err(error) => {
                self.take_back(slug, replaced).await?;
                Err(error)
            }
        }
    }

    /// Installs a connection. The secrets of the replaced one stay in the vault.
    async fn exchange(
        &self,
        slug: &IntegrationSlug,
        name: &str,
        mut connection: ConnectionConfig,
    ) -> Result<(ConnectionView, ReplacedConnection), SourceError> {
        let name = ConnectionName::normalised(name)
            .ok_or_else(|| SourceError::Wrong("a connection's name begins with a letter".into()))?;
        connection.check_members().map_err(SourceError::Wrong)?;
        let mut states = self.0.states.lock().await;
        let entry = states.get_mut(slug).ok_or_else(|| SourceError::Unknown(slug.to_string()))?;
        let (owner, name) = (connection.owner_name().to_owned(), name.as_str().to_owned());
        let place = (owner.clone(), name.clone());
        let before = entry.connections.get(&place);
        if before.is_some_and(|(_, is_configured)| *is_configured) {
            return Err(SourceError::Configured(format!("{slug}.{owner}.{name}")));
        }
        if entry.connections.len() >= CONNECTIONS_MAX && before.is_none() {
            let why = format!("a source has {CONNECTIONS_MAX} connections at most");
            return Err(SourceError::Wrong(why));
        }
        let before = before.map(|(connection, _)| connection.clone());
        records::seal_connection(&self.0.setup.vault, &mut connection).await?;
        let key = format!("{slug}/{owner}/{name}");
        records::put(&*self.0.setup.records, records::CONNECTION, &key, &connection).await?;
        let view = view(slug, &name, &connection);
        entry.connections.insert(place, (connection, false));
        self.0.setup.engine.catalogue().bind(slug, entry.bound(&self.0.credentials, slug));
        Ok((view, ReplacedConnection { owner, name, before }))
    }

    /// Deletes the secrets of the replaced connection.
    async fn let_go(
        &self,
        slug: &IntegrationSlug,
        replaced: &ReplacedConnection,
    ) -> Result<(), SourceError> {
        let now = self.connection(slug, &replaced.owner, &replaced.name).await;
        let needed = now.map(|connection| connection.sealed_names()).unwrap_or_default();
        let before =
            replaced.before.as_ref().map(ConnectionConfig::sealed_names).unwrap_or_default();
        for name in before.iter().filter(|name| !needed.contains(name)) {
            self.0.setup.vault.remove(name).await?;
        }
        Ok(())
    }

    /// Rolls back to the replaced connection.
    async fn take_back(
        &self,
        slug: &IntegrationSlug,
        replaced: ReplacedConnection,
    ) -> Result<(), SourceError> {
        let ReplacedConnection { owner, name, before } = replaced;
        match before {
            None => self.disconnect(slug, &owner, &name).await.map(drop),
            Some(before) => self.connect(slug, &name, before).await.map(drop),
        }
    }
}
