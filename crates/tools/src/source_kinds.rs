//! The registry of the kinds of sources: the only place that lists them all.

use crate::http::ApiClient;
use crate::{
    DetectedSource, OpenedSource, SourceConfig, SourceContext, SourceKind, SourceOpenError,
    StoredDescription, ToolCredential,
};
use crate::{command, graphql, mcp, openapi};
use url::Url;

/// The built-in kinds. An address is tried as each of them, in this order; members of a configuration are
/// matched in the reverse order.
const BUILT_IN: &[&dyn SourceKind] =
    &[&openapi::OpenApiKind, &graphql::GraphqlKind, &mcp::McpKind, &command::CommandKind];

/// The kinds of sources that a server knows.
#[derive(Debug, Clone)]
pub struct SourceKinds(Vec<&'static dyn SourceKind>);

impl Default for SourceKinds {
    /// The built-in kinds.
    fn default() -> Self {
        Self(BUILT_IN.to_vec())
    }
}

impl SourceKinds {
    /// The same kinds and one more, for programs that embed the server.
    #[must_use]
    pub fn with(mut self, kind: &'static dyn SourceKind) -> Self {
        self.0.push(kind);
        self
    }

    /// Every kind.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'static dyn SourceKind> {
        self.0.iter().copied()
    }

    /// The kind of this name.
    pub fn by_name(&self, name: &str) -> Option<&'static dyn SourceKind> {
        self.iter().find(|kind| kind.name() == name)
    }

    /// The kind of a configuration by its members. None if it names an unknown kind, or if only its address could
    /// decide.
    pub fn of_config(&self, config: &SourceConfig) -> Option<&'static dyn SourceKind> {
        match &config.kind {
            Some(name) => self.by_name(name),
            None => self.iter().rev().find(|kind| kind.claims(config)),
        }
    }

    /// Whether the configuration contains all that opening needs.
    pub fn is_self_contained(&self, config: &SourceConfig) -> bool {
        self.of_config(config).is_some_and(|kind| kind.is_self_contained(config))
    }

    /// Determines the kind of an address.
    pub async fn detect(&self, url: &str, http: &ApiClient) -> Result<DetectedSource, String> {
        let address = Url::parse(url).map_err(|_| "that is no address".to_owned())?;
        let mut reasons = vec![];
        for detection in self.iter().filter_map(|kind| kind.detect(&address, http)) {
            match detection.await {
                Ok(found) => return Ok(DetectedSource { url: url.to_owned(), ..found }),
                Err(why) => reasons.push(why),
            }
        }
        Err(format!("neither {}", reasons.join(", nor ")))
    }

    /// Opens a source of any kind.
    pub async fn open(
        &self,
        config: &SourceConfig,
        credential: &ToolCredential,
        context: SourceContext<'_>,
    ) -> Result<OpenedSource, SourceOpenError> {
        let kind = match (&config.kind, self.of_config(config), &config.url) {
            (_, Some(kind), _) => kind,
            (Some(name), None, _) => return Err(self.unknown_kind(name).into()),
            (None, None, Some(url)) => {
                let found = self.detect(url, context.http).await?;
                self.by_name(found.kind).ok_or_else(|| self.unknown_kind(found.kind))?
            }
            (None, None, None) => {
                return Err("it has none of url, file, text, command and tools".into());
            }
        };
        kind.open(config, credential, context).await
    }

    /// Opens a source without the network: by its configuration alone, or by its stored description. None if neither
    /// is sufficient.
    pub async fn open_offline(
        &self,
        config: &SourceConfig,
        stored: Option<StoredDescription>,
        context: SourceContext<'_>,
    ) -> Option<Result<OpenedSource, String>> {
        if self.is_self_contained(config) {
            let opened = self.open(config, &ToolCredential::none(), context).await;
            return Some(opened.map_err(|error| error.message));
        }
        let StoredDescription { kind, text } = stored?;
        Some(self.by_name(kind)?.open_stored(config, text, context).await)
    }

    fn unknown_kind(&self, name: &str) -> String {
        let names: Vec<_> = self.iter().map(|kind| kind.name()).collect();
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        format!("\"{name}\" is no kind of source; there are {} and {last}", others.join(", "))
    }
}
