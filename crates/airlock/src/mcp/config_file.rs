//! Reads and replaces the configuration files of other programs.

use crate::input;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Largest configuration that is read; such files hold a few pages.
const CONFIG_BYTES_MAX: u64 = 16 << 20;

/// Returns the text of a file; `None` where the file does not exist.
pub(super) fn read(file: &Path) -> Result<Option<String>, String> {
    let shown = file.display();
    match File::open(file) {
        Ok(open) => input::read(&shown.to_string(), open, CONFIG_BYTES_MAX).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot open {shown}: {error}")),
    }
}

/// The path of a file's backup.
pub(super) fn backup_of(file: &Path) -> PathBuf {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".before-airlock");
    file.with_file_name(name)
}

/// Replaces a file's text atomically; if requested, with a backup beside it, whose path is returned.
pub(super) fn replace(file: &Path, keeps_backup: bool, text: &str) -> io::Result<Option<PathBuf>> {
    // A symbolic link is followed: its target is the file to replace.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mode = fs::metadata(&file).map_or(0o600, |found| found.permissions().mode());
    let backup = keeps_backup.then(|| backup_of(&file));
    if let Some(backup) = &backup {
        fs::copy(&file, backup)?;
    }
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.as_file().set_permissions(Permissions::from_mode(mode))?;
    fresh.as_file().sync_all()?;
    fresh.persist(&file).map_err(|error| error.error)?;
    Ok(backup)
}

/// Removes a file; a symbolic link to it remains, and is then dangling.
pub(super) fn remove(file: &Path) -> io::Result<()> {
    fs::remove_file(fs::canonicalize(file)?)
}
