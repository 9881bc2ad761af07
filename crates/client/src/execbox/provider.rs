//! A namespace of tools: its definition, and the calls of its tools.

use super::error::{BadProvider, ErrorCode, ExecboxFailure, ExecboxToolError};
use super::names;
use super::schema::ArgumentSchema;
use super::types::{self, ToolSignature};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lifecycle::Json;
use protocols::execbox::HOST_PAYLOAD_BYTES_MAX;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// More tools than a person could review; each costs a runner a function.
pub const TOOLS_MAX: usize = 4_096;

/// A builder of a namespace.
#[derive(Debug, Clone)]
pub struct ToolProvider {
    namespace: String,
    tools: Vec<ProvidedTool>,
    on_wire: TypesOnWire,
}

/// Which description of the tools a runner is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TypesOnWire {
    /// The text that execbox itself would send.
    #[default]
    Execbox,
    /// The text that preserves unions, enumerations and references.
    Rich,
}

/// A function that guests may call.
#[derive(Clone)]
pub struct ProvidedTool {
    name: String,
    description: Option<String>,
    input_schema: Option<Value>,
    output_schema: Option<Value>,
    handler: ToolHandler,
}

type ToolHandler = Arc<dyn Fn(Json, ToolContext) -> BoxFuture<'static, ToolReturn> + Send + Sync>;

/// What a tool returns: a value, or `None` for undefined, which execbox refuses.
pub type ToolReturn = Result<Option<Json>, ExecboxToolError>;

/// The context of a call.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// Fires when the result is no longer needed.
    pub signal: CancellationToken,
    /// The namespace.
    pub provider_name: Arc<str>,
    /// The name that the guest used.
    pub safe_tool_name: Arc<str>,
    /// The name that the host gave.
    pub original_tool_name: Arc<str>,
}

impl ToolProvider {
    /// The default namespace.
    pub const DEFAULT_NAMESPACE: &'static str = "codemode";

    /// A namespace without tools.
    pub fn new(namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), tools: vec![], on_wire: TypesOnWire::default() }
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: ProvidedTool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Sets the description that runners are sent.
    #[must_use]
    pub const fn types_on_wire(mut self, on_wire: TypesOnWire) -> Self {
        self.on_wire = on_wire;
        self
    }

    /// Validates names and schemas, once, so that no call has to.
    pub fn resolve(self) -> Result<Arc<ResolvedProvider>, BadProvider> {
        let Self { namespace, tools, on_wire } = self;
        if !names::is_namespace(&namespace) {
            return Err(BadProvider::Namespace(namespace));
        }
        if tools.len() > TOOLS_MAX {
            let n_tools = tools.len();
            return Err(BadProvider::TooManyTools { namespace, n_tools, n_tools_max: TOOLS_MAX });
        }
        let safe_names = safe_names(&namespace, &tools)?;
        let types = [types::execbox, types::rich].map(|text| {
            let signatures = tools.iter().zip(&safe_names).map(|(tool, safe)| tool.signature(safe));
            text(&namespace, &signatures.collect::<Vec<_>>())
        });
        let tools = tools.into_iter().zip(&safe_names).map(|(tool, safe)| tool.resolve(safe));
        let tools: Vec<ResolvedTool> = tools.collect::<Result<_, _>>()?;
        let [types_execbox, types] = types;
        let by_safe_name = tools.iter().enumerate().map(|(idx, tool)| (tool.safe.clone(), idx));
        Ok(Arc::new(ResolvedProvider {
            namespace: namespace.into(),
            by_safe_name: by_safe_name.collect(),
            tools,
            types_execbox,
            types,
            on_wire,
        }))
    }
}

impl Default for ToolProvider {
    fn default() -> Self {
        Self::new(Self::DEFAULT_NAMESPACE)
    }
}

fn safe_names(namespace: &str, tools: &[ProvidedTool]) -> Result<Vec<String>, BadProvider> {
    let mut taken = BTreeSet::new();
    let mut originals = BTreeSet::new();
    let mut safe_names = vec![];
    for tool in tools {
        if !originals.insert(tool.name.as_str()) {
            let (namespace, tool) = (namespace.to_owned(), tool.name.clone());
            return Err(BadProvider::SameName { namespace, tool });
        }
        let safe = names::unique(&tool.name, &taken);
        taken.insert(safe.clone());
        safe_names.push(safe);
    }
    Ok(safe_names)
}

impl ProvidedTool {
    /// A tool that takes and returns any value. Its future is polled by the run that called it, so it must not block
    /// the thread.
    pub fn new<H, F>(name: impl Into<String>, handler: H) -> Self
    where
        H: Fn(Json, ToolContext) -> F + Send + Sync + 'static,
        F: Future<Output = ToolReturn> + Send + 'static,
    {
        Self {
            name: name.into(),
            description: None,
            input_schema: None,
            output_schema: None,
            handler: Arc::new(move |input, context| handler(input, context).boxed()),
        }
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Restricts the arguments to this JSON Schema.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    /// Restricts the results to this JSON Schema.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    fn signature<'a>(&'a self, safe_name: &'a str) -> ToolSignature<'a> {
        ToolSignature {
            safe_name,
            description: self.description.as_deref(),
            input: self.input_schema.as_ref(),
            output: self.output_schema.as_ref(),
        }
    }

    fn resolve(self, safe_name: &str) -> Result<ResolvedTool, BadProvider> {
        let compile = |which, schema: Option<Value>| {
            let compiled = schema.map(|schema| ArgumentSchema::compile(&schema)).transpose();
            compiled.map_err(|why| BadProvider::Schema { tool: self.name.clone(), which, why })
        };
        Ok(ResolvedTool {
            safe: safe_name.into(),
            input: compile("input", self.input_schema)?,
            output: compile("output", self.output_schema)?,
            original: self.name.into(),
            description: self.description,
            handler: self.handler,
        })
    }
}

impl fmt::Debug for ProvidedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A validated namespace, ready for calls.
#[derive(Debug)]
pub struct ResolvedProvider {
    namespace: Arc<str>,
    tools: Vec<ResolvedTool>,
    by_safe_name: BTreeMap<Arc<str>, usize>,
    types_execbox: String,
    types: String,
    on_wire: TypesOnWire,
}

impl ResolvedProvider {
    /// The namespace's name in the guest.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Safe name, original name and description of each tool, in definition order.
    pub fn tools(&self) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
        self.tools.iter().map(|tool| (&*tool.safe, &*tool.original, tool.description.as_deref()))
    }

    /// The safe name of each original name.
    pub fn original_to_safe_name(&self) -> BTreeMap<&str, &str> {
        self.tools().map(|(safe, original, _)| (original, safe)).collect()
    }

    /// The original name of each safe name.
    pub fn safe_to_original_name(&self) -> BTreeMap<&str, &str> {
        self.tools().map(|(safe, original, _)| (safe, original)).collect()
    }

    /// The tools as TypeScript, with unions, enumerations, references and descriptions that cannot
    /// end their comment.
    pub fn types(&self) -> &str {
        &self.types
    }

    /// The tools as TypeScript, byte for byte as execbox itself would write them.
    pub fn types_execbox(&self) -> &str {
        &self.types_execbox
    }

    pub(super) fn types_on_wire(&self) -> &str {
        match self.on_wire {
            TypesOnWire::Execbox => &self.types_execbox,
            TypesOnWire::Rich => &self.types,
        }
    }

    /// Calls a tool by its safe name; `None` if there is none.
    pub(super) async fn call(
        &self,
        safe_name: &str,
        input: Json,
        signal: CancellationToken,
    ) -> Option<Result<Json, ExecboxFailure>> {
        let tool = &self.tools[*self.by_safe_name.get(safe_name)?];
        let context = ToolContext {
            signal,
            provider_name: self.namespace.clone(),
            safe_tool_name: tool.safe.clone(),
            original_tool_name: tool.original.clone(),
        };
        Some(tool.call(input, context).await)
    }
}

struct ResolvedTool {
    safe: Arc<str>,
    original: Arc<str>,
    description: Option<String>,
    input: Option<ArgumentSchema>,
    output: Option<ArgumentSchema>,
    handler: ToolHandler,
}

impl ResolvedTool {
    async fn call(&self, input: Json, context: ToolContext) -> Result<Json, ExecboxFailure> {
        let original = &self.original;
        check_value(self.input.as_ref(), &input)
            .map_err(|issues| invalid(format!("Invalid input for tool {original}: {issues}")))?;
        let returned = AssertUnwindSafe(async { (self.handler)(input, context).await });
        let returned = returned.catch_unwind().await.unwrap_or(Err(ExecboxToolError::Unsaid));
        let result = self.serializable(returned)?;
        check_value(self.output.as_ref(), &result)
            .map_err(|issues| invalid(format!("Invalid output for tool {original}: {issues}")))?;
        Ok(result)
    }

    fn serializable(&self, returned: ToolReturn) -> Result<Json, ExecboxFailure> {
        let original = &self.original;
        let refused = |why| ExecboxFailure::new(ErrorCode::Serialization, why);
        let result = match returned {
            Ok(Some(result)) => result,
            Ok(None) | Err(ExecboxToolError::NotSerializable) => {
                return Err(refused(format!("Tool {original} returned a non-serializable value")));
            }
            Err(ExecboxToolError::Said(message)) => {
                return Err(ExecboxFailure::new(ErrorCode::Tool, message));
            }
            Err(ExecboxToolError::Unsaid) => {
                return Err(ExecboxFailure::new(
                    ErrorCode::Tool,
                    format!("Tool {original} failed"),
                ));
            }
            Err(ExecboxToolError::Coded(failure)) => return Err(failure),
        };
        // A runner drops a longer message, and its guest would wait until its timeout.
        let n_bytes = result.as_text().len();
        if n_bytes > HOST_PAYLOAD_BYTES_MAX {
            let limit = format!("{n_bytes} bytes, {HOST_PAYLOAD_BYTES_MAX} at most");
            return Err(refused(format!("Tool {original} returned {limit}")));
        }
        Ok(result)
    }
}

impl fmt::Debug for ResolvedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedTool").field("safe", &self.safe).finish_non_exhaustive()
    }
}

fn check_value(schema: Option<&ArgumentSchema>, value: &Json) -> Result<(), String> {
    schema.map_or(Ok(()), |schema| schema.check_value(value))
}

fn invalid(message: String) -> ExecboxFailure {
    ExecboxFailure::new(ErrorCode::Validation, message)
}
