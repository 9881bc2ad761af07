//! The configuration files that a verb reads, and its messages about them.

use crate::exit::UsageError;
use server::settings::{SettingName, look_up_settings, server_account};
use sources::ConfigFiles;
use std::path::{Path, PathBuf};

/// The file that is named, which must exist; otherwise the recorded one, or the project's file before the user's own.
pub(crate) fn config_files(
    named_file: Option<&Path>,
    data_dir: &Path,
) -> Result<ConfigFiles, UsageError> {
    if let Some(path) = resolve_named_file(named_file)? {
        return Ok(ConfigFiles::with_named_file(&path, data_dir));
    }
    // A directory that cannot be read is reported by its server; only the configuration is relevant here.
    let recorded = look_up_settings(data_dir).unwrap_or_default();
    let config =
        recorded.get(&SettingName::Config).map(|setting| setting.value.as_text().to_owned());
    if let Some(path) = config.filter(|text| text.starts_with('/')) {
        return Ok(ConfigFiles::with_named_file(Path::new(&path), data_dir));
    }
    let projects: Vec<PathBuf> = project().into_iter().collect();
    Ok(ConfigFiles::usual(&projects, sources::user_file().as_deref(), data_dir))
}

/// The absolute path of a file that a flag or AIRLOCK_CONFIG names.
pub(crate) fn resolve_named_file(file: Option<&Path>) -> Result<Option<PathBuf>, UsageError> {
    let Some(file) = file.filter(|file| !file.as_os_str().is_empty()) else { return Ok(None) };
    let path = absolute(file);
    match path.is_file() {
        true => Ok(Some(path)),
        false => Err(UsageError(format!(
            "the configuration file {} does not exist; it is named with --config or AIRLOCK_CONFIG",
            path.display()
        ))),
    }
}

/// The project's file, from the current directory upwards.
pub(crate) fn project() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    sources::project_file(&here)
}

/// The path as an absolute path.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

/// The author of a change by this verb: the verb and the account.
pub(crate) fn author(verb: &str) -> String {
    let account = server_account();
    let name = account.entry.map_or_else(|| account.uid.to_string(), |(name, _)| name);
    format!("airlock {verb} by {name}")
}

/// The file with the vault's key: the one that is named, the recorded one, or the data directory's.
pub(crate) fn vault_key(named: Option<&Path>, data_dir: &Path) -> PathBuf {
    let recorded = || {
        let settings = look_up_settings(data_dir).ok()?;
        Some(PathBuf::from(settings.get(&SettingName::VaultKey)?.value.as_text()))
    };
    named.map(Path::to_owned).or_else(recorded).unwrap_or_else(|| data_dir.join("vault.key"))
}
