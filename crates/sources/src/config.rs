//! The format of `airlock.toml`, which is also how added sources and connections are kept.

use lifecycle::ToolPath;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tools::command::CommandTool;
use tools::{Credential, Owner, Place, Placement, Program};

/// Longest configuration file: people write these.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// Output of a command, and its time, unless said otherwise.
const OUTPUT_BYTES_USUALLY: usize = 1 << 20;
const TIME_MS_USUALLY: u64 = 60_000;

/// Most output that a command may be given.
const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// Other names for tools: each session keeps them with its start.
const ALIASES_MAX: usize = 1_000;

/// A whole file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// By name.
    pub sources: BTreeMap<String, Source>,
    /// By source, then by name.
    pub connections: BTreeMap<String, BTreeMap<String, Connection>>,
    /// What enclave's programs find.
    pub enclave: Enclave,
}

/// What enclave's programs find.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Enclave {
    /// Other names for tools of the catalogue: what a program says, and the tool that is meant.
    pub tools: BTreeMap<String, String>,
}

impl Enclave {
    /// The names, each checked.
    pub fn aliases(&self) -> Result<BTreeMap<ToolPath, ToolPath>, String> {
        if self.tools.len() > ALIASES_MAX {
            return Err(format!("[enclave.tools] has more than {ALIASES_MAX} names"));
        }
        let path = |text: &str| {
            ToolPath::parse(text).map_err(|why| format!("[enclave.tools] names {text:?}: {why}"))
        };
        self.tools.iter().map(|(name, tool)| Ok((path(name)?, path(tool)?))).collect()
    }
}

/// One source.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Source {
    /// `openapi`, `graphql`, `mcp` or `command`; found out where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where its description or server is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A file with its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The description itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where calls go, whatever the description says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Name and arguments of an MCP server that is started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Variables of a program that is started.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where a program runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The tools of a `command` source.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Command>,
}

/// One program as a tool.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Command {
    /// What it does.
    pub description: String,
    /// `{name}` stands for an argument.
    pub argv: Vec<String>,
    /// JSON Schema of the arguments.
    pub input: Option<Value>,
    /// JSON Schema of the result.
    pub output: Option<Value>,
    /// Whether the arguments also go to standard input; yes, unless said otherwise.
    pub stdin: Option<bool>,
    /// Calling it twice does no harm.
    pub read_only: bool,
    /// Whether a person must agree; yes where it is not read-only, unless said otherwise.
    pub asks: Option<bool>,
    /// Until it has ended.
    pub timeout_ms: Option<u64>,
    /// Most that it may print.
    pub output_bytes_max: Option<usize>,
}

/// One credential. Exactly one way to prove who calls, or none.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Connection {
    /// `org`, unless it says `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What people read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `Authorization: Bearer …`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer: Option<Text>,
    /// `Authorization: Basic …`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic: Option<Basic>,
    /// Headers of each request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Text>,
    /// Parameters of each request's query.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, Text>,
    /// Variables of a program that is started.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Text>,
}

/// A user and a password.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Basic {
    /// Who.
    pub user: Text,
    /// The proof.
    pub password: Text,
}

/// A text, or where it is.
#[derive(Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Text {
    /// Here.
    Plain(String),
    /// In a variable of our own environment.
    Env {
        /// Its name.
        env: String,
    },
    /// In a file; a line break at its end does not count.
    File {
        /// Its path.
        file: PathBuf,
    },
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain(_) => f.write_str("Text(…)"),
            Self::Env { env } => write!(f, "env {env}"),
            Self::File { file } => write!(f, "file {}", file.display()),
        }
    }
}

impl Text {
    fn read(&self) -> Result<String, String> {
        match self {
            Self::Plain(text) => Ok(text.clone()),
            Self::Env { env } => {
                std::env::var(env).map_err(|_| format!("the variable {env} is not set"))
            }
            Self::File { file } => {
                std::fs::read_to_string(file).map(|text| text.trim_end().to_owned()).map_err(
                    |error| format!("a file with a credential cannot be read: {}", error.kind()),
                )
            }
        }
    }
}

impl Connection {
    /// Whose it is.
    pub fn owner(&self) -> Result<Owner, String> {
        let owner = self.owner.as_deref().unwrap_or("org");
        Owner::parse(owner).ok_or_else(|| format!("owner is \"org\" or \"user\", not \"{owner}\""))
    }

    /// Reads every value from where it is.
    pub fn credential(&self) -> Result<Credential, String> {
        let mut placements: Vec<Placement> = vec![];
        let whole = match (&self.bearer, &self.basic) {
            (Some(_), Some(_)) => return Err("a connection has bearer or basic, not both".into()),
            (Some(token), None) => Some(Credential::bearer(&token.read()?)),
            (None, Some(basic)) => {
                Some(Credential::basic(&basic.user.read()?, &basic.password.read()?))
            }
            (None, None) => None,
        };
        for (name, value) in whole.iter().flat_map(|whole| whole.at(Place::Header)) {
            placements.push(Placement {
                place: Place::Header,
                name: name.into(),
                value: value.into(),
            });
        }
        let groups = [
            (Place::Header, &self.headers),
            (Place::Query, &self.query),
            (Place::Environment, &self.env),
        ];
        for (place, values) in groups {
            for (name, value) in values {
                let value = value.read()?.as_str().into();
                placements.push(Placement { place, name: name.clone(), value });
            }
        }
        Ok(Credential::new(placements))
    }

    /// What kind of proof it holds, for lists.
    pub fn template(&self) -> &'static str {
        match (&self.bearer, &self.basic) {
            (Some(_), _) => "bearer",
            (None, Some(_)) => "basic",
            (None, None) if !self.headers.is_empty() => "header",
            (None, None) if !self.query.is_empty() => "query",
            (None, None) if !self.env.is_empty() => "env",
            (None, None) => "none",
        }
    }
}

impl Source {
    /// The program of an MCP server, or the frame of commands.
    pub fn program(&self) -> Program {
        Program {
            argv: self.command.clone(),
            env: self.env.clone(),
            directory: self.directory.clone(),
        }
    }
}

impl Command {
    /// The tool that it describes.
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

impl File {
    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: Self =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        file.enclave.aliases()?;
        Ok(file)
    }

    /// This file over another: what both name is as this one says.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        let mut merged = other;
        merged.sources.extend(self.sources);
        merged.enclave.tools.extend(self.enclave.tools);
        for (source, connections) in self.connections {
            merged.connections.entry(source).or_default().extend(connections);
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_file_goes_over_the_users_own() {
        let user = "[sources.a]\nurl = 'http://u'\n[connections.a.main]\nbearer = 'x'\n\
                    [enclave.tools]\nadd = 'x.y'\n'users:list' = 'u.list'\n";
        let project = "[sources.a]\nurl = 'http://p'\n[connections.a.other]\n\
                       [enclave.tools]\nadd = 'demo.add'\n";
        let merged = File::parse(project).unwrap().over(File::parse(user).unwrap());
        let path = |text| ToolPath::parse(text).unwrap();
        let aliases = [(path("add"), path("demo.add")), (path("users:list"), path("u.list"))];
        assert_eq!(merged.enclave.aliases().unwrap(), aliases.into());
        assert_eq!(merged.sources["a"].url.as_deref(), Some("http://p"));
        assert_eq!(merged.connections["a"].len(), 2);
    }

    #[test]
    fn a_wrong_file_is_told_with_its_line() {
        let why = File::parse("[sources.a]\nurll = 'x'\n").unwrap_err();
        assert!(why.contains("line 2") && why.contains("urll"), "{why}");
        let why = File::parse("[enclave.tools]\nadd = 'demo..add'\n").unwrap_err();
        assert!(why.contains("demo..add"), "{why}");
    }

    #[test]
    fn a_credential_comes_from_where_it_is_and_is_not_printed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "secret\n").unwrap();
        let connection = Connection {
            bearer: Some(Text::File { file: file.path().into() }),
            query: [("k".to_owned(), Text::Plain("v".into()))].into(),
            ..Connection::default()
        };
        let credential = connection.credential().unwrap();
        assert_eq!(
            credential.at(Place::Header).collect::<Vec<_>>(),
            [("authorization", "Bearer secret")]
        );
        assert_eq!(credential.at(Place::Query).collect::<Vec<_>>(), [("k", "v")]);
        assert!(!format!("{connection:?}").contains("\"v\""));
        let missing = Connection {
            bearer: Some(Text::Env { env: "NOT_SET_AT_ALL".into() }),
            ..Connection::default()
        };
        assert_eq!(missing.credential().unwrap_err(), "the variable NOT_SET_AT_ALL is not set");
    }
}
