//! Which settings exist, which changes loosen each, and how a command line combines with the recorded ones. No I/O.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use tools::http::IpNetwork;

/// A setting that outlives the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingName {
    /// The limit on who may answer questions.
    Answers,
    /// Host names that the server answers to, besides its own.
    AllowedHosts,
    /// Origins whose pages may call the server, besides its own.
    AllowedOrigins,
    /// Proxies that name the peers of their requests.
    TrustedProxies,
    /// Whether the server has its own account and gives its clients no administrator rights.
    OperatorMode,
    /// The configuration file named with `--config`, or `usual`.
    Config,
    /// The user's own configuration file, as a resolved path.
    UserConfig,
    /// Project files found from the directories where servers were started.
    ProjectFiles,
    /// The file with the vault's key.
    VaultKey,
    /// The address where the server listens.
    Listen,
    /// The address where browsers find the server, or `none`.
    PublicUrl,
    /// Whether a supervisor starts the server, so that clients wait for it instead of starting another.
    Supervised,
}

/// A setting's value: a text, or a list of texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SettingValue {
    /// One text.
    Text(String),
    /// Several texts, in the order in which they were given.
    List(Vec<String>),
}

/// The effect of a new value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingEffect {
    /// No change.
    Same,
    /// It permits no more than before.
    Tightens,
    /// It permits something that was not permitted before.
    Loosens,
}

/// The settings that a start of the server names.
#[derive(Debug, Clone, Default)]
pub struct StartFlags {
    /// Settings with a flag, or with an environment variable in its place.
    pub named: BTreeMap<SettingName, SettingValue>,
    /// The values that apply if neither a flag nor a record names one.
    pub defaults: BTreeMap<SettingName, SettingValue>,
    /// Recorded settings that nothing depends on yet, such as a key file that does not exist: another value loosens
    /// nothing.
    pub unused: BTreeSet<SettingName>,
    /// Whether the command line replaces the record.
    pub replaces: bool,
}

/// The effective settings of a server that starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledSettings {
    /// Every setting.
    pub values: BTreeMap<SettingName, SettingValue>,
    /// Settings whose value differs from the record, or that have no record.
    pub changed: Vec<SettingName>,
}

/// A flag that would loosen a recorded setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LooseningFlag {
    /// The setting.
    pub name: SettingName,
    /// Its recorded value.
    pub recorded: SettingValue,
    /// The flag's value.
    pub flag: SettingValue,
}

/// The values of `answers`, the strictest first.
const ANSWERS: [&str; 3] = ["person", "client", "model"];

/// Maximum number of members of a list, and of characters of each: people write these.
const LIST_MAX: usize = 100;
const TEXT_CHARS_MAX: usize = 4_096;

/// The value of `config` if no file is named, and of settings that name nothing.
const USUAL: &str = "usual";
const NONE: &str = "none";

impl SettingName {
    /// All settings, in the order in which they are listed.
    pub const ALL: [Self; 12] = [
        Self::Answers,
        Self::AllowedHosts,
        Self::AllowedOrigins,
        Self::TrustedProxies,
        Self::OperatorMode,
        Self::Config,
        Self::UserConfig,
        Self::ProjectFiles,
        Self::VaultKey,
        Self::Listen,
        Self::PublicUrl,
        Self::Supervised,
    ];

    /// Its name in `airlock settings`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::AllowedHosts => "allowed-hosts",
            Self::AllowedOrigins => "allowed-origins",
            Self::TrustedProxies => "trusted-proxies",
            Self::OperatorMode => "operator-mode",
            Self::Config => "config",
            Self::UserConfig => "user-config",
            Self::ProjectFiles => "project-files",
            Self::VaultKey => "vault-key",
            Self::Listen => "listen",
            Self::PublicUrl => "public-url",
            Self::Supervised => "supervised",
        }
    }

    /// Whether it refers to this machine, and is recorded in the data directory's file.
    pub const fn is_of_machine(self) -> bool {
        match self {
            Self::Answers
            | Self::AllowedHosts
            | Self::AllowedOrigins
            | Self::TrustedProxies
            | Self::OperatorMode => false,
            Self::Config
            | Self::UserConfig
            | Self::ProjectFiles
            | Self::VaultKey
            | Self::Listen
            | Self::PublicUrl
            | Self::Supervised => true,
        }
    }

    /// Whether its value is a list.
    const fn is_list(self) -> bool {
        matches!(
            self,
            Self::AllowedHosts | Self::AllowedOrigins | Self::TrustedProxies | Self::ProjectFiles
        )
    }

    /// Parses a value as people write it: lists with commas, `none` for an empty one.
    pub fn parse_value(self, text: &str) -> Result<SettingValue, String> {
        let text = text.trim();
        if text.chars().count() > TEXT_CHARS_MAX {
            return Err(format!("the value has more than {TEXT_CHARS_MAX} characters"));
        }
        if self.is_list() {
            let items = text.split(',').map(str::trim);
            let items: Vec<String> =
                items.filter(|item| !item.is_empty() && *item != NONE).map(str::to_owned).collect();
            if self == Self::TrustedProxies {
                items.iter().try_for_each(|item| item.parse::<IpNetwork>().map(drop))?;
            }
            return match items.len() > LIST_MAX {
                true => Err(format!("the list has more than {LIST_MAX} members")),
                false => Ok(SettingValue::List(items)),
            };
        }
        self.check_text(text).map(|()| SettingValue::Text(text.to_owned()))
    }

    fn check_text(self, text: &str) -> Result<(), String> {
        let is_path = |text: &str| text.starts_with('/');
        let (is_good, wanted) = match self {
            Self::Answers => (ANSWERS.contains(&text), "person, client or model"),
            Self::OperatorMode | Self::Supervised => (matches!(text, "on" | "off"), "on or off"),
            Self::Config => (text == USUAL || is_path(text), "an absolute path, or usual"),
            Self::UserConfig => (text == NONE || is_path(text), "an absolute path, or none"),
            Self::VaultKey => (is_path(text), "an absolute path"),
            Self::Listen => {
                (text.parse::<SocketAddr>().is_ok(), "an address such as 127.0.0.1:4788")
            }
            Self::PublicUrl => {
                let is_url = text.starts_with("http://") || text.starts_with("https://");
                (text == NONE || is_url, "a URL, or none")
            }
            Self::AllowedHosts
            | Self::AllowedOrigins
            | Self::TrustedProxies
            | Self::ProjectFiles => (true, ""),
        };
        if is_good { Ok(()) } else { Err(format!("{self} is {wanted}, and not {text:?}")) }
    }
}

impl fmt::Display for SettingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SettingName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|setting| setting.name() == text);
        found.ok_or_else(|| format!("there is no setting {text:?}; there are {}", names()))
    }
}

impl SettingValue {
    /// The text; empty for a list.
    pub fn as_text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::List(_) => "",
        }
    }

    /// The members; one for a text.
    pub fn as_list(&self) -> &[String] {
        match self {
            Self::Text(text) => std::slice::from_ref(text),
            Self::List(items) => items,
        }
    }
}

impl From<&str> for SettingValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::List(items) if items.is_empty() => f.write_str(NONE),
            Self::List(items) => f.write_str(&items.join(",")),
        }
    }
}

/// The effect of changing the setting `name` from `old` to `new`.
pub fn effect(name: SettingName, old: &SettingValue, new: &SettingValue) -> SettingEffect {
    if old == new {
        return SettingEffect::Same;
    }
    let loosens = match name {
        SettingName::Answers => rank(new.as_text()) > rank(old.as_text()),
        // A trusted proxy is not limited, and determines the peers of its requests.
        SettingName::AllowedHosts | SettingName::AllowedOrigins | SettingName::TrustedProxies => {
            has_more(old, new)
        }
        SettingName::OperatorMode => new.as_text() != "on",
        // Another file or key may have any content.
        SettingName::Config
        | SettingName::UserConfig
        | SettingName::VaultKey
        | SettingName::PublicUrl => true,
        // Until a person trusts it, a project's file can only tighten.
        SettingName::ProjectFiles => has_more(new, old),
        SettingName::Listen => reaches_more(old.as_text(), new.as_text()),
        SettingName::Supervised => false,
    };
    if loosens { SettingEffect::Loosens } else { SettingEffect::Tightens }
}

/// An unknown value counts as the loosest.
fn rank(answers: &str) -> usize {
    ANSWERS.iter().position(|known| *known == answers).unwrap_or(ANSWERS.len())
}

fn has_more(old: &SettingValue, new: &SettingValue) -> bool {
    new.as_list().iter().any(|item| !old.as_list().contains(item))
}

/// A loopback address is only reachable from this machine, on any port. Any other address that differs may be
/// reachable from elsewhere.
fn reaches_more(old: &str, new: &str) -> bool {
    let ip = |text: &str| text.parse::<SocketAddr>().map(|address| address.ip()).ok();
    match (ip(old), ip(new)) {
        (_, Some(new)) if new.is_loopback() => false,
        (Some(old), Some(new)) => old != new && !is_unspecified_for(old, new),
        (_, None) | (None, Some(_)) => true,
    }
}

/// Whether `old` already listened on every address of `new`'s family.
fn is_unspecified_for(old: IpAddr, new: IpAddr) -> bool {
    old.is_unspecified() && old.is_ipv4() == new.is_ipv4()
}

/// The effective settings of a server that starts with these flags on a directory with this record.
pub fn resolve_setting(
    recorded: &BTreeMap<SettingName, SettingValue>,
    flags: &StartFlags,
) -> Result<SettledSettings, LooseningFlag> {
    let mut settled = SettledSettings { values: BTreeMap::new(), changed: vec![] };
    for name in SettingName::ALL {
        let default = || flags.defaults.get(&name).cloned();
        let named = flags.named.get(&name).cloned();
        let before = recorded.get(&name);
        let value = match (before, named) {
            (None, named) => named.or_else(default),
            (Some(_), Some(flag)) if flags.replaces => Some(flag),
            // No flag sets it, so no command line can omit it by mistake.
            (Some(before), None) if name == SettingName::OperatorMode => Some(before.clone()),
            (Some(before), None) if flags.replaces => default().or_else(|| Some(before.clone())),
            (Some(before), None) => Some(before.clone()),
            (Some(before), Some(flag)) => match effect(name, before, &flag) {
                SettingEffect::Loosens if !flags.unused.contains(&name) => {
                    return Err(LooseningFlag { name, recorded: before.clone(), flag });
                }
                SettingEffect::Same | SettingEffect::Tightens | SettingEffect::Loosens => {
                    Some(flag)
                }
            },
        };
        let Some(value) = value else { continue };
        if before != Some(&value) {
            settled.changed.push(name);
        }
        settled.values.insert(name, value);
    }
    Ok(settled)
}

#[cfg(test)]
mod tests;
