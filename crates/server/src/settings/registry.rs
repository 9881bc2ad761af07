//! The settings of a running server: listed, changed one at a time, and applied immediately if that is possible.

use super::records::{
    SettingAuthor, SettingChange, SettingsError, StoredSetting, read_history, read_settings,
    write_settings,
};
use super::rules::SettingName;
use super::{server_account, shared_account};
use crate::auth;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::RecordStore;
use tokio::sync::Mutex;

/// The settings of a data directory. Clones share them.
#[derive(Clone)]
pub struct SettingsRegistry(Arc<SettingsInner>);

struct SettingsInner {
    records: Arc<dyn RecordStore>,
    data_dir: PathBuf,
    /// Serialises changes.
    changing: Mutex<()>,
}

/// A change that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedSetting {
    /// The name of the setting.
    pub name: SettingName,
    /// Its new record.
    pub setting: StoredSetting,
    /// Whether a running server applies it without a restart.
    pub is_live: bool,
}

impl SettingsRegistry {
    /// The settings in these records and in the file of this directory.
    pub fn new(records: Arc<dyn RecordStore>, data_dir: &Path) -> Self {
        let data_dir = data_dir.to_owned();
        Self(Arc::new(SettingsInner { records, data_dir, changing: Mutex::default() }))
    }

    /// Every recorded setting.
    pub async fn list_settings(
        &self,
    ) -> Result<BTreeMap<SettingName, StoredSetting>, SettingsError> {
        read_settings(&*self.0.records, &self.0.data_dir).await
    }

    /// Returns the recorded changes, the oldest first.
    pub async fn history(&self) -> Result<Vec<SettingChange>, SettingsError> {
        read_history(&*self.0.records).await
    }

    /// Records a new value, stricter or looser: unlike a flag, this is an explicit action.
    pub async fn set(
        &self,
        name: SettingName,
        text: &str,
        author: &SettingAuthor,
    ) -> Result<AppliedSetting, SettingsError> {
        let value = name.parse_value(text).map_err(SettingsError::Refused)?;
        let _changing = self.0.changing.lock().await;
        if name == SettingName::OperatorMode && value.as_text() == "on" {
            self.enter_operator_mode().await?;
        }
        let values = [(name, value.clone())];
        write_settings(&*self.0.records, &self.0.data_dir, &values, author).await?;
        let is_live = matches!(name, SettingName::Answers | SettingName::OperatorMode);
        let setting = StoredSetting { value, by: author.by.clone(), at: author.at };
        Ok(AppliedSetting { name, setting, is_live })
    }

    /// Ends the access of all holders of an admin secret. Refuses if the server could not start afterwards: the
    /// secrets would be revoked for nothing.
    async fn enter_operator_mode(&self) -> Result<(), SettingsError> {
        if let Some(why) = shared_account(&server_account()) {
            return Err(SettingsError::Refused(format!(
                "operator mode needs an account that only the server uses, and {why}. Run the server under an account \
                 of its own, as the systemd unit in docs/operating.md does; nothing was changed"
            )));
        }
        close_admin_access(&*self.0.records, &self.0.data_dir).await
    }
}

/// Replaces the secret of every admin token by one that is not shown, and deletes the file with the first one.
pub async fn close_admin_access(
    records: &dyn RecordStore,
    data_dir: &Path,
) -> Result<(), SettingsError> {
    auth::rotate_admin_tokens(records).await.map_err(|error| {
        SettingsError::Refused(format!("could not rotate the admin tokens: {error}"))
    })?;
    let file = auth::secret_file(data_dir, "admin");
    match std::fs::remove_file(&file) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(SettingsError::File(file, error)),
    }
}

impl std::fmt::Debug for SettingsRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SettingsRegistry")
            .field("data_dir", &self.0.data_dir)
            .finish_non_exhaustive()
    }
}
