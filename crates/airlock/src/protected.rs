//! Files of the server that no process of a client or a program may use.

use crate::data_directory;
use processes::{ProtectedPaths, ProtectionScope};
use std::path::{Path, PathBuf};

/// The data directory and the key of the vault are hidden, configuration files are read-only. Tokens, client profiles and
/// added sources are in the data directory.
pub(crate) fn protected_paths(
    data_dir: Option<&Path>,
    vault_key: Option<&Path>,
    files: &[PathBuf],
    scope: ProtectionScope,
) -> ProtectedPaths {
    let usual = data_directory::usual();
    let hidden = [data_dir, usual.as_deref(), vault_key];
    let hidden = distinct(hidden.into_iter().flatten());
    // The directory of the user's own file: a file that is replaced would lose its protection.
    let user_file = sources::user_file();
    let read_only = files.iter().map(|file| match &user_file {
        Some(own) if own == file => file.parent().unwrap_or(file),
        Some(_) | None => file.as_path(),
    });
    let is_visible = |path: &PathBuf| !hidden.iter().any(|hidden| path.starts_with(hidden));
    let read_only = distinct(read_only).into_iter().filter(is_visible).collect();
    ProtectedPaths { hidden, read_only, scope }
}

/// Each path once, absolute and without links. The root of the file system cannot be protected.
fn distinct<'a>(paths: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut real: Vec<PathBuf> = paths
        .filter_map(|path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok())
        .filter(|path| path.parent().is_some())
        .collect();
    real.sort();
    real.dedup();
    real
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_nothing_is_named_twice() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (data, link) = (root.join("data"), root.join("link"));
        std::fs::create_dir(&data).unwrap();
        std::os::unix::fs::symlink(&data, &link).unwrap();
        let key = root.join("vault.key");
        let files = [data.join("airlock.toml"), root.join("airlock.toml")];
        let scope = ProtectionScope::EveryProgram;
        let found = protected_paths(Some(&link), Some(&key), &files, scope);
        assert!(found.hidden.contains(&data) && found.hidden.contains(&key));
        assert!(!found.hidden.contains(&link));
        // A hidden path need not be read-only.
        assert_eq!(found.read_only, [root.join("airlock.toml")]);
        let root_only = protected_paths(Some(Path::new("/")), None, &[], scope);
        assert!(!root_only.hidden.contains(&PathBuf::from("/")));
    }
}
