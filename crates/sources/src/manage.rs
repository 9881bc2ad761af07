//! The tools that manage sources, connections and policies. Whatever changes something asks a person first, by
//! name: no pattern approves it, so that no agent approves itself. No secret passes through here: credentials are
//! entered by people.

mod policies;

use crate::config::{Connection, OAuth, Source as Spec};
use crate::{Begun, ConnectionView, Offer, SourceError, Sources};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lifecycle::{Failure, FailureCode, Json, Nature, Runs, ToolPath};
use serde_json::{Map, Value, json};
use tools::envelope::Trouble;
use tools::{Card, Change, Request, Slug, Source, Tool};

/// `executor.coreTools.*`, `executor.openapi.*`, `executor.graphql.*` and `executor.mcp.*`.
#[derive(Debug)]
pub struct Management(Sources);

impl Management {
    /// Manages these.
    pub const fn new(sources: Sources) -> Self {
        Self(sources)
    }
}

/// One of them: its path, what it does, the names of its arguments, all of them texts, and whether it asks. A name
/// with a question mark may be left out.
struct Listed(&'static str, &'static str, &'static [&'static str], bool);

const LIST: [Listed; 21] = [
    Listed("executor.coreTools.integrations.list", "Lists the sources of tools.", &[], false),
    Listed(
        "executor.coreTools.integrations.detect",
        "Says what an address is: OpenAPI, GraphQL or MCP.",
        &["url"],
        false,
    ),
    Listed(
        "executor.coreTools.integrations.refresh",
        "Reads a source anew and says what changed.",
        &["slug"],
        true,
    ),
    Listed(
        "executor.coreTools.integrations.remove",
        "Removes a source and its connections.",
        &["slug"],
        true,
    ),
    Listed(
        "executor.coreTools.connections.list",
        "Lists connections, without their secrets.",
        &[],
        false,
    ),
    Listed(
        "executor.coreTools.connections.create",
        "Binds a source without a credential; people enter those that have one.",
        &["integration", "name", "owner?", "description?"],
        true,
    ),
    Listed(
        "executor.coreTools.connections.createHandoff",
        "Gives the address of a page where a person enters a connection's secret; makes the connection where there is none.",
        &["integration", "name", "owner?", "template?", "description?"],
        true,
    ),
    Listed(
        "executor.coreTools.oauth.start",
        "Gives the address where a person agrees that a connection is used; makes the connection where there is none.",
        &["integration", "name", "owner?"],
        true,
    ),
    Listed(
        "executor.coreTools.oauth.cancel",
        "Ends what was begun for a connection: nobody needs to agree any more.",
        &["integration", "name", "owner?"],
        true,
    ),
    Listed(
        "executor.coreTools.connections.remove",
        "Removes a connection.",
        &["integration", "owner", "name"],
        true,
    ),
    Listed(
        "executor.coreTools.connections.refresh",
        "Reads a connection's source anew and says what changed.",
        &["integration", "owner", "name"],
        true,
    ),
    Listed(policies::LIST, "Lists the policies: who may call what.", &[], false),
    Listed(
        policies::CREATE,
        "Makes a policy: approve, require_approval or block.",
        &["owner", "pattern", "action", "position?"],
        true,
    ),
    Listed(
        policies::UPDATE,
        "Changes a policy.",
        &["id", "owner?", "pattern?", "action?", "position?"],
        true,
    ),
    Listed(policies::REMOVE, "Removes a policy.", &["id", "owner?"], true),
    Listed(
        "executor.openapi.previewSpec",
        "Says what an OpenAPI description would become.",
        &["spec"],
        false,
    ),
    Listed(
        "executor.openapi.addSpec",
        "Adds an API by the address of its OpenAPI description.",
        &["slug", "url", "baseUrl?"],
        true,
    ),
    Listed(
        "executor.graphql.addIntegration",
        "Adds a GraphQL API by its address.",
        &["slug", "endpoint"],
        true,
    ),
    Listed("executor.mcp.probe", "Says whether an address is an MCP server.", &["url"], false),
    Listed("executor.mcp.addServer", "Adds an MCP server by its address.", &["slug", "url"], true),
    Listed("executor.mcp.refreshServer", "Lists a server's tools anew.", &["slug"], true),
];

impl Source for Management {
    fn name(&self) -> &'static str {
        "management"
    }

    fn tools(&self) -> Vec<Tool> {
        LIST.iter().map(tool).collect()
    }

    fn call(&self, request: Request) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        let sources = self.0.clone();
        async move {
            let args: Value = serde_json::from_str(request.args.text()).unwrap_or(Value::Null);
            let told = match perform(&sources, request.tool.as_str(), &args).await {
                Ok(data) => json!({ "ok": true, "data": data }),
                Err(trouble) => return Ok(Some(trouble.told())),
            };
            Json::from_value(&told)
                .map(Some)
                .map_err(|error| Failure::new(FailureCode::Serialization, error.to_string()))
        }
        .boxed()
    }
}

fn tool(Listed(path, about, names, asks): &Listed) -> Tool {
    let text = || json!({"type": "string"});
    let bare = |name: &&str| name.trim_end_matches('?').to_owned();
    let members: Map<_, _> = names.iter().map(|name| (bare(name), text())).collect();
    let required: Vec<_> = names.iter().filter(|name| !name.ends_with('?')).collect();
    let input = json!({"type": "object", "properties": members, "required": required});
    Tool {
        description: (*about).into(),
        input_schema: Some(input),
        nature: Nature { read_only: !asks, runs: Runs::Here },
        asks: *asks,
        by_name_only: *asks,
        ..Tool::new(ToolPath::parse(path).expect("our own paths are paths"))
    }
}

async fn perform(sources: &Sources, tool: &str, args: &Value) -> Result<Value, Trouble> {
    let text = |name: &str| args[name].as_str().unwrap_or_default().to_owned();
    let some = |name: &str| args[name].as_str().map(str::to_owned);
    let slug = |name: &str| Slug::parse(&text(name)).map_err(|bad| wrong(bad.to_string()));
    let add = async |kind: &str, url: &str| {
        let (kind, url) = (Some(kind.into()), Some(text(url)));
        let spec = Spec { kind, url, base_url: some("baseUrl"), ..Spec::default() };
        Ok(changed(&sources.add(&slug("slug")?, spec, true).await?))
    };
    match tool {
        "executor.coreTools.integrations.list" => Ok(cards(sources)),
        "executor.coreTools.integrations.detect" | "executor.mcp.probe" => {
            detected(sources, &text("url"), tool.starts_with("executor.mcp")).await
        }
        "executor.coreTools.integrations.refresh" | "executor.mcp.refreshServer" => {
            Ok(changed(&sources.refresh(&slug("slug")?).await?))
        }
        "executor.coreTools.integrations.remove" => {
            sources.remove(&slug("slug")?).await?;
            Ok(json!({ "removed": true }))
        }
        "executor.coreTools.connections.list" => {
            Ok(sources.connections().await.iter().map(shown).collect())
        }
        "executor.coreTools.connections.create" => {
            let (owner, description) = (some("owner"), some("description"));
            let made = Connection { owner, description, ..Connection::default() };
            let view = sources.connect(&slug("integration")?, &text("name"), made).await?;
            Ok(shown(&view))
        }
        "executor.coreTools.connections.createHandoff" => {
            let (slug, name) = (slug("integration")?, text("name"));
            let template = some("template").unwrap_or_else(|| "bearer".into());
            let offer = Offer { template: Some(template), is_handed_off: true, ..Offer::default() };
            let place = prepared(sources, &slug, args, offer).await?;
            Ok(json!({ "url": sources.hand_off(&slug, &place, &name).await? }))
        }
        "executor.coreTools.oauth.start" => {
            let (slug, name) = (slug("integration")?, text("name"));
            let offer = Offer { oauth: Some(OAuth::default()), ..Offer::default() };
            let place = prepared(sources, &slug, args, offer).await?;
            Ok(match sources.authorize(&slug, &place, &name).await? {
                Begun::Connected => json!({ "status": "connected" }),
                Begun::Visit { url, .. } => json!({ "status": "redirect", "url": url }),
            })
        }
        "executor.coreTools.oauth.cancel" => {
            let owner = some("owner").unwrap_or_else(|| "org".into());
            let ended = sources.call_off(&slug("integration")?, &owner, &text("name")).await?;
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
        "executor.openapi.previewSpec" => sources.preview(&text("spec")).map_err(wrong),
        "executor.openapi.addSpec" => add("openapi", "url").await,
        "executor.graphql.addIntegration" => add("graphql", "endpoint").await,
        "executor.mcp.addServer" => add("mcp", "url").await,
        _ => policies::perform(sources, tool, args).await,
    }
}

/// Makes a connection without a secret where there is none of that name. Its owner.
async fn prepared(
    sources: &Sources,
    slug: &Slug,
    args: &Value,
    offer: Offer,
) -> Result<String, Trouble> {
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

fn wrong(why: String) -> Trouble {
    Trouble::new("invalid_tool_arguments", why)
}

async fn detected(sources: &Sources, url: &str, only_mcp: bool) -> Result<Value, Trouble> {
    let found = sources.detect(url).await.map_err(wrong)?;
    if only_mcp && found.kind != "mcp" {
        return Ok(json!([]));
    }
    let slug = found.slug.map(|slug| slug.to_string());
    Ok(json!([{ "kind": found.kind, "endpoint": found.url, "name": found.title, "slug": slug }]))
}

fn cards(sources: &Sources) -> Value {
    let snapshot = sources.0.setup.engine.catalogue().snapshot();
    let card = |(card, n_tools): (&Card, usize)| {
        json!({
            "slug": card.name, "name": card.title, "description": card.description, "kind": card.kind,
            "canRemove": card.can_remove, "canRefresh": card.can_refresh, "toolCount": n_tools,
            "trouble": card.trouble,
        })
    };
    snapshot.cards().map(card).collect()
}

fn shown(view: &ConnectionView) -> Value {
    let address = format!("tools.{}.{}.{}", view.integration, view.owner, view.name);
    json!({ "address": address, "template": view.template })
}

fn changed(change: &Change) -> Value {
    json!({
        "addedTools": change.added,
        "removedTools": change.removed,
        "changedTools": change.changed,
        "grownTools": change.grown,
        "leftOut": change.left_out,
    })
}

impl From<SourceError> for Trouble {
    fn from(error: SourceError) -> Self {
        Self::new(code(&error), error.to_string())
    }
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
