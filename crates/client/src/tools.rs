//! The tools that programs can call.

use crate::{AirlockClient, Error};
use hyper::Method;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A tool as the server lists it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ToolLine {
    /// Its path; prefixed with `tools.` where it belongs to a connection.
    pub address: String,
    /// A description of its purpose.
    #[serde(default)]
    pub description: String,
}

/// The types of a tool's input and output.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDescription {
    /// `tools.` and its path.
    pub address: String,
    /// A description of its purpose.
    #[serde(default)]
    pub description: Option<String>,
    /// The type of its input, in TypeScript.
    pub input_type_script: Option<String>,
    /// The type of its output, in TypeScript.
    pub output_type_script: Option<String>,
    /// Types that the input and output types refer to.
    #[serde(default)]
    pub type_script_definitions: Option<BTreeMap<String, String>>,
}

impl AirlockClient {
    /// Lists every tool that may be called.
    pub async fn tools(&self) -> Result<Vec<ToolLine>, Error> {
        self.asked(Method::GET, "/api/tools?includeBlocked=false", None).await
    }

    /// Returns the types of a tool's input and output; `None` where the tool does not exist.
    pub async fn describe_tool(&self, path: &str) -> Result<Option<ToolDescription>, Error> {
        let address: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
        match self.asked(Method::GET, &format!("/api/tools/schema?address={address}"), None).await {
            Ok(described) => Ok(Some(described)),
            Err(Error::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
