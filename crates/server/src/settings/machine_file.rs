//! The settings that refer to this machine: one JSON file in the data directory, readable by its owner only, and
//! replaced as a whole.

use super::records::StoredSetting;
use super::rules::SettingName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The file's name within the data directory.
pub const MACHINE_FILE: &str = "settings.json";

/// Maximum size of the file, which has eleven settings.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The version of the file's format. A file of a later version is refused.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct MachineFileContents {
    format: u32,
    settings: BTreeMap<String, StoredSetting>,
}

/// Reads the file; empty if there is none. A file that cannot be parsed is an error: a server that ignored it would
/// run without its settings.
pub(super) fn read(data_dir: &Path) -> io::Result<BTreeMap<SettingName, StoredSetting>> {
    let mut text = String::new();
    match File::open(data_dir.join(MACHINE_FILE)) {
        Ok(file) => file.take(FILE_BYTES_MAX).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let contents: MachineFileContents =
        serde_json::from_str(&text).map_err(|error| wrong(format!("it is damaged: {error}")))?;
    if contents.format != FORMAT {
        return Err(wrong(format!(
            "it has format {}, and this program knows {FORMAT}",
            contents.format
        )));
    }
    let read =
        |(name, setting): (String, StoredSetting)| Ok((name.parse().map_err(wrong)?, setting));
    contents.settings.into_iter().map(read).collect()
}

/// Replaces the file. It is synced to disk when this returns.
pub(super) fn write(
    data_dir: &Path,
    settings: &BTreeMap<SettingName, StoredSetting>,
) -> io::Result<()> {
    let named = settings.iter().map(|(name, setting)| (name.name().to_owned(), setting.clone()));
    let contents = MachineFileContents { format: FORMAT, settings: named.collect() };
    let text = serde_json::to_string_pretty(&contents)?;
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir)?;
    let partial = data_dir.join(format!("{MACHINE_FILE}.new"));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&partial, data_dir.join(MACHINE_FILE))?;
    File::open(data_dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::rules::SettingValue;
    use lifecycle::Timestamp;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_written_is_read_and_only_its_owner_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_empty());
        let (value, by) = (SettingValue::from("/k"), "test".to_owned());
        let setting = StoredSetting { value, by, at: Timestamp(7) };
        let settings = BTreeMap::from([(SettingName::VaultKey, setting)]);
        write(dir.path(), &settings).unwrap();
        assert_eq!(read(dir.path()).unwrap(), settings);
        let path = dir.path().join(MACHINE_FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for bad in ["", "{}", r#"{"format":2,"settings":{}}"#] {
            std::fs::write(&path, bad).unwrap();
            assert_eq!(read(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData, "{bad}");
        }
    }
}
