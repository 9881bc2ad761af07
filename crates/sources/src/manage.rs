//! The tools that manage sources. Whatever changes something asks a person first, and no secret passes
//! through here: credentials are entered by people.

use crate::config::Source as Spec;
use crate::{SourceError, Sources};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lifecycle::{Failure, FailureCode, Json, Nature, Runs, ToolPath};
use serde_json::{Value, json};
use tools::{Change, Request, Slug, Source, Tool};

/// `executor.coreTools.*`, `executor.openapi.addSpec` and `executor.mcp.addServer`.
#[derive(Debug)]
pub struct Management(Sources);

impl Management {
    /// Manages these.
    pub const fn new(sources: Sources) -> Self {
        Self(sources)
    }
}

impl Source for Management {
    fn name(&self) -> &'static str {
        "management"
    }

    fn tools(&self) -> Vec<Tool> {
        let text = json!({"type": "string"});
        let slug = || json!({"slug": text});
        let list = [
            (
                "executor.coreTools.integrations.detect",
                "Says what an address is: OpenAPI or MCP.",
                json!({"url": text}),
                false,
            ),
            (
                "executor.coreTools.integrations.refresh",
                "Reads a source anew and says what changed.",
                slug(),
                true,
            ),
            (
                "executor.coreTools.integrations.remove",
                "Removes a source and its connections.",
                slug(),
                true,
            ),
            (
                "executor.coreTools.connections.list",
                "Lists connections, without their secrets.",
                json!({}),
                false,
            ),
            (
                "executor.openapi.addSpec",
                "Adds an API by the address of its OpenAPI description.",
                json!({"slug": text, "url": text}),
                true,
            ),
            (
                "executor.mcp.addServer",
                "Adds an MCP server by its address.",
                json!({"slug": text, "url": text}),
                true,
            ),
        ];
        let tool = |(path, description, members, asks): (&str, &str, Value, bool)| {
            let required: Vec<_> =
                members.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
            Tool {
                description: description.into(),
                input_schema: Some(
                    json!({"type": "object", "properties": members, "required": required}),
                ),
                nature: Nature { read_only: !asks, runs: Runs::Here },
                asks,
                ..Tool::new(ToolPath::parse(path).expect("our own paths are paths"))
            }
        };
        list.into_iter().map(tool).collect()
    }

    fn call(&self, request: Request) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        let sources = self.0.clone();
        async move {
            let args: Value = serde_json::from_str(request.args.text()).unwrap_or(Value::Null);
            let told = match perform(&sources, request.tool.as_str(), &args).await {
                Ok(data) => json!({ "ok": true, "data": data }),
                Err(error) => {
                    let error = json!({ "code": code(&error), "message": error.to_string() });
                    json!({ "ok": false, "error": error })
                }
            };
            Json::from_value(&told)
                .map(Some)
                .map_err(|error| Failure::new(FailureCode::Serialization, error.to_string()))
        }
        .boxed()
    }
}

async fn perform(sources: &Sources, tool: &str, args: &Value) -> Result<Value, SourceError> {
    let text = |name: &str| args[name].as_str().unwrap_or_default().to_owned();
    let slug = || Slug::parse(&text("slug")).map_err(|bad| SourceError::Wrong(bad.to_string()));
    let add = async |kind: &str| {
        let spec = Spec { kind: Some(kind.into()), url: Some(text("url")), ..Spec::default() };
        sources.add(&slug()?, spec, true).await.map(|change| changed(&change))
    };
    match tool {
        "executor.coreTools.integrations.detect" => {
            let found = sources.detect(&text("url")).await.map_err(SourceError::Wrong)?;
            let slug = found.slug.map(|slug| slug.to_string());
            Ok(
                json!([{ "kind": found.kind, "endpoint": found.url, "name": found.title, "slug": slug }]),
            )
        }
        "executor.coreTools.integrations.refresh" => Ok(changed(&sources.refresh(&slug()?).await?)),
        "executor.coreTools.integrations.remove" => {
            sources.remove(&slug()?).await?;
            Ok(json!({ "removed": true }))
        }
        "executor.openapi.addSpec" => add("openapi").await,
        "executor.mcp.addServer" => add("mcp").await,
        _ => {
            let shown = |view: &crate::ConnectionView| {
                let address = format!("tools.{}.{}.{}", view.integration, view.owner, view.name);
                json!({ "address": address, "template": view.template })
            };
            Ok(sources.connections().await.iter().map(shown).collect())
        }
    }
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

const fn code(error: &SourceError) -> &'static str {
    match error {
        SourceError::Unknown(_) => "integration_not_found",
        SourceError::Exists(_) => "integration_already_exists",
        SourceError::Configured(_) => "integration_configured",
        SourceError::Wrong(_) => "invalid_tool_arguments",
        SourceError::Unreadable { .. } => "integration_unreadable",
        SourceError::Store(_) => "internal",
    }
}
