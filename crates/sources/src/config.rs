//! The format of `airlock.toml`, which is also the format of stored sources and connections.

mod network;
mod processes;
mod quotas;
mod repl;

pub use network::{ListenerLimits, NetworkConfig};
pub use processes::{
    ProcessNetwork, ProcessRun, ProcessSandbox, ProcessesConfig, RETENTION_SECONDS_MAX,
};
pub use quotas::{CallerQuotas, QuotasConfig};
pub use repl::{ReplCommand, ReplCommands, ReplConfig, ReplDeed, WrittenCommand};

use credentials::{ConnectionConfig, SecretText};
use lifecycle::{PolicyAction, ToolPath, ToolPattern};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tools::{SourceConfig, scrub};

/// Maximum size of a configuration file: people write these.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// Maximum number of policies of one file: each call evaluates all of them.
const RULES_MAX: usize = 1_000;

/// Maximum memory limit of programs: they share the sandbox's budget.
const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// Maximum number of tool aliases: each session stores them with its start.
const ALIASES_MAX: usize = 1_000;

/// A parsed configuration file, or several that were merged.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigDocument {
    /// The sources by name.
    pub sources: BTreeMap<String, SourceConfig>,
    /// The connections by source and name.
    pub connections: BTreeMap<String, BTreeMap<String, ConnectionConfig>>,
    /// Settings for programs of enclave clients.
    pub enclave: EnclaveConfig,
    /// The policies in evaluation order; the first match wins.
    pub policies: Vec<PolicyConfig>,
    /// Limits of programs.
    pub limits: LimitsConfig,
    /// Quotas of callers.
    pub quotas: QuotasConfig,
    /// The policies of each file that was merged: every file is evaluated, and the most restrictive result wins.
    #[serde(skip)]
    pub lists: Vec<Vec<PolicyConfig>>,
    /// Settings of project files that do not apply, one sentence each.
    #[serde(skip)]
    pub notices: Vec<String>,
    /// Files that project files name and that trust covers.
    #[serde(skip)]
    pub named_files: Vec<PathBuf>,
    /// Notifications about open questions.
    pub notify: Option<NotifyConfig>,
    /// Processes of clients and of programs.
    pub processes: ProcessesConfig,
    /// Commands that the REPL offers besides the catalogue.
    pub repl: ReplConfig,
    /// Which addresses requests may reach.
    pub network: NetworkConfig,
    /// Limits on connections to the server.
    pub listener: ListenerLimits,
}

/// Notifications about open questions.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyConfig {
    /// A program and its arguments; placeholders such as `{title}`, `{url}` and `{tool}` are replaced.
    pub command: Vec<String>,
    /// A webhook that receives the same notices.
    pub webhook: Option<WebhookConfig>,
}

/// A webhook, and the secret that signs its notices.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// The address.
    pub url: String,
    /// The secret that signs notices.
    pub secret: SecretText,
}

impl WebhookConfig {
    /// Reads the secret from its location.
    pub fn secret(&self) -> Result<String, String> {
        let secret = self.secret.read()?;
        scrub::learn(&secret);
        Ok(secret)
    }
}

/// One policy.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyConfig {
    /// The pattern of tool paths.
    pub pattern: String,
    /// What happens to matching calls.
    pub action: PolicyAction,
    /// For `require_approval`: whether the answer may change the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
    /// A free-text note. A rule that is changed without it loses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Limits of programs that differ from the defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Processor time.
    pub cpu_ms_max: Option<u64>,
    /// Time in which the program is active: excludes the time in which it waits for tools and people.
    pub active_ms_max: Option<u64>,
    /// Total time from start to finish.
    pub total_ms_max: Option<u64>,
    /// Memory.
    pub memory_bytes_max: Option<u64>,
    /// Tool calls.
    pub calls_max: Option<u32>,
    /// Total size of arguments, results and output.
    pub bytes_max: Option<u64>,
    /// Size of the result of one call.
    pub result_bytes_max: Option<u64>,
    /// Time from dispatching a call to its result.
    pub call_ms_max: Option<u64>,
}

/// Settings for programs of enclave clients.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnclaveConfig {
    /// Aliases for tools of the catalogue: the name in programs, and the tool's path.
    pub tools: BTreeMap<String, String>,
}

impl EnclaveConfig {
    /// The aliases, each validated.
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

impl LimitsConfig {
    fn check_values(&self) -> Result<(), String> {
        let numbers = [
            ("cpu_ms_max", self.cpu_ms_max),
            ("active_ms_max", self.active_ms_max),
            ("total_ms_max", self.total_ms_max),
            ("memory_bytes_max", self.memory_bytes_max),
            ("calls_max", self.calls_max.map(u64::from)),
            ("bytes_max", self.bytes_max),
            ("result_bytes_max", self.result_bytes_max),
            ("call_ms_max", self.call_ms_max),
        ];
        match numbers.iter().find(|(_, number)| *number == Some(0)) {
            Some((name, _)) => Err(format!("limits.{name} is 1 or more")),
            None if self.memory_bytes_max.is_some_and(|bytes| bytes > MEMORY_BYTES_MAX) => {
                Err(format!("limits.memory_bytes_max is {MEMORY_BYTES_MAX} at most"))
            }
            None => Ok(()),
        }
    }

    fn merged_over(self, other: Self) -> Self {
        Self {
            cpu_ms_max: self.cpu_ms_max.or(other.cpu_ms_max),
            active_ms_max: self.active_ms_max.or(other.active_ms_max),
            total_ms_max: self.total_ms_max.or(other.total_ms_max),
            memory_bytes_max: self.memory_bytes_max.or(other.memory_bytes_max),
            calls_max: self.calls_max.or(other.calls_max),
            bytes_max: self.bytes_max.or(other.bytes_max),
            result_bytes_max: self.result_bytes_max.or(other.result_bytes_max),
            call_ms_max: self.call_ms_max.or(other.call_ms_max),
        }
    }

    /// The defaults with these limits in place.
    #[must_use]
    pub fn on(self, usual: lifecycle::ExecutionLimits) -> lifecycle::ExecutionLimits {
        lifecycle::ExecutionLimits {
            cpu_ms_max: self.cpu_ms_max.unwrap_or(usual.cpu_ms_max),
            active_ms_max: self.active_ms_max.unwrap_or(usual.active_ms_max),
            total_ms_max: self.total_ms_max.unwrap_or(usual.total_ms_max),
            memory_bytes_max: self.memory_bytes_max.unwrap_or(usual.memory_bytes_max),
            calls_max: self.calls_max.unwrap_or(usual.calls_max),
            bytes_max: self.bytes_max.unwrap_or(usual.bytes_max),
            result_bytes_max: self.result_bytes_max.unwrap_or(usual.result_bytes_max),
            call_ms_max: self.call_ms_max.unwrap_or(usual.call_ms_max),
            ..usual
        }
    }
}

impl ConfigDocument {
    /// Parses the text of a file. Errors name the line or the key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let read: Result<Self, _> = toml::from_str(text);
        let mut file = read.map_err(|error| error.to_string().trim_end().to_owned())?;
        if file.policies.len() > RULES_MAX {
            return Err(format!("policies: there are {RULES_MAX} at most"));
        }
        for (at, rule) in file.policies.iter().enumerate() {
            ToolPattern::parse(&rule.pattern)
                .map_err(|bad| format!("policies[{at}].pattern \"{}\": {bad}", rule.pattern))?;
        }
        for (source, connections) in &mut file.connections {
            for (name, connection) in connections {
                connection.texts().for_each(|text| text.refer());
                connection
                    .check_members()
                    .map_err(|why| format!("connections.{source}.{name}: {why}"))?;
            }
        }
        file.limits.check_values()?;
        file.quotas.check_values()?;
        file.enclave.aliases()?;
        file.repl.check_values()?;
        file.processes.check_values()?;
        file.network.check_values()?;
        file.listener.check_values()?;
        file.lists = vec![std::mem::take(&mut file.policies)];
        Ok(file)
    }

    /// Merges this file over another: settings of this file win.
    #[must_use]
    pub fn merged_over(self, other: Self) -> Self {
        let mut merged = other;
        merged.sources.extend(self.sources);
        merged.notify = self.notify.or(merged.notify);
        merged.processes = self.processes.merged_over(merged.processes);
        merged.network = self.network.merged_over(merged.network);
        merged.listener = self.listener.merged_over(merged.listener);
        merged.enclave.tools.extend(self.enclave.tools);
        for (source, connections) in self.connections {
            merged.connections.entry(source).or_default().extend(connections);
        }
        merged.lists.extend(self.lists);
        merged.notices.extend(self.notices);
        merged.named_files.extend(self.named_files);
        merged.limits = self.limits.merged_over(merged.limits);
        merged.quotas = self.quotas.merged_over(merged.quotas);
        merged.repl = self.repl.merged_over(merged.repl);
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
        let merged = ConfigDocument::parse(project)
            .unwrap()
            .merged_over(ConfigDocument::parse(user).unwrap());
        let path = |text| ToolPath::parse(text).unwrap();
        let aliases = [(path("add"), path("demo.add")), (path("users:list"), path("u.list"))];
        assert_eq!(merged.enclave.aliases().unwrap(), aliases.into());
        assert_eq!(merged.sources["a"].url.as_deref(), Some("http://p"));
        assert_eq!(merged.connections["a"].len(), 2);
    }

    #[test]
    fn each_file_keeps_its_own_policies_and_the_first_says_the_limits() {
        let rule = |pattern: &str, action: &str| {
            format!("[[policies]]\npattern = '{pattern}'\naction = '{action}'\n")
        };
        let user = format!("{}[limits]\ncalls_max = 5\nbytes_max = 7\n", rule("*", "block"));
        let project = format!("{}[limits]\ncalls_max = 9\n", rule("a.*", "approve"));
        let merged = ConfigDocument::parse(&project)
            .unwrap()
            .merged_over(ConfigDocument::parse(&user).unwrap());
        let patterns: Vec<Vec<_>> = merged
            .lists
            .iter()
            .map(|list| list.iter().map(|rule| rule.pattern.as_str()).collect())
            .collect();
        assert_eq!(patterns, [["*"], ["a.*"]]);
        let limits = merged.limits.on(lifecycle::ExecutionLimits::default());
        let expected = lifecycle::ExecutionLimits {
            calls_max: 9,
            bytes_max: 7,
            ..lifecycle::ExecutionLimits::default()
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn a_bad_policy_or_limit_is_told_with_its_key() {
        let bad = "[[policies]]\npattern = 'a'\naction = 'block'\n\
                   [[policies]]\npattern = 'a..b'\naction = 'block'\n";
        let why = ConfigDocument::parse(bad).unwrap_err();
        assert_eq!(why, "policies[1].pattern \"a..b\": a pattern has no empty names");
        assert_eq!(
            ConfigDocument::parse("[limits]\ncalls_max = 0\n").unwrap_err(),
            "limits.calls_max is 1 or more"
        );
        let why =
            ConfigDocument::parse("[[policies]]\npattern = 'a'\naction = 'aprove'\n").unwrap_err();
        assert!(why.contains("line 3") && why.contains("aprove"), "{why}");
    }

    #[test]
    fn a_file_says_where_secrets_are_in_tables_and_in_words() {
        let text = "[connections.a.one]\nbearer = 'env:TOKEN'\n\
                    [connections.a.two]\nheaders = { 'x-key' = { cmd = ['op', 'read', 'op://a b/c'] } }\n\
                    [connections.a.three]\ntemplate = 'apikey-0'\nvalues = { value = 'cmd:pass show key' }\n\
                    [connections.a.four]\noauth = { flow = 'device', scopes = ['read'] }\n";
        let connections = ConfigDocument::parse(text).unwrap().connections.remove("a").unwrap();
        assert_eq!(connections["one"].bearer, Some(SecretText::Env { env: "TOKEN".into() }));
        let SecretText::Cmd { cmd } = &connections["two"].headers["x-key"] else { panic!() };
        assert_eq!(cmd.argv(), ["op", "read", "op://a b/c"]);
        let SecretText::Cmd { cmd } = &connections["three"].values["value"] else { panic!() };
        assert_eq!(cmd.argv(), ["pass", "show", "key"]);
        let kinds = ["one", "two", "three", "four"]
            .map(|name| connections[name].template_name().to_owned());
        assert_eq!(kinds, ["bearer", "header", "apikey-0", "oauth"]);
        let twice = "[connections.a.b]\nbearer = 'x'\noauth = {}\n";
        let why = ConfigDocument::parse(twice).unwrap_err();
        assert_eq!(
            why,
            "connections.a.b: a connection has one of bearer, basic, template and oauth"
        );
    }

    #[test]
    fn a_wrong_file_is_told_with_its_line() {
        let why = ConfigDocument::parse("[sources.a]\nurll = 'x'\n").unwrap_err();
        assert!(why.contains("line 2") && why.contains("urll"), "{why}");
        let why = ConfigDocument::parse("[enclave.tools]\nadd = 'demo..add'\n").unwrap_err();
        assert!(why.contains("demo..add"), "{why}");
        for (text, expected) in [
            ("[network]\nallow = ['metadata']\n", "network.allow: \"metadata\" is no address"),
            ("[network]\nproxy = 'socks5://p:1'\n", "network.proxy: \"socks5://p:1\" is no proxy"),
            ("[listener]\nhead_ms_max = 0\n", "listener.head_ms_max is 1 to 75000"),
        ] {
            let why = ConfigDocument::parse(text).unwrap_err();
            assert!(why.starts_with(expected), "{why}");
        }
    }
}
