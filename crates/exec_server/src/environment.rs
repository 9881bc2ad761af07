//! What a client learns about the machine that its processes run on.

use protocols::exec_server::{EnvironmentInfo, Shell, uri_of};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Shells that are tried if the environment names none.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// Optional features, by the names that codex uses.
const CAPABILITIES: [&str; 4] =
    ["environmentConfigRead", "fileWriteStreaming", "fsWatchMissing", "httpHeaderEnvVars"];

/// `environment/info`.
pub(super) fn info() -> EnvironmentInfo {
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    EnvironmentInfo {
        shell: shell(),
        executor_version: concat!("airlock ", env!("CARGO_PKG_VERSION")).into(),
        cwd: uri_of(&cwd),
        user_home_dir: std::env::var_os("HOME").map(|home| uri_of(Path::new(&home))),
        platform_os: std::env::consts::OS.into(),
        temporary_directories: vec![],
        temp_dir: uri_of(&std::env::temp_dir()),
        // Clients request no feature that is not listed here.
        capabilities: BTreeMap::from(CAPABILITIES.map(|name| (name.to_owned(), true))),
    }
}

fn shell() -> Shell {
    let named = std::env::var("SHELL").ok().filter(|path| Path::new(path).is_file());
    let found = SHELLS.into_iter().find(|path| Path::new(path).is_file()).map(str::to_owned);
    let path = named.or(found).unwrap_or_else(|| "/bin/sh".into());
    let name = path.rsplit('/').next().unwrap_or("sh").to_owned();
    Shell { name, path }
}
