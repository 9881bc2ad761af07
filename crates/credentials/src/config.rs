//! The configuration of a connection: which values prove who calls, where they are, and where they go.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use tools::ConnectionOwner;

/// Longest value that a variable or a file may hold.
const SECRET_BYTES_MAX: u64 = crate::VALUE_BYTES_MAX as u64;

/// One credential. Exactly one way to prove who calls, or none.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectionConfig {
    /// `org`, unless it says `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What people read.
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
    /// Variables of a program that is started.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, SecretText>,
    /// One of the source's own ways to prove who calls, such as `apikey-0`; `values` has what it wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// What the template wants, by its names. What is missing is asked of a person when it is needed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, SecretText>,
    /// Tokens that an authorization server gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthConfig>,
    /// A tool without arguments that shows whether the credential is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
}

/// A user and a password.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BasicConfig {
    /// Who.
    pub user: SecretText,
    /// The proof.
    pub password: SecretText,
}

/// Where tokens come from. What is not said is found out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OAuthConfig {
    /// How they are got; as the source's description says, or by code, where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<OAuthFlow>,
    /// Which of the source's own ways it is, as they are listed; the first that is OAuth 2 where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Who gives them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// A client that was registered there beforehand, by its name: `slug`, or `owner/slug`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Where a person agrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_url: Option<String>,
    /// Where tokens are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// Where they are renewed, if that is elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_url: Option<String>,
    /// Where devices begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_url: Option<String>,
    /// Who we are there; we introduce ourselves where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// What proves that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<SecretText>,
    /// What we want to be allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// What the tokens are for; the source's own address where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

/// How tokens are got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OAuthFlow {
    /// A person agrees in a browser that comes back to us.
    #[default]
    Code,
    /// A person agrees in any browser, and we ask until they have.
    Device,
    /// We ask for ourselves: nobody has to agree.
    ClientCredentials,
}

/// A text, or where it is.
#[derive(Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum SecretText {
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
    /// What a program prints, such as `op`, `vault` or `pass`; a line break at its end does not count.
    Cmd {
        /// Its name and arguments.
        cmd: CommandWords,
    },
    /// Sealed, in the vault.
    Vault {
        /// Its name there.
        vault: String,
    },
}

/// Name and arguments of a program: a list, or words with spaces between them. No shell sees them; quotes hold a word with
/// spaces together.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum CommandWords {
    /// As they are.
    List(Vec<String>),
    /// With spaces between them.
    Line(String),
}

impl CommandWords {
    /// Name and arguments.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::List(words) => words.clone(),
            Self::Line(line) => words(line),
        }
    }
}

/// The words of a line. What stands in quotes, single or double, is part of one word as it is.
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
    /// Where `env:NAME`, `file:PATH` or `cmd:WORDS` says that a text is; none where it says nothing of the kind.
    pub fn referring(text: &str) -> Option<Self> {
        let (provider, id) = text.split_once(':')?;
        Self::from_provider(provider, id)
    }

    /// The text that a provider knows under `id`.
    pub fn from_provider(provider: &str, id: &str) -> Option<Self> {
        match provider {
            "env" => Some(Self::Env { env: id.to_owned() }),
            "file" => Some(Self::File { file: id.into() }),
            "cmd" => Some(Self::Cmd { cmd: CommandWords::Line(id.to_owned()) }),
            _ => None,
        }
    }

    /// Takes a text that says where it is at its word. Only for what an operator wrote: what others type is meant
    /// as it is.
    pub fn refer(&mut self) {
        if let Self::Plain(text) = self
            && let Some(elsewhere) = Self::referring(text)
        {
            *self = elsewhere;
        }
    }

    /// Reads what is near: the rest needs a vault or a program.
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
    /// Whose it is.
    pub fn owner(&self) -> Result<ConnectionOwner, String> {
        let owner = self.owner.as_deref().unwrap_or("org");
        ConnectionOwner::parse(owner)
            .ok_or_else(|| format!("owner is \"org\" or \"user\", not \"{owner}\""))
    }

    /// Whose it is, as it stands in a path.
    pub fn owner_name(&self) -> &str {
        self.owner.as_deref().unwrap_or("org")
    }

    /// Refuses a configuration that contradicts itself or is too large.
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

    /// Every secret of it.
    pub fn texts(&mut self) -> impl Iterator<Item = &mut SecretText> {
        let basic = self.basic.iter_mut().flat_map(|basic| [&mut basic.user, &mut basic.password]);
        let client = self.oauth.iter_mut().filter_map(|oauth| oauth.client_secret.as_mut());
        let placed = self.headers.values_mut().chain(self.query.values_mut());
        let placed = placed.chain(self.cookies.values_mut()).chain(self.env.values_mut());
        let single = self.bearer.iter_mut().chain(basic).chain(client);
        single.chain(placed).chain(self.values.values_mut())
    }

    /// Names of what it has in the vault.
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

    /// The name of its way to prove who calls, for lists.
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
