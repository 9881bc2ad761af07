//! The configuration of a source, as `airlock.toml` contains it and as records of added sources store it.

use crate::ChildProgram;
use crate::command::CommandTool;
use protocols::executor::{BadBody, ObjectMembers, member};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// Default limits of a command's output and time.
const OUTPUT_BYTES_USUALLY: usize = 1 << 20;
const TIME_MS_USUALLY: u64 = 60_000;

/// Maximum output limit that can be configured for a command.
const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// How Executor refers to a secret that it stores.
const EXECUTOR_SECRET_REF: &str = "secret-public-ref:";

/// The configuration of one source.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SourceConfig {
    /// The name of its kind, such as `openapi`; detected if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The address of its description or server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A file with its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The description itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The base URL of calls; overrides the one in the description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Program and arguments of an MCP server that is started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Environment variables of a program that is started.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Working directory of a program that is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The tools of a `command` source.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, CommandConfig>,
}

/// The configuration of one program as a tool.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommandConfig {
    /// What it does.
    pub description: String,
    /// The command line; `{name}` is replaced by an argument.
    pub argv: Vec<String>,
    /// JSON Schema of the arguments.
    pub input: Option<Value>,
    /// JSON Schema of the result.
    pub output: Option<Value>,
    /// Whether the arguments also go to standard input; yes by default.
    pub stdin: Option<bool>,
    /// Calling it twice does no harm.
    pub read_only: bool,
    /// Whether a person must approve calls; by default, unless it is read-only.
    pub asks: Option<bool>,
    /// Time limit.
    pub timeout_ms: Option<u64>,
    /// Maximum size of its output.
    pub output_bytes_max: Option<usize>,
}

impl SourceConfig {
    /// The configuration of a request that names its kind by the route: `{name?, description?}`.
    pub fn of_kind(kind: &str, members: &ObjectMembers<'_>) -> Result<Self, BadBody> {
        Ok(Self {
            kind: Some(kind.to_owned()),
            title: member(members, "name", "a string")?,
            description: member(members, "description", "a string")?,
            ..Self::default()
        })
    }

    /// The members that sources of every kind have in an `executor.jsonc`.
    pub fn from_executor(kind: &str, source: &Value) -> Self {
        let text = |name: &str| source[name].as_str().map(str::to_owned);
        let kind = Some(kind.to_owned());
        Self { kind, title: text("name"), base_url: text("baseUrl"), ..Self::default() }
    }

    /// The program of an MCP server, or the environment of commands.
    pub fn program(&self) -> ChildProgram {
        ChildProgram {
            argv: self.command.clone(),
            env: self.env.clone(),
            directory: self.directory.clone(),
        }
    }
}

impl CommandConfig {
    /// The tool that this configuration describes.
    pub fn tool(&self) -> Result<CommandTool, String> {
        if self.argv.first().is_none_or(|name| name.is_empty() || name.contains('{')) {
            return Err("argv begins with the name of a program".into());
        }
        Ok(CommandTool {
            description: self.description.clone(),
            argv: self.argv.clone(),
            input: self.input.clone(),
            output: self.output.clone(),
            stdin: self.stdin.unwrap_or(true),
            read_only: self.read_only,
            asks: self.asks.unwrap_or(!self.read_only),
            time_max: Duration::from_millis(self.timeout_ms.unwrap_or(TIME_MS_USUALLY)),
            output_bytes_max: self
                .output_bytes_max
                .unwrap_or(OUTPUT_BYTES_USUALLY)
                .min(OUTPUT_BYTES_MAX),
        })
    }
}

/// An address of an `executor.jsonc` with the query parameters of its source.
pub(crate) fn with_query(address: &str, source: &Value) -> Result<String, String> {
    let query = source["queryParams"].as_object().filter(|members| !members.is_empty());
    let Some(members) = query else { return Ok(address.to_owned()) };
    let mut url = Url::parse(address).map_err(|_| format!("{address} is no address"))?;
    for (name, value) in members {
        let text = value.as_str().or_else(|| value["value"].as_str()).unwrap_or_default();
        if text.starts_with(EXECUTOR_SECRET_REF) {
            return Err(
                "a secret in its query must become a connection: airlock connection add --query"
                    .into(),
            );
        }
        url.query_pairs_mut().append_pair(name, text);
    }
    Ok(url.to_string())
}
