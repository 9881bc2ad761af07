//! The file with the key that wraps all other keys. Only its owner may read it.

use super::seal::SealingKey;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Largest file that is read: it holds two keys at most.
const FILE_BYTES_MAX: u64 = 4_096;

/// First word of each line.
const WORD: &str = "airlock-vault-key";

/// Keys by their ids, the newest last. Two during a rotation.
pub(super) type KeyList = Vec<(String, SealingKey)>;

/// The place of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPlace {
    /// In this file.
    File(PathBuf),
    /// In memory: secrets can be opened only while this process lives.
    Memory,
}

/// Reads the keys; none if there is no file. Errors contain a remedy.
pub(super) fn read(path: &Path) -> Result<Option<KeyList>, String> {
    let shown = path.display();
    let mut file = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{shown} cannot be read: {}", error.kind())),
    };
    let seen = file.metadata().map_err(|error| format!("{shown}: {}", error.kind()))?;
    if seen.mode() & 0o077 != 0 {
        let mode = seen.mode() & 0o777;
        return Err(format!(
            "others on this machine may read {shown} (mode {mode:o}). Say `chmod 600 {shown}`, and then `airlock vault rotate`"
        ));
    }
    let mut text = String::new();
    let read = (&mut file).take(FILE_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| format!("{shown} cannot be read: {}", error.kind()))?;
    match parse(&text) {
        Some(keys) => Ok(Some(keys)),
        None => Err(format!("{shown} is no key file of a vault")),
    }
}

/// Writes the keys atomically.
pub(super) fn write(path: &Path, keys: &KeyList) -> io::Result<()> {
    let partial = path.with_extension("new");
    // A partial file of a crash may be replaced.
    drop(fs::remove_file(&partial));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?;
    for (id, key) in keys {
        writeln!(file, "{WORD} {id} {}", key.reveal())?;
    }
    file.sync_all()?;
    fs::rename(&partial, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn parse(text: &str) -> Option<KeyList> {
    let mut keys = BTreeMap::new();
    let mut order = vec![];
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (word, id, key) = (words.next()?, words.next()?, words.next()?);
        if word != WORD || words.next().is_some() {
            return None;
        }
        order.push(id.to_owned());
        keys.insert(id.to_owned(), SealingKey::parse(key)?);
    }
    let keys: KeyList = order.into_iter().filter_map(|id| keys.remove_entry(&id)).collect();
    (!keys.is_empty()).then_some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_key_file_is_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vault.key");
        assert_eq!(read(&path), Ok(None));
        let keys = vec![("k1".to_owned(), SealingKey::random().unwrap())];
        write(&path, &keys).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(read(&path), Ok(Some(keys)));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read(&path).unwrap_err().contains("chmod 600"));
    }

    #[test]
    fn what_is_no_key_file_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vault.key");
        for text in ["", "hello", "airlock-vault-key k1 AAAA", "airlock-vault-key k1"] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(read(&path).unwrap_err().ends_with("is no key file of a vault"), "{text}");
        }
    }
}
