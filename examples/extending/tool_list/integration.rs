//! The tools of a list, and how they are called.

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use lifecycle::{Failure, Json};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tools::envelope::{ToolFailure, done};
use tools::{Integration, ToolCredential, ToolRequest, ToolSpec};

/// The tools of one file, by name.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct ToolList(BTreeMap<String, ListedAnswer>);

/// One tool: `{"description": "…", "answer": …}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedAnswer {
    description: String,
    answer: Value,
}

impl ToolList {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("it is no list of tools: {error}"))
    }
}

impl Integration for ToolList {
    fn kind(&self) -> &'static str {
        "tool_list"
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let spec = |(name, tool): (&String, &ListedAnswer)| ToolSpec {
            description: tool.description.clone(),
            read_only: true,
            ..ToolSpec::new(name)
        };
        self.0.iter().map(spec).collect()
    }

    /// Nothing is requested, so an approval covers the list wherever it is.
    fn target(&self) -> String {
        String::new()
    }

    fn call(
        &self,
        tool: &str,
        _credential: &ToolCredential,
        _request: ToolRequest,
    ) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        let value = match self.0.get(tool).map(|tool| Json::from_value(&tool.answer)) {
            Some(Ok(answer)) => done(&answer, None),
            Some(Err(_)) | None => {
                ToolFailure::new("tool_not_found", "The list has no such tool.").into_envelope()
            }
        };
        ready(Ok(Some(value))).boxed()
    }
}
