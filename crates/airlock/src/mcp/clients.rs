//! The clients that `airlock mcp install` knows: the location and format of each configuration, and the entry in it.

use super::config::{ConfigFormat, ENTRY, EntryMember};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::PathBuf;

/// A client's timeout for one call where it requests progress with every call, as Codex and Goose do: `resume` then waits
/// 10 minutes for a person. Progress does not restart their timers. In seconds.
const PROGRESS_CALL_SECONDS: u64 = 660;

/// A client's timeout for one call where it does not request progress. Such a call is answered after 50 s. In seconds.
const CALL_SECONDS: u64 = 120;

/// A client's timeout for the start of the bridge, which may have to start the server first. In seconds.
const START_SECONDS: u64 = 30;

/// A client whose configuration is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum KnownClient {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    #[value(alias = "copilot-cli")]
    Copilot,
    Cursor,
    #[value(alias = "gemini-cli")]
    Gemini,
    Goose,
    Opencode,
    Vscode,
    Windsurf,
    Zed,
}

/// The configuration folders of this account.
pub(super) struct ConfigHome {
    home: Option<PathBuf>,
    variable: fn(&str) -> Option<OsString>,
}

impl ConfigHome {
    /// Reads them from the environment.
    pub(super) fn of_environment() -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Self {
            home: home.filter(|home| home.is_absolute()),
            variable: |name| std::env::var_os(name),
        }
    }

    /// A file below the home directory.
    fn home(&self, path: &str) -> Option<PathBuf> {
        Some(self.home.as_ref()?.join(path))
    }

    /// A file below the folder that a variable names; otherwise below a default folder in the home directory.
    fn folder(&self, variable: &str, usual: &str, path: &str) -> Option<PathBuf> {
        let named = (self.variable)(variable).map(PathBuf::from).filter(|dir| dir.is_absolute());
        named.or_else(|| self.home(usual)).map(|folder| folder.join(path))
    }

    fn config(&self, path: &str) -> Option<PathBuf> {
        self.folder("XDG_CONFIG_HOME", ".config", path)
    }

    /// The folder in which desktop programs store their files.
    fn desktop(&self, path: &str) -> Option<PathBuf> {
        if cfg!(target_os = "macos") {
            return self.home(&format!("Library/Application Support/{path}"));
        }
        self.config(path)
    }
}

impl KnownClient {
    /// The name on the command line, which is also that of its token.
    pub(super) fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self).expect("every client has a name");
        value.get_name().to_owned()
    }

    /// Its configuration file; `None` where its location is unknown.
    pub(super) fn file(self, at: &ConfigHome) -> Option<PathBuf> {
        match self {
            Self::ClaudeCode => at.folder("CLAUDE_CONFIG_DIR", "", ".claude.json"),
            Self::ClaudeDesktop => at.desktop("Claude/claude_desktop_config.json"),
            Self::Codex => at.folder("CODEX_HOME", ".codex", "config.toml"),
            Self::Copilot => at.folder("COPILOT_HOME", ".copilot", "mcp-config.json"),
            Self::Cursor => at.home(".cursor/mcp.json"),
            Self::Gemini => at.folder("GEMINI_CLI_HOME", "", ".gemini/settings.json"),
            Self::Goose => at.config("goose/config.yaml"),
            Self::Opencode => {
                // opencode reads both names.
                let commented = at.config("opencode/opencode.jsonc");
                commented
                    .filter(|file| file.is_file())
                    .or_else(|| at.config("opencode/opencode.json"))
            }
            Self::Vscode => at.desktop("Code/User/mcp.json"),
            Self::Windsurf => at.home(".codeium/windsurf/mcp_config.json"),
            Self::Zed => at.config("zed/settings.json"),
        }
    }

    pub(super) const fn format(self) -> ConfigFormat {
        match self {
            Self::Codex => ConfigFormat::Toml,
            Self::Goose => ConfigFormat::Yaml,
            Self::ClaudeCode
            | Self::ClaudeDesktop
            | Self::Copilot
            | Self::Cursor
            | Self::Gemini
            | Self::Opencode
            | Self::Vscode
            | Self::Windsurf
            | Self::Zed => ConfigFormat::Json,
        }
    }

    /// The section of its servers in the file, whose present content is `config`.
    pub(super) fn section(self, config: &Value) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode
            | Self::ClaudeDesktop
            | Self::Copilot
            | Self::Cursor
            | Self::Gemini
            | Self::Windsurf => &["mcpServers"],
            Self::Codex => &["mcp_servers"],
            Self::Goose => &["extensions"],
            Self::Opencode if is_second_opencode(config) => &["mcp", "servers"],
            Self::Opencode => &["mcp"],
            Self::Vscode => &["servers"],
            Self::Zed => &["context_servers"],
        }
    }

    /// The entry that starts `command` with these arguments, in a file whose present content is `config`.
    pub(super) fn entry(self, config: &Value, command: &str, words: &[String]) -> Vec<EntryMember> {
        let plain = vec![("command", json!(command)), ("args", json!(words))];
        match self {
            Self::ClaudeDesktop | Self::Cursor | Self::Gemini | Self::Windsurf | Self::Zed => plain,
            Self::ClaudeCode | Self::Vscode => [vec![("type", json!("stdio"))], plain].concat(),
            Self::Codex => [plain, codex_members()].concat(),
            Self::Copilot => {
                [vec![("type", json!("local"))], plain, vec![("tools", json!(["*"]))]].concat()
            }
            Self::Goose => goose_entry(command, words),
            Self::Opencode => opencode_entry(config, command, words),
        }
    }

    /// A note for the person about the entry.
    pub(super) const fn install_note(self) -> Option<&'static str> {
        match self {
            Self::Codex => Some(
                "codex calls Airlock's tools without asking you (default_tools_approval_mode), because `codex exec` \
                 could not call them otherwise; Airlock's policies decide which calls wait for you",
            ),
            Self::ClaudeCode
            | Self::ClaudeDesktop
            | Self::Copilot
            | Self::Cursor
            | Self::Gemini
            | Self::Goose
            | Self::Opencode
            | Self::Vscode
            | Self::Windsurf
            | Self::Zed => None,
        }
    }
}

fn codex_members() -> Vec<EntryMember> {
    vec![
        ("startup_timeout_sec", json!(START_SECONDS)),
        ("tool_timeout_sec", json!(PROGRESS_CALL_SECONDS)),
        // Without a terminal, Codex refuses every call of a tool that may change something, and a tool that runs programs
        // truthfully declares that it may. Airlock's policies decide which calls of a program need a person.
        ("default_tools_approval_mode", json!("approve")),
    ]
}

fn goose_entry(command: &str, words: &[String]) -> Vec<EntryMember> {
    vec![
        ("type", json!("stdio")),
        ("name", json!(ENTRY)),
        ("description", json!("Airlock: programs that call the user's tools")),
        ("enabled", json!(true)),
        ("cmd", json!(command)),
        ("args", json!(words)),
        ("envs", json!({})),
        ("env_keys", json!([])),
        ("timeout", json!(PROGRESS_CALL_SECONDS)),
    ]
}

fn opencode_entry(config: &Value, command: &str, words: &[String]) -> Vec<EntryMember> {
    let line: Vec<_> = [&[command.to_owned()], words].concat();
    let entry = vec![("type", json!("local")), ("command", json!(line))];
    if is_second_opencode(config) {
        return entry;
    }
    // Older versions of opencode use it for the list of tools only, newer ones for calls too.
    let more = vec![("enabled", json!(true)), ("timeout", json!(CALL_SECONDS * 1_000))];
    [entry, more].concat()
}

/// The command line of an entry of any client.
pub(super) fn command_line(entry: &Map<String, Value>) -> Vec<String> {
    let texts = |value: Option<&Value>| -> Vec<String> {
        match value {
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(items)) => {
                items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
                vec![]
            }
        }
    };
    let command = entry.get("command").or_else(|| entry.get("cmd"));
    [texts(command), texts(entry.get("args"))].concat()
}

/// Whether a configuration is one of opencode's second version, in which servers have a separate section. In the first,
/// that would be a server with the name `servers`.
fn is_second_opencode(config: &Value) -> bool {
    let servers = &config["mcp"]["servers"];
    servers.is_object() && !servers["type"].is_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    #[test]
    fn a_file_is_where_its_client_looks_for_it() {
        let home = |variable: fn(&str) -> Option<OsString>| ConfigHome {
            home: Some("/home/ann".into()),
            variable,
        };
        let usual = home(|_| None);
        let moved = home(|name| Some(format!("/{name}").into()));
        let cases = [
            (KnownClient::ClaudeCode, "/home/ann/.claude.json", "/CLAUDE_CONFIG_DIR/.claude.json"),
            (KnownClient::Codex, "/home/ann/.codex/config.toml", "/CODEX_HOME/config.toml"),
            (
                KnownClient::Copilot,
                "/home/ann/.copilot/mcp-config.json",
                "/COPILOT_HOME/mcp-config.json",
            ),
            (
                KnownClient::Goose,
                "/home/ann/.config/goose/config.yaml",
                "/XDG_CONFIG_HOME/goose/config.yaml",
            ),
            (
                KnownClient::Gemini,
                "/home/ann/.gemini/settings.json",
                "/GEMINI_CLI_HOME/.gemini/settings.json",
            ),
        ];
        for (client, expected, elsewhere) in cases {
            assert_eq!(client.file(&usual), Some(expected.into()));
            assert_eq!(client.file(&moved), Some(elsewhere.into()));
        }
        let nowhere = ConfigHome { home: None, variable: |_| None };
        for client in KnownClient::value_variants() {
            assert_eq!(client.file(&nowhere), None);
        }
    }

    #[test]
    fn clients_wait_as_long_as_a_call_may_take() {
        let seconds = |client: KnownClient, member: &str| {
            let entry = client.entry(&json!({}), "a", &[]);
            let found = entry.iter().find(|(name, _)| *name == member);
            found.and_then(|(_, value)| value.as_u64()).unwrap()
        };
        // Ten minutes on the page, or the 50 s of a call without progress.
        assert!(seconds(KnownClient::Codex, "tool_timeout_sec") > 600);
        assert!(seconds(KnownClient::Goose, "timeout") > 600);
        assert!(seconds(KnownClient::Opencode, "timeout") > 50_000);
    }

    #[test]
    fn every_entry_runs_the_bridge_as_its_client_takes_it() {
        let words = ["mcp", "--as", "x"].map(str::to_owned);
        for client in KnownClient::value_variants() {
            let entry = client.entry(&json!({}), "/bin/airlock", &words);
            let entry = entry.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            assert_eq!(command_line(&entry), ["/bin/airlock", "mcp", "--as", "x"], "{client:?}");
        }
        let second = json!({ "mcp": { "servers": {} } });
        let named = json!({ "mcp": { "servers": { "type": "local" } } });
        assert_eq!(KnownClient::Opencode.section(&second), ["mcp", "servers"]);
        assert_eq!(KnownClient::Opencode.section(&named), ["mcp"]);
        let entry = KnownClient::Opencode.entry(&second, "a", &words);
        assert!(entry.iter().all(|(name, _)| *name != "enabled"));
    }
}
