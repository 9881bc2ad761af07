//! MCP servers as a kind of source.

use super::{McpEndpoint, McpLimits, McpServer, refusal};
use crate::http::ApiClient;
use crate::source_config::with_query;
use crate::source_kind::slug_of_host;
use crate::{
    ChildSupervision, DetectedSource, Integration, OpenedSource, SourceCheck, SourceConfig,
    SourceContext, SourceHealth, SourceKind, SourceOpenError, SourceServer, StoredDescription,
    ToolCredential,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use protocols::executor::{BadBody, ObjectMembers, member};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// How long a server may take to list its tools while an address is examined.
const DETECTION_TIME_MAX: Duration = Duration::from_secs(10);

/// MCP servers, started as programs or reached over HTTP.
#[derive(Debug)]
pub struct McpKind;

impl SourceKind for McpKind {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn claims(&self, config: &SourceConfig) -> bool {
        !config.command.is_empty()
    }

    fn detect<'a>(
        &'a self,
        address: &'a Url,
        http: &'a ApiClient,
    ) -> Option<BoxFuture<'a, Result<DetectedSource, String>>> {
        let detection = async {
            let limits = McpLimits { start: DETECTION_TIME_MAX, ..McpLimits::default() };
            let endpoint = McpEndpoint::Http { url: address.to_string(), client: http.clone() };
            let server = McpServer::new(endpoint, ChildSupervision::Nobody, limits);
            let imported = server.import(&ToolCredential::none()).await;
            server.close().await;
            imported.map_err(|why| format!("MCP ({why})"))?;
            let title = address.host_str().unwrap_or("MCP").to_owned();
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
            let server = server(config, context)?;
            match server.import(credential).await {
                Ok((integration, listed)) => Ok(opened(server, integration, Some(listed))),
                Err(why) => {
                    server.close().await;
                    let wants_credential = refusal::wants_token(&why);
                    Err(SourceOpenError { message: why, wants_credential })
                }
            }
        }
        .boxed()
    }

    fn open_stored<'a>(
        &'a self,
        config: &'a SourceConfig,
        text: Arc<str>,
        context: SourceContext<'a>,
    ) -> BoxFuture<'a, Result<OpenedSource, String>> {
        async move {
            let server = server(config, context)?;
            let integration = server.import_listed(&text)?;
            Ok(opened(server, integration, None))
        }
        .boxed()
    }

    /// `{endpoint | command, args?, env?, name?, description?}`.
    fn config_from_http(&self, members: &ObjectMembers<'_>) -> Result<SourceConfig, BadBody> {
        let url = member(members, "endpoint", "a string")?;
        let program: Option<String> = member(members, "command", "a string")?;
        let args: Option<Vec<String>> = member(members, "args", "an array of strings")?;
        let command = program.into_iter().chain(args.unwrap_or_default()).collect();
        let env: Option<BTreeMap<String, String>> = member(members, "env", "an object of strings")?;
        let env = env.unwrap_or_default();
        Ok(SourceConfig { url, command, env, ..SourceConfig::of_kind(self.name(), members)? })
    }

    fn takes_program(&self) -> bool {
        true
    }

    fn config_from_executor(&self, source: &Value) -> Result<SourceConfig, String> {
        let base = SourceConfig::from_executor(self.name(), source);
        if source["transport"].as_str() != Some("stdio") {
            let endpoint = source["endpoint"].as_str().ok_or("it has no address")?;
            return Ok(SourceConfig { url: Some(with_query(endpoint, source)?), ..base });
        }
        let program = source["command"].as_str().ok_or("it names no command")?;
        let args = source["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let command = std::iter::once(program).chain(args).map(str::to_owned).collect();
        let variables = source["env"].as_object().into_iter().flatten();
        let env = variables
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect();
        let directory = source["cwd"].as_str().map(Into::into);
        Ok(SourceConfig { command, env, directory, ..base })
    }

    /// Asks the server to list its tools with the credential.
    fn check_connection<'a>(&'a self, check: SourceCheck<'a>) -> BoxFuture<'a, SourceHealth> {
        async move {
            let Some(server) = check.server else { return check.request_target().await };
            match server.reread(check.credential).await {
                Ok(_) => SourceHealth::healthy("The server lists its tools."),
                Err(why) => SourceHealth::unhealthy(
                    "connection_rejected",
                    format!("The server lists no tools: {why}."),
                ),
            }
        }
        .boxed()
    }

    fn may_elicit(&self) -> bool {
        true
    }
}

impl SourceServer for McpServer {
    fn reread<'a>(
        &'a self,
        credential: &'a ToolCredential,
    ) -> BoxFuture<'a, Result<OpenedSource, String>> {
        async move {
            let (integration, listed) = self.import(credential).await?;
            Ok(opened(self.clone(), integration, Some(listed)))
        }
        .boxed()
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        self.changed().boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.close().boxed()
    }
}

/// A server that listed its tools, now or earlier.
fn opened(
    server: McpServer,
    integration: Arc<dyn Integration>,
    listed: Option<String>,
) -> OpenedSource {
    let described =
        listed.map(|text| StoredDescription { kind: McpKind.name(), text: text.into() });
    let server: Option<Arc<dyn SourceServer>> = Some(Arc::new(server));
    OpenedSource { server, described, ..OpenedSource::new(integration) }
}

fn server(config: &SourceConfig, context: SourceContext<'_>) -> Result<McpServer, String> {
    let endpoint = match (&config.url, config.command.is_empty()) {
        (Some(url), true) => {
            let parsed = Url::parse(url).map_err(|_| "url is no address".to_owned())?;
            if !matches!(parsed.scheme(), "http" | "https") {
                return Err("url begins with http:// or https://".into());
            }
            McpEndpoint::Http { url: url.clone(), client: context.http.clone() }
        }
        (None, false) => McpEndpoint::Stdio(config.program()),
        (Some(_), false) | (None, true) => return Err("an MCP server has url or command".into()),
    };
    Ok(McpServer::new(endpoint, context.minding, McpLimits::default()))
}
