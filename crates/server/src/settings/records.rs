//! Reads and writes settings: records in the store and the machine's file, and the history of their changes.

use super::machine_file;
use super::rules::{SettingName, SettingValue};
use lifecycle::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use store::sqlite::{OpenError, SqliteStore};
use store::{RecordStore, StoreError, StoredRecord};

/// The kinds of records.
const SETTING: &str = "setting";
const CHANGE: &str = "setting_change";

/// Maximum number of changes in the history; the oldest are removed first.
const CHANGES_MAX: usize = 1_000;

/// A setting as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSetting {
    /// Its value.
    pub value: SettingValue,
    /// Who set it.
    pub by: String,
    /// When it was set.
    pub at: Timestamp,
}

/// One change, as the history records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// The setting's name.
    pub name: String,
    /// Its value before; none if it had none.
    pub old: Option<SettingValue>,
    /// Its value after the change.
    pub new: SettingValue,
    /// Who changed it.
    pub by: String,
    /// When it was changed.
    pub at: Timestamp,
}

/// The author and the time of a change.
#[derive(Debug, Clone)]
pub struct SettingAuthor {
    /// A token's name, or the command and the account that ran it.
    pub by: String,
    /// The time of the change.
    pub at: Timestamp,
}

/// Why settings could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The machine's file could not be read or written.
    #[error("use the settings file {0}: {1}")]
    File(PathBuf, io::Error),
    /// A record has a format that this program does not know.
    #[error("read the recorded setting {0}; nothing was changed")]
    Unreadable(String),
    /// The value or the change is invalid.
    #[error("{0}")]
    Refused(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The data directory cannot be read.
    #[error(transparent)]
    Directory(#[from] OpenError),
}

/// Every recorded setting.
pub async fn read_settings(
    records: &dyn RecordStore,
    data_dir: &Path,
) -> Result<BTreeMap<SettingName, StoredSetting>, SettingsError> {
    let stored = records.all(SETTING).await?;
    merged(&stored, data_dir)
}

/// Reads the settings without owning the directory: a server may have it open. Blocks for a millisecond.
pub fn look_up_settings(
    data_dir: &Path,
) -> Result<BTreeMap<SettingName, StoredSetting>, SettingsError> {
    merged(&SqliteStore::read_records(data_dir, SETTING)?, data_dir)
}

fn merged(
    stored: &[StoredRecord],
    data_dir: &Path,
) -> Result<BTreeMap<SettingName, StoredSetting>, SettingsError> {
    let mut settings = read_file(data_dir)?;
    for record in stored {
        let unreadable = || SettingsError::Unreadable(record.key.clone());
        let name: SettingName = record.key.parse().map_err(|_| unreadable())?;
        let setting = serde_json::from_str(&record.value).map_err(|_| unreadable())?;
        settings.insert(name, setting);
    }
    Ok(settings)
}

fn read_file(data_dir: &Path) -> Result<BTreeMap<SettingName, StoredSetting>, SettingsError> {
    let failed = |error| SettingsError::File(data_dir.join(machine_file::MACHINE_FILE), error);
    machine_file::read(data_dir).map_err(failed)
}

/// Records new values, each with its entry in the history. Everything is synced to disk when this returns.
pub async fn write_settings(
    records: &dyn RecordStore,
    data_dir: &Path,
    values: &[(SettingName, SettingValue)],
    author: &SettingAuthor,
) -> Result<(), SettingsError> {
    let before = read_settings(records, data_dir).await?;
    for (name, value) in values {
        // The history is written first: a change without its entry would be unexplained.
        let change = SettingChange {
            name: name.name().to_owned(),
            old: before.get(name).map(|setting| setting.value.clone()),
            new: value.clone(),
            by: author.by.clone(),
            at: author.at,
        };
        append_change(records, &change).await?;
        if !name.is_of_machine() {
            let text = written(&stored(value, author));
            let version = records.get(SETTING, name.name()).await?.map_or(0, |old| old.version);
            records.put(SETTING, name.name(), text, version).await?;
        }
        tracing::info!(setting = %name, %value, by = author.by, "a setting was changed");
    }
    if values.iter().any(|(name, _)| name.is_of_machine()) {
        let mut file = read_file(data_dir)?;
        let of_machine = values.iter().filter(|(name, _)| name.is_of_machine());
        file.extend(of_machine.map(|(name, value)| (*name, stored(value, author))));
        let failed = |error| SettingsError::File(data_dir.join(machine_file::MACHINE_FILE), error);
        machine_file::write(data_dir, &file).map_err(failed)?;
    }
    Ok(())
}

fn stored(value: &SettingValue, author: &SettingAuthor) -> StoredSetting {
    StoredSetting { value: value.clone(), by: author.by.clone(), at: author.at }
}

fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers can be written as JSON")
}

/// Keys are numbers of fixed width, so that their order is the order of the changes.
async fn append_change(
    records: &dyn RecordStore,
    change: &SettingChange,
) -> Result<(), StoreError> {
    let all = records.all(CHANGE).await?;
    let last = all.last().and_then(|record| record.key.parse::<u64>().ok()).unwrap_or(0);
    records.put(CHANGE, &format!("{:020}", last + 1), written(change), 0).await?;
    let n_gone = (all.len() + 1).saturating_sub(CHANGES_MAX);
    for record in all.into_iter().take(n_gone) {
        records.remove(CHANGE, &record.key, record.version).await?;
    }
    Ok(())
}

/// Returns the changes of settings, the oldest first.
pub async fn read_history(records: &dyn RecordStore) -> Result<Vec<SettingChange>, SettingsError> {
    let read = |record: &StoredRecord| {
        serde_json::from_str(&record.value)
            .map_err(|_| SettingsError::Unreadable(format!("change {}", record.key)))
    };
    records.all(CHANGE).await?.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn author(at: i64) -> SettingAuthor {
        SettingAuthor { by: "ann".into(), at: Timestamp(at) }
    }

    #[tokio::test]
    async fn settings_of_the_service_are_records_and_those_of_the_machine_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        let values =
            [(SettingName::Answers, "client".into()), (SettingName::VaultKey, "/k".into())];
        write_settings(&store, dir.path(), &values, &author(1)).await.unwrap();
        let file = read_file(dir.path()).unwrap();
        assert_eq!(file.keys().copied().collect::<Vec<_>>(), [SettingName::VaultKey]);
        let read = read_settings(&store, dir.path()).await.unwrap();
        assert_eq!(read[&SettingName::Answers], stored(&"client".into(), &author(1)));
        assert_eq!(look_up_settings(dir.path()).unwrap(), read);
        let values = [(SettingName::Answers, "person".into())];
        write_settings(&store, dir.path(), &values, &author(2)).await.unwrap();
        let history = read_history(&store).await.unwrap();
        let last = history.last().unwrap();
        assert_eq!((history.len(), last.by.as_str(), last.at), (3, "ann", Timestamp(2)));
        assert_eq!((&last.old, &last.new), (&Some("client".into()), &"person".into()));
        store.close().await;
    }

    #[tokio::test]
    async fn a_record_that_cannot_be_understood_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        store.put(SETTING, "answers", "{}".into(), 0).await.unwrap();
        let refused = read_settings(&store, dir.path()).await.unwrap_err();
        assert!(matches!(refused, SettingsError::Unreadable(name) if name == "answers"));
        store.close().await;
    }

    #[tokio::test]
    async fn the_history_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::temporary().unwrap();
        let change = SettingChange {
            name: "answers".into(),
            old: None,
            new: "person".into(),
            by: "ann".into(),
            at: Timestamp(0),
        };
        for n in 1..=CHANGES_MAX {
            store.put(CHANGE, &format!("{n:020}"), written(&change), 0).await.unwrap();
        }
        let values = [(SettingName::Answers, "client".into())];
        write_settings(&store, dir.path(), &values, &author(5)).await.unwrap();
        let history = read_history(&store).await.unwrap();
        assert_eq!((history.len(), history.last().unwrap().at), (CHANGES_MAX, Timestamp(5)));
        store.close().await;
    }
}
