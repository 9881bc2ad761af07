//! Blobs as files named by their hash. They are not stored as rows: a large blob would pass through the log, delay every
//! append behind it and be copied twice.

use super::SqliteStore;
use super::trouble::DAMAGED_ADVICE;
use crate::{BlobStore, StoreError};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Maximum size of a blob; blobs are held in memory completely.
const BLOB_BYTES_MAX: usize = 1 << 30;

/// The folder of blobs, and the folder of incomplete ones.
#[derive(Debug, Clone)]
pub(super) struct BlobFolder {
    kept: PathBuf,
    partial: PathBuf,
}

impl BlobFolder {
    /// Creates the folders and removes incomplete files of a crash.
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        let folder = Self { kept: dir.join("blobs"), partial: dir.join("partial") };
        let mut make = fs::DirBuilder::new();
        make.recursive(true).mode(0o700).create(&folder.kept)?;
        make.create(&folder.partial)?;
        for left in fs::read_dir(&folder.partial)? {
            fs::remove_file(left?.path())?;
        }
        Ok(folder)
    }

    /// Stores `bytes`; the name appears only once they are on the disk.
    pub(super) fn put_blob(&self, bytes: &[u8]) -> Result<String, StoreError> {
        if bytes.len() > BLOB_BYTES_MAX {
            return Err(StoreError::Other("a blob is too large".into()));
        }
        let name = name_of(bytes);
        if self.fetch(&name).is_ok_and(|known| known.is_some()) {
            return Ok(name);
        }
        let partial = self.partial.join(&name);
        let kept = write_synced(&partial, bytes).and_then(|()| {
            fs::rename(&partial, self.kept.join(&name))?;
            File::open(&self.kept)?.sync_all()
        });
        if let Err(error) = kept {
            drop(fs::remove_file(&partial));
            return Err(error.into());
        }
        Ok(name)
    }

    /// The bytes of that name, if their hash is correct.
    pub(super) fn fetch(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        if !is_name(name) {
            return Ok(None);
        }
        match fs::read(self.kept.join(name)) {
            Ok(bytes) if name_of(&bytes) == name => Ok(Some(bytes)),
            Ok(_) => Err(StoreError::Damaged(format!("blob {name}: {DAMAGED_ADVICE}"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes them; false if there were none.
    pub(super) fn discard(&self, name: &str) -> Result<bool, StoreError> {
        if !is_name(name) {
            return Ok(false);
        }
        match fs::remove_file(self.kept.join(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut open = File::options();
    let mut file = open.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn name_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut name, byte| {
        write!(name, "{byte:02x}").expect("a String takes everything");
        name
    })
}

/// Names come from outside: any other text could be a path.
fn is_name(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

impl BlobStore for SqliteStore {
    fn put_blob(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String, StoreError>> {
        self.inner.files.run(move |folder| folder.put_blob(&bytes))
    }

    fn fetch(&self, name: &str) -> BoxFuture<'static, Result<Option<Vec<u8>>, StoreError>> {
        let name = name.to_owned();
        self.inner.files.run(move |folder| folder.fetch(&name))
    }

    fn discard(&self, name: &str) -> BoxFuture<'static, Result<bool, StoreError>> {
        let name = name.to_owned();
        self.inner.files.run(move |folder| folder.discard(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_are_kept_once_and_come_back() {
        let temp = tempfile::tempdir().unwrap();
        let folder = BlobFolder::open(temp.path()).unwrap();
        let name = folder.put_blob(b"abc").unwrap();
        assert_eq!(name, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(folder.put_blob(b"abc").unwrap(), name);
        assert_eq!(fs::read_dir(&folder.kept).unwrap().count(), 1);
        assert_eq!(fs::read_dir(&folder.partial).unwrap().count(), 0);
        assert_eq!(folder.fetch(&name).unwrap(), Some(b"abc".to_vec()));
        assert!(folder.discard(&name).unwrap());
        assert!(!folder.discard(&name).unwrap());
        assert_eq!(folder.fetch(&name).unwrap(), None);
    }

    #[test]
    fn a_name_that_could_be_a_path_names_nothing() {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("secret"), "s").unwrap();
        let folder = BlobFolder::open(temp.path()).unwrap();
        for name in ["../secret", "", &"A".repeat(64), &"../secret/".repeat(7)[..64]] {
            assert_eq!(folder.fetch(name).unwrap(), None, "{name}");
            assert!(!folder.discard(name).unwrap(), "{name}");
        }
    }

    #[test]
    fn changed_bytes_are_noticed_and_kept_anew() {
        let temp = tempfile::tempdir().unwrap();
        let folder = BlobFolder::open(temp.path()).unwrap();
        let name = folder.put_blob(b"abc").unwrap();
        fs::write(folder.kept.join(&name), b"abd").unwrap();
        assert!(matches!(folder.fetch(&name), Err(StoreError::Damaged(_))));
        folder.put_blob(b"abc").unwrap();
        assert_eq!(folder.fetch(&name).unwrap(), Some(b"abc".to_vec()));
    }

    #[test]
    fn what_a_crash_left_half_written_is_cleared_away() {
        let temp = tempfile::tempdir().unwrap();
        let folder = BlobFolder::open(temp.path()).unwrap();
        fs::write(folder.partial.join("x"), b"half").unwrap();
        BlobFolder::open(temp.path()).unwrap();
        assert_eq!(fs::read_dir(&folder.partial).unwrap().count(), 0);
    }
}
