//! Tools made of async closures, for programs that embed Airlock.
//!
//! ```
//! use serde_json::json;
//! use tools::function::FunctionSource;
//!
//! let schema = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
//! let math = FunctionSource::new("math")
//!     .tool("double", schema, async |args: serde_json::Value| Ok(args["n"].as_f64().map(|n| n * 2.0)))?;
//! # Ok::<(), lifecycle::BadToolPath>(())
//! ```

use crate::{Source, Tool, ToolRequest};
use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};
use lifecycle::{BadToolPath, Failure, FailureCode, Json, ToolPath};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

type ToolFunction =
    Box<dyn Fn(ToolRequest) -> BoxFuture<'static, Result<Option<Json>, Failure>> + Send + Sync>;

/// A source of tools that are closures.
pub struct FunctionSource {
    name: String,
    functions: BTreeMap<ToolPath, (Tool, ToolFunction)>,
}

impl FunctionSource {
    /// A source without tools.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), functions: BTreeMap::new() }
    }

    /// Adds a tool that needs no approval and is not repeated after a crash. Its arguments are anything
    /// that `serde` reads; [`Json`] receives the text unchanged.
    pub fn tool<A, R, F>(
        self,
        name: &str,
        input_schema: Value,
        run: impl Fn(A) -> F + Send + Sync + 'static,
    ) -> Result<Self, BadToolPath>
    where
        A: DeserializeOwned,
        R: Serialize,
        F: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let path = ToolPath::parse(&format!("{}.{name}", self.name))?;
        Ok(self.add(Tool { input_schema: Some(input_schema), ..Tool::new(path) }, run))
    }

    /// Adds a tool with a complete definition; replaces a tool at the same path.
    #[must_use]
    pub fn add<A, R, F>(mut self, tool: Tool, run: impl Fn(A) -> F + Send + Sync + 'static) -> Self
    where
        A: DeserializeOwned,
        R: Serialize,
        F: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let run: ToolFunction = Box::new(move |request| match arguments(&request) {
            Ok(args) => run(args).map(|result| rendered(&result?)).boxed(),
            Err(failure) => future::ready(Err(failure)).boxed(),
        });
        self.functions.insert(tool.path.clone(), (tool, run));
        self
    }
}

impl FunctionSource {
    /// Adds a tool that receives the whole call, for example to ask the person behind it a question.
    #[must_use]
    pub fn calling<F>(
        mut self,
        tool: Tool,
        run: impl Fn(ToolRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Option<Json>, Failure>> + Send + 'static,
    {
        let run: ToolFunction = Box::new(move |request| run(request).boxed());
        self.functions.insert(tool.path.clone(), (tool, run));
        self
    }
}

impl Source for FunctionSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn tools(&self) -> Vec<Tool> {
        self.functions.values().map(|(tool, _)| tool.clone()).collect()
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        match self.functions.get(&request.tool) {
            Some((_, run)) => run(request),
            None => {
                let message = format!("Tool not found: {}", request.tool);
                future::ready(Err(Failure::new(FailureCode::ToolNotFound, message))).boxed()
            }
        }
    }
}

impl fmt::Debug for FunctionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.functions.keys()).finish()
    }
}

fn arguments<A: DeserializeOwned>(request: &ToolRequest) -> Result<A, Failure> {
    serde_json::from_str(request.args.as_text()).map_err(|error| {
        let message = format!("The arguments of \"{}\" do not fit: {error}.", request.tool);
        Failure::new(FailureCode::Validation, message)
    })
}

fn rendered(result: &impl Serialize) -> Result<Option<Json>, Failure> {
    Json::from_value(result)
        .map(Some)
        .map_err(|error| Failure::new(FailureCode::Serialization, error.to_string()))
}
