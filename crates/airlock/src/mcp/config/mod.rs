//! Other programs' configuration files: one entry is put in or taken out, everything else stays as it was written,
//! comments included. Knows no client and reads no file.

mod json;
mod toml;
mod yaml;

use serde_json::{Map, Value};

/// The name of our entry in every client.
pub(super) const ENTRY: &str = "airlock";

/// Members that say what is run. An installation sets them; what else an entry has, its owner may have changed.
const COMMAND_MEMBERS: [&str; 4] = ["type", "command", "args", "cmd"];

/// A member of our entry, in the order in which a reader expects them.
pub(super) type EntryMember = (&'static str, Value);

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigFormat {
    /// JSON, with comments where the client takes them.
    Json,
    /// TOML.
    Toml,
    /// YAML in blocks.
    Yaml,
}

/// Why a file is left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ConfigError {
    /// It cannot be read as what it should be.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// Not what such a file looks like.
    #[error("its {0:?} is no object")]
    NotObject(String),
    /// It is written in a way that is not edited here.
    #[error("its {0:?} is not written as a block")]
    NotBlock(String),
}

impl ConfigFormat {
    /// The text with our entry below `section`: new members are added, of those that are there only the command's are
    /// changed.
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

    /// Everything that the text says.
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

/// Whether an installation sets this member also where it is there.
fn is_of_command(member: &str) -> bool {
    COMMAND_MEMBERS.contains(&member)
}
