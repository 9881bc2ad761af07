//! The text files of the repository. Does not use git: a fresh machine may have none.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// A text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceFile {
    /// Relative to the root, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
}

/// Names with foreign content; `.git` is a file in a linked worktree.
const FOREIGN: [&str; 3] = [".git", "target", "node_modules"];

/// Larger files are data, not text that a reviewer reads.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Every text file below `root`, by path.
pub(super) fn read(root: &Path) -> Result<Vec<SourceFile>> {
    let mut files = vec![];
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if FOREIGN.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && entry.metadata()?.len() <= FILE_BYTES_MAX {
                files.extend(read_text(root, &entry.path())?);
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Reads a file, unless it is not text or was just deleted.
fn read_text(root: &Path, path: &Path) -> Result<Option<SourceFile>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why).with_context(|| format!("read {}", path.display())),
    };
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    let from_root = path.strip_prefix(root).expect("the walk stays below the root");
    let path = from_root.to_string_lossy().replace('\\', "/");
    Ok(Some(SourceFile { path, text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_finds_itself_and_nothing_foreign() {
        let files = read(&crate::cargo::root()).unwrap();
        assert!(files.iter().any(|file| file.path == "xtask/src/tidy/tree.rs"));
        assert!(!files.iter().any(|file| file.path.starts_with("target/")));
    }
}
