//! Edits configuration files of other programs: one entry is added or removed, everything else is preserved, comments
//! included. Knows no client and reads no file.

mod json;
mod toml;
mod yaml;

use serde_json::{Map, Value};

/// The name of our entry in every client.
pub(super) const ENTRY: &str = "airlock";

/// Members that determine the command. An installation sets them; the owner of the entry may have changed the others.
const COMMAND_MEMBERS: [&str; 4] = ["type", "command", "args", "cmd"];

/// A member of our entry, in conventional order.
pub(super) type EntryMember = (&'static str, Value);

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigFormat {
    /// JSON, with comments where the client accepts them.
    Json,
    /// TOML.
    Toml,
    /// Block-style YAML.
    Yaml,
}

/// Why a file is not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ConfigError {
    /// It is not valid in its format.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// Its content is not what such a file contains.
    #[error("its {0:?} is no object")]
    NotObject(String),
    /// Its syntax is valid, but not supported here.
    #[error("its {0:?} is not written as a block")]
    NotBlock(String),
}

impl ConfigFormat {
    /// The text with our entry below `section`: new members are added; of existing ones, only the command's are changed.
    pub(super) fn with_entry(
        self,
        text: &str,
        section: &[&str],
        entry: &[EntryMember],
    ) -> Result<String, ConfigError> {
        match self {
            Self::Json => json::with_entry(text, section, entry),
            Self::Toml => toml::with_entry(text, section, entry),
            Self::Yaml => yaml::with_entry(text, section, entry),
        }
    }

    /// The text without our entry.
    pub(super) fn without_entry(self, text: &str, section: &[&str]) -> Result<String, ConfigError> {
        match self {
            Self::Json => json::without_entry(text, section),
            Self::Toml => toml::without_entry(text, section),
            Self::Yaml => yaml::without_entry(text, section),
        }
    }

    /// The parsed content of the text.
    pub(super) fn value(self, text: &str) -> Result<Value, ConfigError> {
        match self {
            Self::Json => json::parse_value(text),
            Self::Toml => toml::parse_value(text),
            Self::Yaml => yaml::parse_value(text),
        }
    }

    /// Our entry, where the text has one.
    pub(super) fn entry(
        self,
        text: &str,
        section: &[&str],
    ) -> Result<Option<Map<String, Value>>, ConfigError> {
        let mut value = self.value(text)?;
        for name in section.iter().chain([&ENTRY]) {
            value = value[name].take();
        }
        Ok(value.as_object().cloned())
    }
}

/// Whether an installation also overwrites an existing member of this name.
fn is_of_command(member: &str) -> bool {
    COMMAND_MEMBERS.contains(&member)
}
