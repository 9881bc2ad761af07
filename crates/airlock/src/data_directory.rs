//! The data directory.

use crate::config_files;
use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// The default directory: `~/.airlock`.
pub(crate) fn usual() -> Option<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute())?;
    Some(home.join(".airlock"))
}

/// The directory that is named, or the default one, as an absolute path. `None` if neither `--data-dir` nor `HOME`
/// names one.
pub(crate) fn absolute(named: Option<&Path>) -> Option<PathBuf> {
    let dir = named.map(Path::to_owned).or_else(usual)?;
    Some(config_files::absolute(&dir))
}

/// Whether files can be created there, now or once it exists. Leaves no file behind.
pub(crate) fn probe(directory: &Path) -> io::Result<()> {
    let existing = directory.ancestors().find(|ancestor| ancestor.exists());
    // An unnamed file: `access` gives a wrong answer on read-only and full file systems.
    tempfile::tempfile_in(existing.unwrap_or(directory)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_does_not_exist_is_judged_by_where_it_would_be() {
        let root = tempfile::tempdir().unwrap();
        assert!(probe(root.path()).is_ok());
        assert!(probe(&root.path().join("a/b/c")).is_ok());
        assert!(probe(Path::new("/proc/airlock")).is_err());
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
