//! One process owns a data directory. The lock file names its pid, a note (its URL), and whether a client started it.

use super::format::OpenError;
use crate::StoreError;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LOCK_FILE: &str = "owner.lock";

/// Maximum length of a note: a URL and a few words.
const NOTE_BYTES_MAX: usize = 4_096;

/// A process that looks up the owner holds the lock for a moment; an opener that finds it locked retries.
const LOOKS_MAX: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// The lock on a data directory; dropping it releases the directory.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    file: File,
    is_client_started: AtomicBool,
}

/// The third line of the lock file of a server that a client verb started.
const CLIENT_STARTED: &str = "started by a client";

/// The process that owns a data directory, as its lock file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryOwner {
    /// The process id, in the owner's PID namespace.
    pub pid: u32,
    /// Its note, usually the URL where it listens; empty until the owner has set one.
    pub note: String,
    /// Whether a client verb started it, rather than an operator.
    pub is_client_started: bool,
}

impl DirectoryLock {
    /// Creates the directory if necessary and locks it.
    pub(super) fn take(dir: &Path) -> Result<Self, OpenError> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(StoreError::from)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(dir.join(LOCK_FILE))
            .map_err(StoreError::from)?;
        for _ in 0..LOOKS_MAX {
            match file.try_lock() {
                Ok(()) => {
                    let owner = Self { file, is_client_started: AtomicBool::new(false) };
                    // A store on a full disk can still be read.
                    if let Err(error) = owner.set_note("") {
                        tracing::warn!(%error, "could not write down who owns the data directory");
                    }
                    return Ok(owner);
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_LOOKS),
                Err(TryLockError::Error(error)) => return Err(StoreError::from(error).into()),
            }
        }
        Err(OpenError::Owned { note: read_note(&file) })
    }

    /// Writes the pid and `note` where other processes can read them.
    pub(super) fn set_note(&self, note: &str) -> Result<(), StoreError> {
        let note: String = note.chars().take(NOTE_BYTES_MAX / 4).collect();
        let starter = match self.is_client_started.load(Ordering::Relaxed) {
            true => format!("\n{CLIENT_STARTED}"),
            false => String::new(),
        };
        let text = format!("{}\n{note}{starter}", std::process::id());
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        Ok(file.write_all(text.as_bytes())?)
    }

    /// Records that a client verb started this process: an operator's server may replace it.
    pub(super) fn mark_client_started(&self) -> Result<(), StoreError> {
        self.is_client_started.store(true, Ordering::Relaxed);
        self.set_note("")
    }
}

/// The process that owns `dir` now; `None` when no process does, or when its lock file cannot be read.
pub fn directory_owner(dir: &Path) -> Option<DirectoryOwner> {
    let file = File::open(dir.join(LOCK_FILE)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => parsed(&text_of(&file)),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// The lock file's path within a data directory: its owner has it open.
pub fn lock_file(dir: &Path) -> std::path::PathBuf {
    dir.join(LOCK_FILE)
}

fn parsed(text: &str) -> Option<DirectoryOwner> {
    let mut lines = text.lines();
    let pid = lines.next()?.parse().ok()?;
    let note = lines.next().unwrap_or_default().to_owned();
    let is_client_started = lines.next() == Some(CLIENT_STARTED);
    Some(DirectoryOwner { pid, note, is_client_started })
}

/// The note of the process that owns `dir` now, or `process <pid>` while it has set none; `None` if no process does.
pub fn owner_of(dir: &Path) -> Option<String> {
    let file = File::open(dir.join(LOCK_FILE)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(read_note(&file)),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

fn read_note(file: &File) -> String {
    match parsed(&text_of(file)) {
        Some(owner) if owner.note.is_empty() => format!("process {}", owner.pid),
        Some(owner) => owner.note,
        None => "another process".to_owned(),
    }
}

fn text_of(mut file: &File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| {
        file.take(u64::try_from(NOTE_BYTES_MAX).unwrap_or(u64::MAX)).read_to_string(&mut text)
    });
    if read.is_err() {
        text.clear();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_has_one_owner_and_says_which() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("new/data");
        assert_eq!(owner_of(&dir), None);

        let owner = DirectoryLock::take(&dir).unwrap();
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(owner_of(&dir), Some(format!("process {}", std::process::id())));

        owner.set_note("http://127.0.0.1:4788").unwrap();
        let refused = DirectoryLock::take(&dir).unwrap_err();
        assert!(matches!(&refused, OpenError::Owned { note } if note == "http://127.0.0.1:4788"));

        let expected = |note: &str, is_client_started| {
            let note = note.to_owned();
            Some(DirectoryOwner { pid: std::process::id(), note, is_client_started })
        };
        assert_eq!(directory_owner(&dir), expected("http://127.0.0.1:4788", false));
        owner.mark_client_started().unwrap();
        assert_eq!(directory_owner(&dir), expected("", true));
        assert_eq!(owner_of(&dir), Some(format!("process {}", std::process::id())));
        owner.set_note("http://127.0.0.1:4788").unwrap();
        assert_eq!(directory_owner(&dir), expected("http://127.0.0.1:4788", true));
        assert_eq!(owner_of(&dir).as_deref(), Some("http://127.0.0.1:4788"));

        drop(owner);
        assert_eq!(owner_of(&dir), None);
        assert_eq!(directory_owner(&dir), None);
        DirectoryLock::take(&dir).unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_refused() {
        let refused = DirectoryLock::take(Path::new("/sys/airlock-test")).unwrap_err();
        assert!(matches!(refused, OpenError::Store(StoreError::ReadOnly)), "{refused:?}");
    }
}
