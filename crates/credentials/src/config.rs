//! The configuration of a connection: its secret values, where they are stored, and where they go.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use tools::ConnectionOwner;

/// Longest value that a variable or a file may hold.
const SECRET_BYTES_MAX: u64 = crate::VALUE_BYTES_MAX as u64;

/// One connection, with at most one authentication method.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectionConfig {
    /// `org` (the default) or `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// A description for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `Authorization: Bearer …`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer: Option<SecretText>,
    /// `Authorization: Basic …`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic: Option<BasicConfig>,
    /// Headers of each request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretText>,
    /// Parameters of each request's query.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, SecretText>,
    /// Cookies of each request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cookies: BTreeMap<String, SecretText>,
    /// Environment variables of a program that is started.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, SecretText>,
    /// One of the source's authentication methods, such as `apikey-0`; `values` has its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The values of the template, by name. A person is asked for missing values when they are needed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, SecretText>,
    /// Tokens of an authorization server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthConfig>,
    /// A tool without arguments whose success shows that the credential is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
}

/// A user and a password.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BasicConfig {
    /// The user name.
    pub user: SecretText,
    /// The password.
    pub password: SecretText,
}

/// OAuth settings. Missing settings are discovered.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OAuthConfig {
    /// The flow; by default the one in the source's description, else the authorization code flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<OAuthFlow>,
    /// The source's security scheme, by its name; by default the first one of OAuth 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// The authorization server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// A client that was registered beforehand, by its name: `slug`, or `owner/slug`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The authorization endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_url: Option<String>,
    /// The token endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// The refresh endpoint, if it is a different one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_url: Option<String>,
    /// The device authorization endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_url: Option<String>,
    /// Our client id; registered dynamically if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Our client secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<SecretText>,
    /// The requested scopes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The resource that the tokens are for; by default the address of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

/// A grant type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OAuthFlow {
    /// Authorization code: a person agrees in a browser that is redirected back.
    #[default]
    Code,
    /// Device code: a person agrees in any browser while the server polls.
    Device,
    /// Client credentials: no person is involved.
    ClientCredentials,
}

/// A text, or a reference to one.
#[derive(Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum SecretText {
    /// The text itself.
    Plain(String),
    /// A variable of the server's environment.
    Env {
        /// The name of the variable.
        env: String,
    },
    /// A file; a line break at its end is ignored.
    File {
        /// The path of the file.
        file: PathBuf,
    },
    /// The output of a program such as `op`, `vault` or `pass`; a line break at its end is ignored.
    Cmd {
        /// The program and its arguments.
        cmd: CommandWords,
    },
    /// A secret in the vault.
    Vault {
        /// The name in the vault.
        vault: String,
    },
}

/// Name and arguments of a program: a list, or words separated by spaces. No shell is involved; quotes group a word with
/// spaces.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum CommandWords {
    /// A list of words.
    List(Vec<String>),
    /// Words separated by spaces.
    Line(String),
}

impl CommandWords {
    /// The name and the arguments.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::List(words) => words.clone(),
            Self::Line(line) => words(line),
        }
    }
}

/// Splits a line into words. Text in quotes, single or double, is taken literally as part of one word.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (vec![], None::<String>, None);
    for c in line.chars() {
        match quote {
            Some(open) if open == c => quote = None,
            None if matches!(c, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            Some(_) | None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "SecretText(…)",
            Self::Env { .. } => "env …",
            Self::File { .. } => "file …",
            Self::Cmd { .. } => "cmd …",
            Self::Vault { .. } => "vault …",
        })
    }
}

impl SecretText {
    /// The reference that `env:NAME`, `file:PATH` or `cmd:WORDS` denotes; none for other texts.
    pub fn referring(text: &str) -> Option<Self> {
        let (provider, id) = text.split_once(':')?;
        Self::from_provider(provider, id)
    }

    /// The text that a secret provider has under `id`.
    pub fn from_provider(provider: &str, id: &str) -> Option<Self> {
        match provider {
            "env" => Some(Self::Env { env: id.to_owned() }),
            "file" => Some(Self::File { file: id.into() }),
            "cmd" => Some(Self::Cmd { cmd: CommandWords::Line(id.to_owned()) }),
            _ => None,
        }
    }

    /// Replaces a text by the reference that it denotes. Only for texts of an operator: those of other people are
    /// literal.
    pub fn refer(&mut self) {
        if let Self::Plain(text) = self
            && let Some(elsewhere) = Self::referring(text)
        {
            *self = elsewhere;
        }
    }

    /// Reads a local text. Vault entries and programs are resolved elsewhere.
    pub fn read(&self) -> Result<String, String> {
        match self {
            Self::Plain(text) => Ok(text.clone()),
            Self::Env { env } => {
                std::env::var(env).map_err(|_| format!("the variable {env} is not set"))
            }
            Self::File { file } => {
                let wrong = |error: std::io::Error| {
                    format!("a file with a credential cannot be read: {}", error.kind())
                };
                let mut text = String::new();
                let opened = std::fs::File::open(file).map_err(wrong)?;
                let n_bytes =
                    opened.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text).map_err(wrong)?;
                match n_bytes as u64 > SECRET_BYTES_MAX {
                    true => Err(format!(
                        "a file with a credential has {SECRET_BYTES_MAX} bytes at most"
                    )),
                    false => Ok(text.trim_end().to_owned()),
                }
            }
            Self::Cmd { .. } | Self::Vault { .. } => {
                Err("here a secret is a text, a variable or a file".into())
            }
        }
    }
}

impl ConnectionConfig {
    /// The owner.
    pub fn owner(&self) -> Result<ConnectionOwner, String> {
        let owner = self.owner.as_deref().unwrap_or("org");
        ConnectionOwner::parse(owner)
            .ok_or_else(|| format!("owner is \"org\" or \"user\", not \"{owner}\""))
    }

    /// The owner, in the form used in paths.
    pub fn owner_name(&self) -> &str {
        self.owner.as_deref().unwrap_or("org")
    }

    /// Rejects a configuration that contradicts itself or is too large.
    pub fn check_members(&self) -> Result<(), String> {
        self.owner()?;
        let ways = [
            self.bearer.is_some(),
            self.basic.is_some(),
            self.oauth.is_some(),
            self.template.is_some(),
        ];
        if ways.iter().filter(|is_given| **is_given).count() > 1 {
            return Err("a connection has one of bearer, basic, template and oauth".into());
        }
        let is_too_long = |text: &mut SecretText| matches!(text, SecretText::Plain(value) if value.len() as u64 > SECRET_BYTES_MAX);
        match self.clone().texts().any(is_too_long) {
            true => Err(format!("a secret has {SECRET_BYTES_MAX} bytes at most")),
            false => Ok(()),
        }
    }

    /// Every secret text of it.
    pub fn texts(&mut self) -> impl Iterator<Item = &mut SecretText> {
        let basic = self.basic.iter_mut().flat_map(|basic| [&mut basic.user, &mut basic.password]);
        let client = self.oauth.iter_mut().filter_map(|oauth| oauth.client_secret.as_mut());
        let placed = self.headers.values_mut().chain(self.query.values_mut());
        let placed = placed.chain(self.cookies.values_mut()).chain(self.env.values_mut());
        let single = self.bearer.iter_mut().chain(basic).chain(client);
        single.chain(placed).chain(self.values.values_mut())
    }

    /// Names of its vault entries.
    pub fn sealed_names(&self) -> Vec<String> {
        let mut copy = self.clone();
        let names = copy.texts().filter_map(|text| match text {
            SecretText::Vault { vault } => Some(vault.clone()),
            SecretText::Plain(_)
            | SecretText::Env { .. }
            | SecretText::File { .. }
            | SecretText::Cmd { .. } => None,
        });
        names.collect()
    }

    /// The name of its authentication method, for lists.
    pub fn template_name(&self) -> &str {
        match (&self.bearer, &self.basic, &self.template) {
            (Some(_), _, _) => "bearer",
            (None, Some(_), _) => "basic",
            (None, None, Some(template)) => template,
            (None, None, None) if self.oauth.is_some() => "oauth",
            (None, None, None) if !self.headers.is_empty() => "header",
            (None, None, None) if !self.query.is_empty() => "query",
            (None, None, None) if !self.cookies.is_empty() => "cookie",
            (None, None, None) if !self.env.is_empty() => "env",
            (None, None, None) => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        let argv = |line: &str| CommandWords::Line(line.into()).argv();
        assert_eq!(argv("op read  op://work/key"), ["op", "read", "op://work/key"]);
        assert_eq!(argv(r#"op read "op://my work/a key""#), ["op", "read", "op://my work/a key"]);
        assert_eq!(argv(r#"sh -c 'echo "$X"' ''"#), ["sh", "-c", r#"echo "$X""#, ""]);
        assert_eq!(argv("pass it's"), ["pass", "its"]);
    }

    #[test]
    fn a_text_is_read_from_where_it_is_and_not_printed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "secret\n").unwrap();
        assert_eq!(SecretText::File { file: file.path().into() }.read(), Ok("secret".into()));
        std::fs::write(file.path(), "x".repeat(SECRET_BYTES_MAX as usize + 1)).unwrap();
        assert!(
            SecretText::File { file: file.path().into() }.read().unwrap_err().contains("at most")
        );
        let missing = SecretText::Env { env: "NOT_SET_AT_ALL".into() };
        assert_eq!(missing.read().unwrap_err(), "the variable NOT_SET_AT_ALL is not set");
        assert_eq!(format!("{:?}", SecretText::Plain("v".into())), "SecretText(…)");
    }

    #[test]
    fn what_somebody_types_is_no_reference() {
        let typed = ConnectionConfig {
            bearer: Some(SecretText::Plain("cmd:rm".into())),
            ..ConnectionConfig::default()
        };
        assert_eq!(typed.bearer.unwrap().read(), Ok("cmd:rm".into()));
    }
}
