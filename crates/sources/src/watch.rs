//! Polls the configuration files: one poll costs two system calls.

use crate::config::{
    ConfigDocument, FILE_BYTES_MAX, ListenerLimits, NotifyConfig, ProcessesConfig,
};
use crate::config_files::{ConfigFile, ConfigFiles, FileAuthority, project_part};
use crate::trusted::TrustedFile;
use engine::QuotaSettings;
use lifecycle::{ExecutionLimits, Policy, Timestamp};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use store::RecordStore;

/// `airlock.toml` in `from` or above it.
pub fn project_file(from: &Path) -> Option<PathBuf> {
    from.ancestors().map(|folder| folder.join("airlock.toml")).find(|file| file.is_file())
}

/// The user's own file: `$XDG_CONFIG_HOME/airlock/airlock.toml`, usually in `~/.config`.
pub fn user_file() -> Option<PathBuf> {
    let folder =
        std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    folder.or_else(home).map(|folder| folder.join("airlock/airlock.toml"))
}

/// The notification settings, if there are any.
pub fn notify(files: &ConfigFiles) -> Result<Option<NotifyConfig>, String> {
    read(files).map(|file| file.notify)
}

/// The process settings of the files.
pub fn processes(files: &ConfigFiles) -> Result<ProcessesConfig, String> {
    Ok(read(files)?.processes)
}

/// The connection limits of the files.
pub fn listener_limits(files: &ConfigFiles) -> Result<ListenerLimits, String> {
    Ok(read(files)?.listener)
}

/// The files that exist, if they can be parsed; otherwise the error.
pub fn check_files(files: &ConfigFiles) -> Result<ConfigFiles, String> {
    read(files)?;
    let is_there = |file: &&ConfigFile| {
        file.path.is_file() || TrustedFile::record_path(&files.data_dir, &file.path).is_file()
    };
    let there = files.files.iter().filter(is_there).cloned().collect();
    Ok(ConfigFiles { files: there, data_dir: files.data_dir.clone() })
}

/// Settings of project files that do not apply, one sentence each.
pub fn notices(files: &ConfigFiles) -> Result<Vec<String>, String> {
    Ok(read(files)?.notices)
}

/// The quotas of the files.
pub fn quotas(files: &ConfigFiles) -> Result<QuotaSettings, String> {
    Ok(read(files)?.quotas.settings())
}

/// The policies and limits of the files. An engine needs them before it recovers executions: sources may come later,
/// policies that block must not.
pub async fn configured(
    files: &ConfigFiles,
    records: &dyn RecordStore,
    now: Timestamp,
    usual: ExecutionLimits,
) -> Result<(Policy, ExecutionLimits), String> {
    let file = read(files)?;
    let policy = crate::policy_first_seen::policy(records, &file.lists, now).await;
    Ok((policy.map_err(|error| error.to_string())?, file.limits.on(usual)))
}

/// Detects changes of the files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FileSignature(Vec<Option<(SystemTime, u64)>>);

pub(crate) fn file_signatures<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> FileSignature {
    let seen = |file: &PathBuf| {
        let data = std::fs::metadata(file).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    FileSignature(files.into_iter().map(seen).collect())
}

/// Reads and merges all files; earlier ones win. A missing file has no effect.
pub(crate) fn read(files: &ConfigFiles) -> Result<ConfigDocument, String> {
    let mut merged = ConfigDocument::default();
    for file in files.files.iter().rev() {
        let name = file.path.display();
        let (mut read, notices) = match (file.authority, text_of(&file.path)?) {
            (FileAuthority::Operator, None) => continue,
            (FileAuthority::Operator, Some(text)) => {
                (ConfigDocument::parse(&text).map_err(|why| format!("{name}: {why}"))?, vec![])
            }
            (FileAuthority::Project, text) => {
                let trusted = TrustedFile::load(&files.data_dir, &file.path)?;
                let covered = trusted.iter().flat_map(|trusted| trusted.files.keys().cloned());
                merged.named_files.extend(covered);
                project_part(&file.path, text.as_deref(), trusted.as_ref())
                    .map_err(|why| format!("{name}: {why}"))?
            }
        };
        let folder = file.path.parent().unwrap_or(Path::new(""));
        read.repl.read_files(folder).map_err(|why| format!("{name}: {why}"))?;
        merged = read.merged_over(merged);
        merged.notices.extend(notices);
    }
    Ok(merged)
}

/// The text of a file; none if it does not exist.
fn text_of(file: &Path) -> Result<Option<String>, String> {
    let name = file.display();
    let too_large = std::fs::metadata(file).is_ok_and(|data| data.len() > FILE_BYTES_MAX);
    if too_large {
        return Err(format!("{name} has more than {FILE_BYTES_MAX} bytes"));
    }
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{name} cannot be read: {}", error.kind())),
    }
}
