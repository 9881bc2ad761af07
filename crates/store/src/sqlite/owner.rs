//! One process owns a data directory, and says who it is.

use super::format::OpenError;
use crate::StoreError;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

const LOCK_FILE: &str = "owner.lock";

/// Longest note that is kept or read: a URL and a few words.
const NOTE_BYTES_MAX: usize = 4_096;

/// Whoever looks up an owner holds the lock for a moment; an opener that meets one looks again.
const LOOKS_MAX: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// The lock on a data directory; dropping it gives the directory up.
#[derive(Debug)]
pub(super) struct Owner {
    file: File,
}

impl Owner {
    /// Creates the directory where there is none and takes it.
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
                    let owner = Self { file };
                    // What is there can be read on a full disk too.
                    if let Err(error) = owner.note("") {
                        tracing::warn!(%error, "could not write down who owns the data directory");
                    }
                    return Ok(owner);
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_LOOKS),
                Err(TryLockError::Error(error)) => return Err(StoreError::from(error).into()),
            }
        }
        Err(OpenError::Owned { note: shown(&file) })
    }

    /// Writes the pid and `note` where others can read them.
    pub(super) fn note(&self, note: &str) -> Result<(), StoreError> {
        let note: String = note.chars().take(NOTE_BYTES_MAX / 4).collect();
        let text = format!("{}\n{note}", std::process::id());
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        Ok(file.write_all(text.as_bytes())?)
    }
}

/// The note of the process that owns `dir` now, or `process <pid>` while it has set none; `None`
/// when nobody does.
pub fn owner_of(dir: &Path) -> Option<String> {
    let file = File::open(dir.join(LOCK_FILE)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(shown(&file)),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

fn shown(mut file: &File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| {
        file.take(u64::try_from(NOTE_BYTES_MAX).unwrap_or(u64::MAX)).read_to_string(&mut text)
    });
    if read.is_err() {
        text.clear();
    }
    match text.split_once('\n') {
        Some((pid, "")) => format!("process {pid}"),
        Some((_, note)) => note.to_owned(),
        None => "another process".to_owned(),
    }
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

        let owner = Owner::take(&dir).unwrap();
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(owner_of(&dir), Some(format!("process {}", std::process::id())));

        owner.note("http://127.0.0.1:4788").unwrap();
        let refused = Owner::take(&dir).unwrap_err();
        assert!(matches!(&refused, OpenError::Owned { note } if note == "http://127.0.0.1:4788"));

        drop(owner);
        assert_eq!(owner_of(&dir), None);
        Owner::take(&dir).unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_refused() {
        let refused = Owner::take(Path::new("/sys/airlock-test")).unwrap_err();
        assert!(matches!(refused, OpenError::Store(StoreError::ReadOnly)), "{refused:?}");
    }
}
