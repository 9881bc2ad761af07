//! Project files that a person trusted: one record per path in the data directory, with the text that was trusted.

use crate::config::ConfigDocument;
use crate::named_files::named_files;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The folder of the records within the data directory.
const FOLDER: &str = "trusted";

/// A project's file in the version that a person trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    /// The file.
    pub path: PathBuf,
    /// SHA-256 of the trusted text, in hexadecimal.
    pub sha256: String,
    /// The trusted text: it remains in effect after the file has changed.
    pub text: String,
    /// SHA-256 of the files of the project that the text names, by path.
    #[serde(default)]
    pub files: BTreeMap<PathBuf, String>,
    /// Who trusted it.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

impl TrustedFile {
    /// A file with this text, trusted now with the present contents of the files that it names.
    pub fn new(path: &Path, text: &str, by: &str, at: i64) -> Result<Self, String> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let files = named_files(&ConfigDocument::parse(text)?, folder)?;
        let (path, sha256) = (path.to_owned(), digest(text.as_bytes()));
        Ok(Self { path, sha256, text: text.to_owned(), files, by: by.to_owned(), at })
    }

    /// The first file that the trusted text names and that has changed; none if no file has.
    pub fn changed_file(&self) -> Result<Option<PathBuf>, String> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let present = named_files(&ConfigDocument::parse(&self.text)?, folder)?;
        let changed =
            present.into_iter().find(|(path, sha256)| self.files.get(path) != Some(sha256));
        Ok(changed.map(|(path, _)| path))
    }

    /// The record of a file, in this data directory.
    pub fn record_path(data_dir: &Path, path: &Path) -> PathBuf {
        let name = digest(path.as_os_str().as_encoded_bytes());
        data_dir.join(FOLDER).join(format!("{name}.json"))
    }

    /// The trusted version of a file; none if no version was trusted.
    pub fn load(data_dir: &Path, path: &Path) -> Result<Option<Self>, String> {
        let record = Self::record_path(data_dir, path);
        let failed = |why: String| format!("{} cannot be read: {why}", record.display());
        let text = match std::fs::read_to_string(&record) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.kind().to_string())),
        };
        let trusted: Self =
            serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        match trusted.path == path && trusted.is_of(&trusted.text) {
            true => Ok(Some(trusted)),
            false => Err(failed("its digest does not match its text".into())),
        }
    }

    /// Records it. It is on the disk when this returns.
    pub fn save(&self, data_dir: &Path) -> io::Result<()> {
        let record = Self::record_path(data_dir, &self.path);
        let folder = data_dir.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let partial = record.with_extension("new");
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        file.write_all(serde_json::to_string(self)?.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&partial, &record)?;
        std::fs::File::open(&folder)?.sync_all()
    }

    /// Removes the record of a file; false if there was none.
    pub fn remove_trust(data_dir: &Path, path: &Path) -> io::Result<bool> {
        match std::fs::remove_file(Self::record_path(data_dir, path)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether this text is the version that was trusted.
    pub fn is_of(&self, text: &str) -> bool {
        self.sha256 == digest(text.as_bytes())
    }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_record_is_of_one_path_and_one_text_and_only_its_owner_can_read_it() {
        const TEXT: &str = "limits.calls_max = 1";
        let dir = tempfile::tempdir().unwrap();
        let path = Path::new("/p/airlock.toml");
        assert_eq!(TrustedFile::load(dir.path(), path), Ok(None));
        let trusted = TrustedFile::new(path, TEXT, "ann", 7).unwrap();
        trusted.save(dir.path()).unwrap();
        assert_eq!(TrustedFile::load(dir.path(), path), Ok(Some(trusted.clone())));
        assert!(trusted.is_of(TEXT) && !trusted.is_of("# another"));
        assert_eq!(TrustedFile::load(dir.path(), Path::new("/q/airlock.toml")), Ok(None));
        let record = TrustedFile::record_path(dir.path(), path);
        assert_eq!(std::fs::metadata(&record).unwrap().permissions().mode() & 0o777, 0o600);
        let edited =
            serde_json::to_string(&trusted).unwrap().replace("calls_max = 1", "calls_max = 2");
        std::fs::write(&record, edited).unwrap();
        assert!(TrustedFile::load(dir.path(), path).is_err());
        assert_eq!(TrustedFile::remove_trust(dir.path(), path).ok(), Some(true));
    }
}
