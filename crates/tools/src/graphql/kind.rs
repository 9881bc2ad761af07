//! GraphQL as a kind of source.

use super::{Options, import, introspect};
use crate::http::ApiClient;
use crate::source_config::with_query;
use crate::source_kind::slug_of_host;
use crate::{
    CancelSignal, DetectedSource, OpenedSource, SourceCheck, SourceConfig, SourceContext,
    SourceHealth, SourceKind, SourceOpenError, StoredDescription, ToolCredential, scrub,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use protocols::executor::{BadBody, ObjectMembers, member};
use serde_json::Value;
use std::sync::Arc;
use url::Url;

/// APIs that describe themselves by GraphQL introspection.
#[derive(Debug)]
pub struct GraphqlKind;

impl SourceKind for GraphqlKind {
    fn name(&self) -> &'static str {
        "graphql"
    }

    fn detect<'a>(
        &'a self,
        address: &'a Url,
        http: &'a ApiClient,
    ) -> Option<BoxFuture<'a, Result<DetectedSource, String>>> {
        let detection = async {
            let options = Options { endpoint: address.clone(), client: http.clone() };
            let text = introspect(&options, &ToolCredential::none(), &CancelSignal::never()).await;
            let text = text.map_err(|_| "GraphQL".to_owned())?;
            import(&text, options).map_err(|_| "GraphQL".to_owned())?;
            let title = address.host_str().unwrap_or("GraphQL").to_owned();
            let (url, slug) = (address.to_string(), slug_of_host(address));
            Ok(DetectedSource { kind: self.name(), url, title, slug })
        };
        Some(detection.boxed())
    }

    fn open<'a>(
        &'a self,
        config: &'a SourceConfig,
        credential: &'a ToolCredential,
        context: SourceContext<'a>,
    ) -> BoxFuture<'a, Result<OpenedSource, SourceOpenError>> {
        async move {
            let options = options(config, context.http)?;
            let answer = introspect(&options, credential, &CancelSignal::never()).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let text: Arc<str> = scrub::scrub_text(&answer).into();
            let opened = opened(config, Arc::clone(&text), context.http).await?;
            let described = Some(StoredDescription { kind: self.name(), text });
            Ok(OpenedSource { described, ..opened })
        }
        .boxed()
    }

    fn open_stored<'a>(
        &'a self,
        config: &'a SourceConfig,
        text: Arc<str>,
        context: SourceContext<'a>,
    ) -> BoxFuture<'a, Result<OpenedSource, String>> {
        opened(config, text, context.http).boxed()
    }

    /// `{endpoint, name?, description?}`.
    fn config_from_http(&self, members: &ObjectMembers<'_>) -> Result<SourceConfig, BadBody> {
        let url = member(members, "endpoint", "a string")?;
        Ok(SourceConfig { url, ..SourceConfig::of_kind(self.name(), members)? })
    }

    fn config_from_executor(&self, source: &Value) -> Result<SourceConfig, String> {
        let endpoint = source["endpoint"].as_str().ok_or("it has no address")?;
        let url = Some(with_query(endpoint, source)?);
        Ok(SourceConfig { url, ..SourceConfig::from_executor(self.name(), source) })
    }

    /// Asks the API to describe itself with the credential.
    fn check_connection<'a>(&'a self, check: SourceCheck<'a>) -> BoxFuture<'a, SourceHealth> {
        async move {
            match self.open(check.config, check.credential, check.context).await {
                Ok(_) => SourceHealth::healthy("The API describes itself."),
                Err(error) => SourceHealth::unhealthy(
                    "connection_rejected",
                    format!("The API does not describe itself: {error}."),
                ),
            }
        }
        .boxed()
    }
}

async fn opened(
    config: &SourceConfig,
    text: Arc<str>,
    http: &ApiClient,
) -> Result<OpenedSource, String> {
    let options = options(config, http)?;
    let imported = tokio::task::spawn_blocking(move || import(&text, options)).await;
    let api = imported.map_err(|_| "its introspection broke the importer".to_owned())?;
    Ok(OpenedSource::new(Arc::new(api.map_err(|error| error.to_string())?)))
}

fn options(config: &SourceConfig, http: &ApiClient) -> Result<Options, String> {
    let url = config.url.as_deref().ok_or("a GraphQL API has url")?;
    let endpoint = Url::parse(url).map_err(|_| "url is no address".to_owned())?;
    Ok(Options { endpoint, client: http.clone() })
}
