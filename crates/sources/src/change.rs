//! Changes to an existing source and its connections by administrators.

use crate::live::unreadable;
use crate::source_state::{ConnectionView, view};
use crate::{SourceError, SourceRegistry, records};
use credentials::ConnectionConfig;
use tools::{CatalogueChange, IntegrationSlug, SourceConfig, ToolCredential};

impl SourceRegistry {
    /// The configuration of a source, and whether a configuration file contains it.
    pub async fn spec(&self, slug: &IntegrationSlug) -> Result<(SourceConfig, bool), SourceError> {
        let states = self.0.states.lock().await;
        let entry = states.get(slug).ok_or_else(|| SourceError::Unknown(slug.to_string()))?;
        Ok((entry.spec.clone(), entry.is_configured))
    }

    /// Replaces the configuration of an added source. If more than title and description changes, it is read
    /// as a new source: if that fails, nothing changes.
    pub async fn change(
        &self,
        slug: &IntegrationSlug,
        spec: SourceConfig,
    ) -> Result<CatalogueChange, SourceError> {
        let (before, is_configured) = self.spec(slug).await?;
        if is_configured {
            return Err(SourceError::Configured(slug.to_string()));
        }
        let words = |spec: &SourceConfig| (spec.title.clone(), spec.description.clone());
        let bare =
            |spec: &SourceConfig| SourceConfig { title: None, description: None, ..spec.clone() };
        let opened = match bare(&before) == bare(&spec) {
            true => None,
            false => {
                let opened = self.open(&spec, &ToolCredential::none()).await;
                Some(opened.map_err(|error| unreadable(slug, error.message))?)
            }
        };
        let mut states = self.0.states.lock().await;
        let entry = states.get_mut(slug).ok_or_else(|| SourceError::Unknown(slug.to_string()))?;
        records::put_source(&*self.0.setup.records, slug.as_str(), &spec).await?;
        let (title, description) = words(&spec);
        entry.spec = spec;
        let Some(opened) = opened else {
            let title = title.unwrap_or_else(|| slug.to_string());
            let catalogue = self.0.setup.engine.catalogue();
            catalogue.rename(slug, title, description.unwrap_or_default());
            return Ok(CatalogueChange::default());
        };
        if let Some(server) = entry.server.take() {
            server.close().await;
        }
        self.publish_source(slug, entry, opened).await
    }

    /// One connection with its credential, for callers that change a part of it.
    pub async fn connection(
        &self,
        slug: &IntegrationSlug,
        owner: &str,
        name: &str,
    ) -> Option<ConnectionConfig> {
        let states = self.0.states.lock().await;
        let place = (owner.to_owned(), name.to_owned());
        let (connection, _) = states.get(slug)?.connections.get(&place)?;
        Some(connection.clone())
    }

    /// The public view of one connection.
    pub async fn connection_view(
        &self,
        slug: &IntegrationSlug,
        owner: &str,
        name: &str,
    ) -> Option<ConnectionView> {
        let connection = self.connection(slug, owner, name).await?;
        Some(view(slug, name, &connection))
    }
}
