//! MCP servers as sources: started by us over stdio, or reached over streamable HTTP. One connection per
//! credential is cached and reused, and replaced when it is lost.

mod bounded;
mod handler;
mod http;
mod kind;
mod names;
mod progress;
mod refusal;
mod session;

use crate::envelope::{ToolFailure, done};
use crate::http::ApiClient;
use crate::{
    AuthMethod, ChildProgram, ChildSupervision, Integration, SharedSchema, ToolCredential,
    ToolRequest, ToolSpec, scrub,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
pub use kind::McpKind;
use lifecycle::{Failure, FailureCode, Json};
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Value, json};
use session::McpConnections;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of a call's arguments: together with the protocol's members they still fit one message.
const ARGS_BYTES_MAX: usize = 8 << 20;

/// Where an MCP server is.
#[derive(Debug, Clone)]
pub enum McpEndpoint {
    /// A program that speaks on its standard input and output.
    Stdio(ChildProgram),
    /// The URL of a server with streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// The HTTP client.
        client: ApiClient,
    },
}

/// Limits on one MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpLimits {
    /// Time for the handshake and the list of tools.
    pub start: Duration,
    /// Time for a call. The timer is stopped while a person is asked.
    pub call: Duration,
}

impl Default for McpLimits {
    fn default() -> Self {
        // A package runner may first have to download the server.
        Self { start: Duration::from_secs(60), call: Duration::from_secs(300) }
    }
}

/// One MCP server, shared by all its callers. Clones are handles to the same connections.
#[derive(Clone)]
pub struct McpServer {
    sessions: Arc<McpConnections>,
}

/// The tools of an MCP server, as listed last.
struct McpIntegration {
    server: McpServer,
    specs: Vec<ToolSpec>,
    /// The server's own tool names, by ours.
    names: HashMap<String, McpTool>,
}

#[derive(Clone)]
struct McpTool {
    name: String,
    read_only: bool,
}

impl McpServer {
    /// A handle to a server. Starts and sends nothing yet.
    pub fn new(endpoint: McpEndpoint, minding: ChildSupervision, limits: McpLimits) -> Self {
        Self { sessions: Arc::new(McpConnections::new(endpoint, minding, limits)) }
    }

    /// Lists the tools of the server, page by page. Returns the list also as text for
    /// [`Self::import_listed`], without known secrets.
    pub async fn import(
        &self,
        credential: &ToolCredential,
    ) -> Result<(Arc<dyn Integration>, String), String> {
        let tools = self.sessions.list_tools(credential).await?;
        let listed = serde_json::to_string(&tools).map_err(|error| error.to_string())?;
        let listed = scrub::scrub_text(&listed).into_owned();
        Ok((self.import_listed(&listed)?, listed))
    }

    /// The tools of the last list. Starts and sends nothing.
    pub fn import_listed(&self, listed: &str) -> Result<Arc<dyn Integration>, String> {
        let tools: Vec<Tool> = serde_json::from_str(listed).map_err(|error| error.to_string())?;
        let mut taken = names::GivenNames::default();
        let (mut specs, mut own) = (vec![], HashMap::new());
        for tool in tools {
            let name = taken.give(&tool.name);
            let spec = spec(&name, &tool);
            own.insert(name, McpTool { name: tool.name.into_owned(), read_only: spec.read_only });
            specs.push(spec);
        }
        Ok(Arc::new(McpIntegration { server: self.clone(), specs, names: own }))
    }

    /// Resolves when the server has reported a change of its list.
    pub async fn changed(&self) {
        self.sessions.changed().await;
    }

    /// Closes every connection and ends every program.
    pub async fn close(&self) {
        self.sessions.close().await;
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpServer")
    }
}

impl Integration for McpIntegration {
    fn kind(&self) -> &'static str {
        "mcp"
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.specs.clone()
    }

    fn target(&self) -> String {
        self.server.sessions.target()
    }

    fn outage(&self) -> Option<String> {
        self.server.sessions.outage()
    }

    fn auth_methods(&self) -> Vec<AuthMethod> {
        vec![AuthMethod::none(), AuthMethod::bearer("bearer")]
    }

    fn objection(&self, _tool: &str, _credential: &ToolCredential, args: &Json) -> Option<String> {
        let n_bytes = args.as_text().len();
        let why = || format!("they have {n_bytes} bytes, {ARGS_BYTES_MAX} at most");
        (n_bytes > ARGS_BYTES_MAX).then(why)
    }

    fn call(
        &self,
        tool: &str,
        credential: &ToolCredential,
        request: ToolRequest,
    ) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        let sessions = Arc::clone(&self.server.sessions);
        let (own, credential) = (self.names.get(tool).cloned(), credential.clone());
        async move {
            let Some(own) = own else {
                return Ok(Some(
                    ToolFailure::new("tool_not_found", "The server has no such tool.")
                        .into_envelope(),
                ));
            };
            match sessions.call(&own.name, own.read_only, &credential, &request).await {
                Ok(result) => Ok(Some(call_result(&result))),
                // Nothing was sent: the call may wait until the server is back.
                Err(trouble) if trouble.code == refusal::SERVER_DOWN => {
                    Err(Failure::new(FailureCode::SourceUnavailable, trouble.message))
                }
                Err(trouble) => Ok(Some(trouble.into_envelope())),
            }
        }
        .boxed()
    }
}

/// Converts a tool of the server.
fn spec(name: &str, tool: &Tool) -> ToolSpec {
    let hints = tool.annotations.clone().unwrap_or_default();
    let read_only = hints.read_only_hint == Some(true);
    let title = tool.title.clone().or(hints.title);
    let description = tool.description.as_deref().unwrap_or_default().trim().to_owned();
    let structured = tool.output_schema.as_ref().map(|schema| Value::Object((**schema).clone()));
    ToolSpec {
        name: name.to_owned(),
        description: if description.is_empty() { title.unwrap_or_default() } else { description },
        input: Some(SharedSchema::new(&Value::Object((*tool.input_schema).clone()))),
        output: Some(SharedSchema::new(&result_schema(structured))),
        read_only,
        asks: hints.destructive_hint == Some(true) && !read_only,
        about: None,
        job: false,
    }
}

fn result_schema(structured: Option<Value>) -> Value {
    let block = json!({
        "type": "object",
        "properties": {"type": {"type": "string"}, "text": {"type": "string"}},
        "required": ["type"],
    });
    let mut members = json!({"content": {"type": "array", "items": block}});
    let mut required = vec!["content"];
    let mut definitions = None;
    if let Some(mut structured) = structured {
        // References are relative to the root, so the definitions of the schema must be at the root.
        definitions = structured.as_object_mut().and_then(|schema| schema.remove("$defs"));
        members["structuredContent"] = structured;
        required.push("structuredContent");
    }
    let mut schema = json!({"type": "object", "properties": members, "required": required});
    if let Some(definitions) = definitions {
        schema["$defs"] = definitions;
    }
    schema
}

/// The raw result as data. A result with `isError` is a failure.
fn call_result(result: &CallToolResult) -> Json {
    let raw = serde_json::to_value(result).unwrap_or(Value::Null);
    if result.is_error != Some(true) {
        return Json::from_value(&raw)
            .map_or_else(|_| done(&Json::null(), None), |data| done(&data, None));
    }
    let text = |block: &ContentBlock| {
        serde_json::to_value(block).ok()?["text"].as_str().map(str::to_owned)
    };
    let said: Vec<_> = result.content.iter().filter_map(text).collect();
    let message =
        if said.is_empty() { "The tool failed without message.".into() } else { said.join("\n") };
    ToolFailure { details: Some(raw), ..ToolFailure::new("mcp_tool_error", message) }
        .into_envelope()
}
