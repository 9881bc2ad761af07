//! The tools that manage sources, connections and policies. A program can propose a change with them; a person decides,
//! call by call: no policy, no approval given beforehand and no remembered approval replaces the answer. The server
//! composes the question from the checked arguments. No secret passes through here: people enter credentials.

mod policies;
mod question;

use crate::{ConnectionView, SourceError, SourceRegistry};
use credentials::{ConnectionConfig, CredentialOffer, FlowStart, OAuthConfig};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lifecycle::{Failure, FailureCode, Json, ToolHost, ToolNature, ToolPath};
use serde_json::{Map, Value, json};
use std::pin::pin;
use std::time::Duration;
use tools::envelope::{self, ToolFailure};
use tools::{
    CatalogueChange, IntegrationSlug, Source, SourceCard, SourceConfig, SourceKind, Tool,
    ToolRequest, graphql, mcp, openapi, slug_of_host,
};

/// `executor.coreTools.*`, `executor.openapi.*`, `executor.graphql.*` and `executor.mcp.*`.
#[derive(Debug)]
pub struct ManagementTools(SourceRegistry);

impl ManagementTools {
    /// Tools that manage `sources`.
    pub const fn new(sources: SourceRegistry) -> Self {
        Self(sources)
    }
}

/// Every management tool by its path, and whether each of its calls needs an answer.
pub fn management_tools() -> impl Iterator<Item = (&'static str, bool)> {
    LIST.iter().map(|ManagementTool(path, _, _, effect)| (*path, *effect != ToolEffect::Shows))
}

/// What a call does, which decides whether it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolEffect {
    /// Returns what the caller of the program can also read over HTTP. Runs without a question.
    Shows,
    /// Returns more than that, or makes the server send requests to an address that the program chose. Asks.
    Examines,
    /// Changes something. Asks.
    Changes,
}

/// A management tool: its path, what it does, the names of its arguments, all of them texts, and its effect. An argument
/// with a question mark may be left out.
struct ManagementTool(&'static str, &'static str, &'static [&'static str], ToolEffect);

const LIST: [ManagementTool; 21] = [
    ManagementTool(
        "executor.coreTools.integrations.list",
        "Lists the sources of tools.",
        &[],
        ToolEffect::Shows,
    ),
    ManagementTool(
        "executor.coreTools.integrations.detect",
        "Finds out whether an address has a description: OpenAPI, GraphQL or MCP. An empty list where none can be read.",
        &["url"],
        ToolEffect::Examines,
    ),
    ManagementTool(
        "executor.coreTools.integrations.refresh",
        "Reads a source again and returns the changes.",
        &["slug"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        "executor.coreTools.integrations.remove",
        "Removes a source and its connections.",
        &["slug"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        "executor.coreTools.connections.list",
        "Lists connections, without their secrets.",
        &["integration?", "owner?"],
        ToolEffect::Shows,
    ),
    ManagementTool(
        "executor.coreTools.connections.create",
        "Binds a source without a credential; people enter those that have one.",
        &["integration", "name", "owner?", "description?"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        "executor.coreTools.connections.createHandoff",
        "Gives the address of a page where a person enters a connection's secret; makes the connection where there is none.",
        &["integration", "name", "owner?", "template?", "description?"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        "executor.coreTools.oauth.start",
        "Gives the address where a person agrees that a connection is used; makes the connection where there is none.",
        &["integration", "name", "owner?"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        "executor.coreTools.oauth.cancel",
        "Ends what was begun for a connection: no consent is needed any more.",
        &["integration", "name", "owner?"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        "executor.coreTools.connections.remove",
        "Removes a connection.",
        &["integration", "owner", "name"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        "executor.coreTools.connections.refresh",
        "Reads a connection's source again and returns the changes.",
        &["integration", "owner", "name"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        policies::LIST,
        "Lists the policies: who may call what.",
        &[],
        ToolEffect::Examines,
    ),
    ManagementTool(
        policies::CREATE,
        "Makes a policy: approve, require_approval or block.",
        &["owner", "pattern", "action", "position?"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        policies::UPDATE,
        "Changes a policy.",
        &["id", "owner?", "pattern?", "action?", "position?"],
        ToolEffect::Changes,
    ),
    ManagementTool(policies::REMOVE, "Removes a policy.", &["id", "owner?"], ToolEffect::Changes),
    ManagementTool(
        "executor.openapi.previewSpec",
        "Says what an OpenAPI description would become.",
        &["spec"],
        ToolEffect::Examines,
    ),
    ManagementTool(
        "executor.openapi.addSpec",
        "Adds an API by the address of its OpenAPI description.",
        &["slug", "url", "baseUrl?"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        "executor.graphql.addIntegration",
        "Adds a GraphQL API by its address.",
        &["slug", "endpoint"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        "executor.mcp.probe",
        "Finds out whether an address is an MCP server. An empty list where none answers.",
        &["url"],
        ToolEffect::Examines,
    ),
    ManagementTool(
        "executor.mcp.addServer",
        "Adds an MCP server by its address.",
        &["slug", "url"],
        ToolEffect::Changes,
    ),
    ManagementTool(
        "executor.mcp.refreshServer",
        "Lists a server's tools again.",
        &["slug"],
        ToolEffect::Changes,
    ),
];

impl Source for ManagementTools {
    fn name(&self) -> &'static str {
        "management"
    }

    fn tools(&self) -> Vec<Tool> {
        LIST.iter().map(tool).collect()
    }

    fn is_enveloped(&self) -> bool {
        true
    }

    fn compose_question(&self, tool: &ToolPath, args: &Json) -> Option<Result<String, Json>> {
        let args: Value = serde_json::from_str(args.as_text()).unwrap_or(Value::Null);
        let policies = self.0.0.setup.engine.policies();
        let question = question::compose(tool.as_str(), &args, |id| policies.current(id))?;
        Some(question.map_err(|trouble| trouble.into_envelope()))
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        let sources = self.0.clone();
        async move {
            let args: Value = serde_json::from_str(request.args.as_text()).unwrap_or(Value::Null);
            match perform_tool(&sources, request.tool.as_str(), &args).await {
                Ok(data) => Json::from_value(&data)
                    .map(|data| Some(envelope::done(&data, None)))
                    .map_err(|error| Failure::new(FailureCode::Serialization, error.to_string())),
                Err(trouble) => Ok(Some(trouble.into_envelope())),
            }
        }
        .boxed()
    }
}

fn tool(ManagementTool(path, about, names, effect): &ManagementTool) -> Tool {
    let text = || json!({"type": "string"});
    let bare = |name: &&str| name.trim_end_matches('?').to_owned();
    let members: Map<_, _> = names.iter().map(|name| (bare(name), text())).collect();
    let required: Vec<_> = names.iter().filter(|name| !name.ends_with('?')).collect();
    let input = json!({"type": "object", "properties": members, "required": required});
    let asks = *effect != ToolEffect::Shows;
    Tool {
        description: (*about).into(),
        input_schema: Some(input),
        nature: ToolNature { read_only: *effect != ToolEffect::Changes, runs: ToolHost::Here },
        asks,
        answer_only: asks,
        ..Tool::new(ToolPath::parse(path).expect("our own paths are paths"))
    }
}

async fn perform_tool(
    sources: &SourceRegistry,
    tool: &str,
    args: &Value,
) -> Result<Value, ToolFailure> {
    let text = |name: &str| args[name].as_str().unwrap_or_default().to_owned();
    let some = |name: &str| args[name].as_str().map(str::to_owned);
    let slug =
        |name: &str| IntegrationSlug::parse(&text(name)).map_err(|bad| wrong(bad.to_string()));
    let add = async |kind: &dyn SourceKind, url: &str| {
        let (kind, url) = (Some(kind.name().to_owned()), Some(text(url)));
        let spec = SourceConfig { kind, url, base_url: some("baseUrl"), ..SourceConfig::default() };
        Ok(changed(&sources.add(&slug("slug")?, spec, true).await?))
    };
    match tool {
        "executor.coreTools.integrations.list" => Ok(json!({ "integrations": cards(sources) })),
        "executor.coreTools.integrations.detect" | "executor.mcp.probe" => {
            let wanted = tool.starts_with("executor.mcp").then_some(&mcp::McpKind);
            let found = detected(sources, &text("url"), wanted).await;
            Ok(json!({ "results": found }))
        }
        "executor.coreTools.integrations.refresh" | "executor.mcp.refreshServer" => {
            Ok(changed(&sources.refresh(&slug("slug")?).await?))
        }
        "executor.coreTools.integrations.remove" => {
            sources.remove(&slug("slug")?).await?;
            Ok(json!({ "removed": true }))
        }
        "executor.coreTools.connections.list" => Ok(connections(sources, args).await),
        "executor.coreTools.connections.create" => {
            let (owner, description) = (some("owner"), some("description"));
            let made = ConnectionConfig { owner, description, ..ConnectionConfig::default() };
            let view = sources.connect(&slug("integration")?, &text("name"), made).await?;
            Ok(view.row())
        }
        "executor.coreTools.connections.createHandoff" => {
            create_handoff(sources, &slug("integration")?, args).await
        }
        "executor.coreTools.oauth.start" => {
            let (slug, name) = (slug("integration")?, text("name"));
            let offer = CredentialOffer {
                oauth: Some(OAuthConfig::default()),
                ..CredentialOffer::default()
            };
            let place = prepared(sources, &slug, args, offer).await?;
            Ok(match sources.authorize(&slug, &place, &name).await.map_err(sign_in_trouble)? {
                FlowStart::Connected => json!({ "status": "connected" }),
                FlowStart::Visit { url, .. } => {
                    json!({ "status": "redirect", "url": url, "authorizationUrl": url })
                }
            })
        }
        "executor.coreTools.oauth.cancel" => {
            let owner = some("owner").unwrap_or_else(|| "org".into());
            let ended = sources.cancel_flow(&slug("integration")?, &owner, &text("name")).await?;
            Ok(json!({ "cancelled": ended }))
        }
        "executor.coreTools.connections.remove" => {
            let (owner, name) = (text("owner"), text("name"));
            let removed = sources.disconnect(&slug("integration")?, &owner, &name).await?;
            Ok(json!({ "removed": removed }))
        }
        "executor.coreTools.connections.refresh" => {
            Ok(changed(&sources.refresh(&slug("integration")?).await?))
        }
        "executor.openapi.previewSpec" => sources.preview(text("spec"), None).await.map_err(wrong),
        "executor.openapi.addSpec" => add(&openapi::OpenApiKind, "url").await,
        "executor.graphql.addIntegration" => add(&graphql::GraphqlKind, "endpoint").await,
        "executor.mcp.addServer" => add(&mcp::McpKind, "url").await,
        _ => policies::perform_policy_tool(sources, tool, args).await,
    }
}

/// Creates an address at which a person enters the secret of a connection.
async fn create_handoff(
    sources: &SourceRegistry,
    slug: &IntegrationSlug,
    args: &Value,
) -> Result<Value, ToolFailure> {
    let template = args["template"].as_str().unwrap_or("bearer").to_owned();
    let offer = CredentialOffer {
        template: Some(template),
        is_handed_off: true,
        ..CredentialOffer::default()
    };
    let place = prepared(sources, slug, args, offer).await?;
    let name = args["name"].as_str().unwrap_or_default();
    Ok(json!({ "url": sources.hand_off(slug, &place, name).await? }))
}

/// Creates a connection without a secret if there is none of that name. Returns its owner.
async fn prepared(
    sources: &SourceRegistry,
    slug: &IntegrationSlug,
    args: &Value,
    offer: CredentialOffer,
) -> Result<String, ToolFailure> {
    let text = |name: &str| args[name].as_str().map(str::to_owned);
    let (owner, name) =
        (text("owner").unwrap_or_else(|| "org".into()), text("name").unwrap_or_default());
    if sources.connection(slug, &owner, &name).await.is_none() {
        let mut made = sources.offered(slug, offer).map_err(wrong)?;
        (made.owner, made.description) = (Some(owner.clone()), text("description"));
        sources.connect(slug, &name, made).await?;
    }
    Ok(owner)
}

fn wrong(why: String) -> ToolFailure {
    ToolFailure::new("invalid_tool_arguments", why)
}

/// When the answer "no description" is sent, independent of the cause: a closed port, a silent one and one with another
/// page must not differ in time.
const NO_DESCRIPTION_TIME: Duration = Duration::from_secs(5);

/// The result, if found before `end`. A negative answer is sent at `end`, not earlier.
async fn found_before<T>(
    detection: impl Future<Output = Option<T>>,
    end: impl Future<Output = ()>,
) -> Option<T> {
    let mut end = pin!(end);
    let found = tokio::select! {
        biased;
        found = detection => found,
        () = &mut end => return None,
    };
    if found.is_none() {
        end.await;
    }
    found
}

/// Determines the kind of an address. All failures look alike, so that a program cannot use the server to scan hosts and
/// ports; name and slug come from the address, not from what was read there.
async fn detected(sources: &SourceRegistry, url: &str, wanted: Option<&mcp::McpKind>) -> Value {
    let detection = async {
        let found = sources.detect(url).await;
        let found = found.inspect_err(|why| {
            tracing::info!(url, why, "a management tool found no description");
        });
        found.ok().filter(|found| wanted.is_none_or(|wanted| wanted.name() == found.kind))
    };
    let end = tokio::time::sleep(NO_DESCRIPTION_TIME);
    let Some(found) = found_before(detection, end).await else { return json!([]) };
    let address = url::Url::parse(url).ok();
    let name = address.as_ref().and_then(|address| address.host_str());
    let slug = address.as_ref().and_then(slug_of_host).map(|slug| slug.to_string());
    json!([{ "kind": found.kind, "confidence": "high", "endpoint": url, "name": name, "slug": slug }])
}

/// The connections, filtered by source or owner if the arguments name one.
async fn connections(sources: &SourceRegistry, args: &Value) -> Value {
    let fits = |name: &str, value: &str| args[name].as_str().is_none_or(|wanted| wanted == value);
    let views = sources.connections().await;
    let fitting = views
        .iter()
        .filter(|view| fits("integration", &view.integration) && fits("owner", &view.owner));
    let rows: Vec<_> = fitting.map(ConnectionView::row).collect();
    json!({ "connections": rows })
}

fn cards(sources: &SourceRegistry) -> Value {
    let snapshot = sources.0.setup.engine.catalogue().snapshot();
    let card = |(card, n_tools): (&SourceCard, usize)| {
        json!({
            "slug": card.name, "name": card.title, "description": card.about(), "kind": card.kind,
            "canRemove": card.can_remove, "canRefresh": card.can_refresh, "toolCount": n_tools,
            "trouble": card.trouble,
        })
    };
    snapshot.cards().map(card).collect()
}

fn changed(change: &CatalogueChange) -> Value {
    json!({
        "addedTools": change.added,
        "removedTools": change.removed,
        "changedTools": change.changed,
        "grownTools": change.grown,
        "leftOut": change.left_out,
    })
}

/// What the program receives if a source cannot be read, for any reason.
const UNREADABLE: &str =
    "the source's description cannot be read; `airlock source list` and the server's log state why";

/// What the program receives if a sign-in cannot be started, for any reason.
const NOT_STARTED: &str = "the sign-in could not be started; the server's log states why";

impl From<SourceError> for ToolFailure {
    fn from(error: SourceError) -> Self {
        if let SourceError::Unreadable { .. } = &error {
            // The reason would reveal to a program which hosts and ports answer.
            tracing::warn!("a management tool could not read a source: {error}");
            return Self::new(code(&error), UNREADABLE);
        }
        Self::new(code(&error), error.to_string())
    }
}

/// Why a sign-in did not start, without the answer of the other server.
fn sign_in_trouble(error: SourceError) -> ToolFailure {
    if let SourceError::Wrong(why) = error {
        tracing::warn!(why, "a management tool could not start a sign-in");
        return ToolFailure::new("oauth_start_failed", NOT_STARTED);
    }
    error.into()
}

const fn code(error: &SourceError) -> &'static str {
    match error {
        SourceError::Unknown(_) => "integration_not_found",
        SourceError::Exists(_) => "integration_already_exists",
        SourceError::Configured(_) => "integration_configured",
        SourceError::Wrong(_) => "invalid_tool_arguments",
        SourceError::Unreadable { .. } => "integration_unreadable",
        SourceError::NoConnection(_) => "connection_not_found",
        SourceError::Vault(_) => "connection_value_locked",
        SourceError::Store(_) => "internal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use tokio::sync::oneshot;

    #[test]
    fn that_there_is_no_description_is_answered_at_one_time_only() {
        assert_eq!(found_before(ready(Some(1)), pending()).now_or_never(), Some(Some(1)));
        let end = || {
            let (send, end) = oneshot::channel::<()>();
            (send, async { end.await.unwrap_or_default() })
        };
        let (send, at_end) = end();
        let mut refused = Box::pin(found_before(ready(None::<u8>), at_end));
        assert_eq!(refused.as_mut().now_or_never(), None, "a port that refuses");
        send.send(()).unwrap();
        assert_eq!(refused.now_or_never(), Some(None));
        let (send, at_end) = end();
        let mut silent = Box::pin(found_before(pending::<Option<u8>>(), at_end));
        assert_eq!(silent.as_mut().now_or_never(), None, "a port that says nothing");
        send.send(()).unwrap();
        assert_eq!(silent.now_or_never(), Some(None));
    }
}
