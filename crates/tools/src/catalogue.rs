//! Every tool by its path: says whether a call fits, and performs it.

use crate::schema::{Issue, Schema, sentence};
use crate::suggest::suggest;
use crate::{Request, Source, Tool};
use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};
use lifecycle::{Admission, CallOutcome, Failure, FailureCode, Json, ToolPath};
use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Longest message of a failed tool: some put a whole web page there.
const FAILURE_CHARS_MAX: usize = 8_000;

/// Largest details of a failed tool; larger ones are dropped.
const FAILURE_DETAILS_BYTES_MAX: usize = 64 << 10;

/// Every tool by its path. Clones share the same tools.
#[derive(Clone)]
pub struct Catalogue(Arc<BTreeMap<ToolPath, Arc<Offer>>>);

/// A tool, made ready to be called.
struct Offer {
    tool: Tool,
    source: Arc<dyn Source>,
    input: Option<Schema>,
    output: Option<Schema>,
}

/// Why no catalogue could be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// Two tools at one place.
    #[error("two tools are called {0}")]
    Duplicate(ToolPath),
    /// A schema that cannot be compiled.
    #[error("the {which} schema of {tool} is wrong: {why}")]
    BadSchema {
        /// Whose.
        tool: ToolPath,
        /// `input` or `output`.
        which: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

impl Catalogue {
    /// Asks every source what it offers and compiles every schema, once.
    pub fn new(sources: Vec<Arc<dyn Source>>) -> Result<Self, CatalogueError> {
        let mut offers = BTreeMap::new();
        for source in sources {
            for tool in source.tools() {
                match offers.entry(tool.path.clone()) {
                    Entry::Occupied(_) => return Err(CatalogueError::Duplicate(tool.path)),
                    Entry::Vacant(place) => {
                        place.insert(Arc::new(Offer::new(tool, Arc::clone(&source))?))
                    }
                };
            }
        }
        Ok(Self(Arc::new(offers)))
    }

    /// Whether there is such a tool and whether it takes these arguments.
    pub fn admit(&self, tool: &ToolPath, args: &Json) -> Admission {
        match self.0.get(tool) {
            Some(offer) => offer.admit(args),
            None => Admission::Unfit(self.not_found(tool)),
        }
    }

    /// Performs an admitted call. Never panics, whatever the tool does; spawns nothing.
    pub fn call(&self, request: Request) -> BoxFuture<'static, CallOutcome> {
        match self.0.get(&request.tool) {
            Some(offer) => Arc::clone(offer).call(request).boxed(),
            None => future::ready(CallOutcome::Failed(self.not_found(&request.tool))).boxed(),
        }
    }

    /// Every tool, by path.
    pub fn list(&self) -> impl Iterator<Item = &Tool> {
        self.0.values().map(|offer| &offer.tool)
    }

    /// The tool at a path.
    pub fn find(&self, tool: &ToolPath) -> Option<&Tool> {
        self.0.get(tool).map(|offer| &offer.tool)
    }

    fn not_found(&self, tool: &ToolPath) -> Failure {
        let suggestions = suggest(tool, self.0.keys());
        let hint = match suggestions.as_slice() {
            [] => String::new(),
            some => format!(" Did you mean {}?", listed(some)),
        };
        let details = serde_json::json!({ "path": tool, "suggestions": suggestions });
        Failure {
            details: Json::from_value(&details).ok(),
            ..Failure::new(FailureCode::ToolNotFound, format!("There is no tool \"{tool}\".{hint}"))
        }
    }
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl Offer {
    fn new(tool: Tool, source: Arc<dyn Source>) -> Result<Self, CatalogueError> {
        let compile = |which, schema: &Option<serde_json::Value>| {
            let compiled = schema.as_ref().map(Schema::compile).transpose();
            compiled.map_err(|why| CatalogueError::BadSchema {
                tool: tool.path.clone(),
                which,
                why,
            })
        };
        let input = compile("input", &tool.input_schema)?;
        let output = compile("output", &tool.output_schema)?;
        Ok(Self { tool, source, input, output })
    }

    fn admit(&self, args: &Json) -> Admission {
        let issues = self.input.as_ref().map(|schema| schema.issues(&schema.completed(args)));
        match issues.unwrap_or_default().as_slice() {
            [] => Admission::Fit {
                nature: self.tool.nature,
                asks: self.tool.asks,
                about: self.tool.about.clone(),
            },
            issues => {
                let message = format!("The arguments of \"{}\" do not fit", self.tool.path);
                Admission::Unfit(unfit(&message, issues))
            }
        }
    }

    async fn call(self: Arc<Self>, mut request: Request) -> CallOutcome {
        if let Some(schema) = &self.input {
            request.args = schema.completed(&request.args);
        }
        // Inside the async block, so that a source that panics before its first await is caught too.
        let guarded = async { self.checked(self.source.call(request).await?) };
        match AssertUnwindSafe(guarded).catch_unwind().await {
            Ok(Ok(value)) => CallOutcome::Returned { value },
            Ok(Err(failure)) => CallOutcome::Failed(bounded(failure)),
            Err(panic) => CallOutcome::Failed(self.broken(panic.as_ref())),
        }
    }

    /// The result, if it is what the tool promised. `undefined` is looked at as `null`.
    fn checked(&self, value: Option<Json>) -> Result<Option<Json>, Failure> {
        let Some(schema) = &self.output else { return Ok(value) };
        let issues = match &value {
            Some(value) => schema.issues(value),
            None => schema.issues(&Json::null()),
        };
        if issues.is_empty() {
            return Ok(value);
        }
        let message = format!("The result of \"{}\" does not fit its schema", self.tool.path);
        Err(unfit(&message, &issues))
    }

    /// What a panic said may hold paths of this machine: it goes to the log, the guest gets a sentence.
    fn broken(&self, panic: &(dyn Any + Send)) -> Failure {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        tracing::error!(tool = %self.tool.path, panic = text.unwrap_or("?"), "a tool panicked");
        let message = format!("Tool \"{}\" broke down.", self.tool.path);
        Failure::new(FailureCode::Tool, message)
    }
}

fn unfit(message: &str, issues: &[Issue]) -> Failure {
    let details = serde_json::json!({ "issues": issues });
    Failure {
        details: Json::from_value(&details).ok(),
        ..Failure::new(FailureCode::Validation, format!("{message}: {}.", sentence(issues)))
    }
}

fn bounded(mut failure: Failure) -> Failure {
    if let Some((at, _)) = failure.message.char_indices().nth(FAILURE_CHARS_MAX) {
        failure.message.truncate(at);
        failure.message.push('…');
    }
    failure.details.take_if(|details| details.text().len() > FAILURE_DETAILS_BYTES_MAX);
    failure
}

fn listed(paths: &[&ToolPath]) -> String {
    paths.iter().map(|path| path.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
