//! `[processes]`: limits and sandbox of processes of clients and of programs.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Default time limit of a command, and the maximum that can be configured.
const TIME_MS_USUALLY: u64 = 10 * 60_000;
const TIME_MS_MAX: u64 = 24 * 3_600_000;

/// Maximum retention of ended processes and of those whose client has disconnected: a day.
pub const RETENTION_SECONDS_MAX: u64 = 24 * 3_600;

/// Processes of clients and of programs. Read when a server starts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessesConfig {
    /// The sandbox of all processes.
    pub sandbox: Option<ProcessSandbox>,
    /// Lets programs run commands with `tools.process.run`; without it they cannot.
    pub run: Option<ProcessRun>,
    /// Whether the data directory, the vault key and configuration files are hidden also from programs without a sandbox;
    /// programs in a sandbox never see them. On by default.
    pub hide_server_files: Option<bool>,
    /// How long processes of a disconnected client wait for it, in seconds.
    pub detached_seconds: Option<u64>,
    /// How long an ended process can still be looked up, in seconds.
    pub ended_seconds: Option<u64>,
}

/// The sandbox: everything can be read, and only these folders can be written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessSandbox {
    /// Writable folders.
    pub writable: Vec<String>,
    /// Paths that cannot be read either.
    pub hidden: Vec<String>,
    /// The reachable network.
    pub network: ProcessNetwork,
    /// Memory of a process and all its descendants together.
    pub memory_bytes: Option<u64>,
    /// Processor time of a process and all its descendants together.
    pub cpu_ms: Option<u64>,
    /// Maximum number of processes.
    pub processes: Option<u64>,
}

/// The network that a process can reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessNetwork {
    /// No restriction.
    #[default]
    All,
    /// Only processes in the same sandbox.
    Loopback,
    /// No network.
    None,
}

/// Commands that programs run with `tools.process.run`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessRun {
    /// Working directory, and base of relative paths in `cwd`; by default, where the server was started.
    pub directory: Option<PathBuf>,
    /// Environment variables besides `PATH` and `LANG`. Nothing else of the server's environment is passed on.
    pub env: BTreeMap<String, String>,
    /// Longest time limit that a call may request.
    pub time_ms_max: u64,
}

impl Default for ProcessRun {
    fn default() -> Self {
        Self { directory: None, env: BTreeMap::new(), time_ms_max: TIME_MS_USUALLY }
    }
}

impl ProcessRun {
    /// Maximum time of a command.
    pub const fn time_max(&self) -> Duration {
        Duration::from_millis(self.time_ms_max)
    }
}

impl ProcessesConfig {
    /// These settings, with those of `other` where these are absent.
    pub(super) fn merged_over(self, other: Self) -> Self {
        Self {
            sandbox: self.sandbox.or(other.sandbox),
            run: self.run.or(other.run),
            hide_server_files: self.hide_server_files.or(other.hide_server_files),
            detached_seconds: self.detached_seconds.or(other.detached_seconds),
            ended_seconds: self.ended_seconds.or(other.ended_seconds),
        }
    }

    pub(super) fn check_values(&self) -> Result<(), String> {
        let sandbox = self.sandbox.iter();
        let mut places = sandbox.flat_map(|sandbox| sandbox.writable.iter().chain(&sandbox.hidden));
        if let Some(relative) = places.find(|path| !path.starts_with('/')) {
            return Err(format!("processes.sandbox names {relative}, which is no absolute path"));
        }
        for (name, seconds) in [("detached", self.detached_seconds), ("ended", self.ended_seconds)]
        {
            if seconds.is_some_and(|seconds| seconds > RETENTION_SECONDS_MAX) {
                let most = RETENTION_SECONDS_MAX;
                return Err(format!("processes.{name}_seconds is {most} at most"));
            }
        }
        let Some(run) = &self.run else { return Ok(()) };
        if !(1..=TIME_MS_MAX).contains(&run.time_ms_max) {
            return Err(format!("processes.run.time_ms_max is 1 to {TIME_MS_MAX}"));
        }
        if run.directory.as_ref().is_some_and(|directory| !directory.is_absolute()) {
            return Err("processes.run.directory is an absolute path".into());
        }
        let is_bad = |(name, value): (&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        match run.env.iter().any(is_bad) {
            true => Err("processes.run.env has a variable that no system knows".into()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::ConfigDocument;

    #[track_caller]
    fn refused(text: &str, why: &str) {
        assert_eq!(ConfigDocument::parse(text).unwrap_err(), why);
    }

    #[test]
    fn commands_are_off_until_a_file_says_otherwise_and_the_first_file_counts() {
        assert_eq!(ConfigDocument::parse("").unwrap().processes.run, None);
        let [one, two] = ["1", "2"].map(|ms| format!("[processes.run]\ntime_ms_max = {ms}\n"));
        let merged =
            ConfigDocument::parse(&one).unwrap().merged_over(ConfigDocument::parse(&two).unwrap());
        assert_eq!(merged.processes.run.unwrap().time_ms_max, 1);
        let plain = ConfigDocument::parse("[processes.run]\n").unwrap().processes.run.unwrap();
        assert_eq!(plain.time_max().as_secs(), 600);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key() {
        refused("[processes.run]\ntime_ms_max = 0", "processes.run.time_ms_max is 1 to 86400000");
        refused("[processes.run]\ndirectory = 'a'", "processes.run.directory is an absolute path");
        refused(
            "[processes.run.env]\n'a=b' = ''",
            "processes.run.env has a variable that no system knows",
        );
        refused(
            "[processes.sandbox]\nhidden = ['x']",
            "processes.sandbox names x, which is no absolute path",
        );
    }
}
