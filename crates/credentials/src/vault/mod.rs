//! Secrets at rest. Each is sealed with a data key; data keys are wrapped by a key in a file that only its owner can
//! read. Without that file no secret opens and none is destroyed, and the errors contain a remedy.

mod backup;
mod key_file;
mod rotate;
mod seal;

pub use backup::{BACKUP_BYTES_MAX, VaultImport};
pub use key_file::KeyPlace;
pub(crate) use seal::random;

use key_file::KeyList;
use seal::{SealError, SealingKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use store::{RecordStore, StoreError};
use tokio::sync::Mutex;

/// Kinds of records: sealed values by their names, and the one record with the wrapped data keys.
const SECRET: &str = "secret";
const VAULT: &str = "vault";
const KEYS: &str = "keys";

/// Longest value that is sealed: certificates and grants are shorter.
pub const VALUE_BYTES_MAX: usize = 64 << 10;

/// A handle to sealed secrets. Clones share it.
#[derive(Clone)]
pub struct Vault(Arc<VaultInner>);

struct VaultInner {
    records: Arc<dyn RecordStore>,
    place: KeyPlace,
    state: RwLock<VaultState>,
    /// Locked during a change of keys.
    key_change: Mutex<()>,
}

/// Whether secrets can be opened.
#[derive(Clone)]
enum VaultState {
    Open(Arc<OpenKeys>),
    /// The reason and the remedy.
    Locked(String),
}

struct OpenKeys {
    /// The key that wraps the data keys, and its id.
    outer: (String, SealingKey),
    /// Data keys by their ids: two during a rotation.
    data: BTreeMap<String, SealingKey>,
    /// The id of the key that seals new secrets.
    current: String,
}

/// Why a secret could not be read or stored.
#[derive(Debug, Clone, thiserror::Error)]
pub enum VaultError {
    /// The key file is missing or wrong. Nothing was changed.
    #[error("the vault is locked: {0}")]
    Locked(String),
    /// The record does not open with the right key.
    #[error("the secret {0} is damaged; enter it again")]
    Damaged(String),
    /// The value is too long.
    #[error("a secret has {VALUE_BYTES_MAX} bytes at most")]
    TooLong,
    /// A backup that does not open.
    #[error("{0}")]
    Backup(&'static str),
    /// The machine has no randomness, or its disk is full.
    #[error("{0}")]
    Machine(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The state of the vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultStatus {
    /// Why it is locked, and the remedy.
    pub trouble: Option<String>,
    /// The place of its key.
    pub place: KeyPlace,
    /// The id of the key.
    pub key: Option<String>,
    /// The number of its secrets.
    pub n_secrets: usize,
}

/// The record with the data keys, each wrapped.
#[derive(Serialize, Deserialize)]
struct WrappedKeys {
    /// The id of the key that wraps them.
    outer: String,
    current: String,
    keys: BTreeMap<String, String>,
}

/// The record of a secret.
#[derive(Serialize, Deserialize)]
struct SealedSecret {
    key: String,
    sealed: String,
}

impl Vault {
    /// Opens the vault of a store, and creates its keys the first time. A vault that stays locked is returned too: each
    /// of its operations fails with the reason.
    pub async fn open(records: Arc<dyn RecordStore>, place: KeyPlace) -> Result<Self, StoreError> {
        let locked = RwLock::new(VaultState::Locked(String::new()));
        let inner = VaultInner { records, place, state: locked, key_change: Mutex::default() };
        let vault = Self(Arc::new(inner));
        vault.unlock().await?;
        Ok(vault)
    }

    /// Reads the key file again. Returns whether the vault is open.
    pub async fn unlock(&self) -> Result<bool, StoreError> {
        let _changing = self.0.key_change.lock().await;
        let state = match self.load_keys().await {
            Ok(opened) => VaultState::Open(Arc::new(opened)),
            Err(VaultError::Store(error)) => return Err(error),
            Err(VaultError::Locked(why)) => VaultState::Locked(why),
            Err(other) => VaultState::Locked(other.to_string()),
        };
        let is_open = matches!(state, VaultState::Open(_));
        if let VaultState::Locked(why) = &state {
            tracing::error!("the vault is locked: {why}");
        }
        self.set_state(state);
        Ok(is_open)
    }

    async fn load_keys(&self) -> Result<OpenKeys, VaultError> {
        let wrapped = self.0.records.get(VAULT, KEYS).await?;
        let outer = match &self.0.place {
            KeyPlace::Memory => None,
            KeyPlace::File(path) => key_file::read(path).map_err(VaultError::Locked)?,
        };
        match (wrapped, outer) {
            (Some(wrapped), Some(outer)) => {
                let keys = unwrap_keys(&wrapped.value, &outer, &self.0.place)?;
                // A rotation was interrupted after its last secret: the old key has nothing left to open.
                if outer.len() > 1 && keys.data.len() == 1 {
                    self.write_file(&vec![keys.outer.clone()])?;
                }
                Ok(keys)
            }
            (Some(_), None) => Err(VaultError::Locked(lost_key_advice(&self.0.place))),
            (None, Some(outer)) => self.create_first_key(outer).await,
            (None, None) => {
                let outer = vec![(key_id()?, SealingKey::random()?)];
                self.write_file(&outer)?;
                self.create_first_key(outer).await
            }
        }
    }

    /// Creates the first data key.
    async fn create_first_key(&self, outer: KeyList) -> Result<OpenKeys, VaultError> {
        let outer = outer.into_iter().next_back().ok_or(VaultError::Backup("there is no key"))?;
        let current = key_id()?;
        let data = BTreeMap::from([(current.clone(), SealingKey::random()?)]);
        let opened = OpenKeys { outer, data, current };
        self.save_keys(&opened).await?;
        Ok(opened)
    }

    fn write_file(&self, keys: &KeyList) -> Result<(), VaultError> {
        match &self.0.place {
            KeyPlace::Memory => Ok(()),
            KeyPlace::File(path) => key_file::write(path, keys).map_err(|error| {
                VaultError::Machine(format!(
                    "{} cannot be written: {}",
                    path.display(),
                    error.kind()
                ))
            }),
        }
    }

    /// Wraps the data keys and writes their record.
    async fn save_keys(&self, opened: &OpenKeys) -> Result<(), VaultError> {
        let (outer, key) = &opened.outer;
        let wrap = |(id, data): (&String, &SealingKey)| {
            Ok((id.clone(), key.seal(&wrap_name(id), &data.reveal())?))
        };
        let keys = opened.data.iter().map(wrap).collect::<Result<_, SealError>>()?;
        let wrapped = WrappedKeys { outer: outer.clone(), current: opened.current.clone(), keys };
        Ok(crate::records::put(&*self.0.records, VAULT, KEYS, &wrapped).await?)
    }

    /// Seals a value under a name, in place of one of the same name.
    pub async fn put(&self, name: &str, value: &str) -> Result<(), VaultError> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(VaultError::TooLong);
        }
        let opened = self.open_keys()?;
        let sealed = opened.sealed(name, value)?;
        Ok(crate::records::put(&*self.0.records, SECRET, name, &sealed).await?)
    }

    /// Opens a value.
    pub async fn get(&self, name: &str) -> Result<Option<String>, VaultError> {
        match self.0.records.get(SECRET, name).await? {
            Some(record) => self.open_keys()?.open(name, &record.value).map(Some),
            None => Ok(None),
        }
    }

    /// Opens and deletes a value. Of concurrent callers, one receives it.
    pub(crate) async fn take(&self, name: &str) -> Result<Option<String>, VaultError> {
        let Some(record) = self.0.records.get(SECRET, name).await? else { return Ok(None) };
        let value = self.open_keys()?.open(name, &record.value)?;
        match self.0.records.remove(SECRET, name, record.version).await {
            Ok(()) => Ok(Some(value)),
            Err(StoreError::Conflict) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a value, also in a locked vault.
    pub async fn remove(&self, name: &str) -> Result<(), VaultError> {
        Ok(crate::records::remove(&*self.0.records, SECRET, name).await?)
    }

    /// The names of secrets that begin with `beginning`.
    pub(crate) async fn names(&self, beginning: &str) -> Result<Vec<String>, VaultError> {
        let all = self.0.records.all(SECRET).await?;
        let names = all.into_iter().map(|record| record.key);
        Ok(names.filter(|name| name.starts_with(beginning)).collect())
    }

    /// The state of the vault.
    pub async fn status(&self) -> Result<VaultStatus, VaultError> {
        let n_secrets = self.0.records.all(SECRET).await?.len();
        let (key, trouble) = match self.open_keys() {
            Ok(opened) => (Some(opened.outer.0.clone()), None),
            Err(VaultError::Locked(why)) => (None, Some(why)),
            Err(other) => (None, Some(other.to_string())),
        };
        Ok(VaultStatus { trouble, place: self.0.place.clone(), key, n_secrets })
    }

    fn open_keys(&self) -> Result<Arc<OpenKeys>, VaultError> {
        match &*self.0.state.read().unwrap_or_else(PoisonError::into_inner) {
            VaultState::Open(opened) => Ok(Arc::clone(opened)),
            VaultState::Locked(why) => Err(VaultError::Locked(why.clone())),
        }
    }

    fn set_state(&self, state: VaultState) {
        *self.0.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}

impl OpenKeys {
    fn sealed(&self, name: &str, value: &str) -> Result<SealedSecret, VaultError> {
        let key = self.current.clone();
        let data = self.data.get(&key).ok_or_else(|| VaultError::Damaged(name.to_owned()))?;
        Ok(SealedSecret { sealed: data.seal(&secret_name(name), value)?, key })
    }

    fn open(&self, name: &str, record: &str) -> Result<String, VaultError> {
        let damaged = || VaultError::Damaged(name.to_owned());
        let sealed: SealedSecret = serde_json::from_str(record).map_err(|_| damaged())?;
        let key = self.data.get(&sealed.key).ok_or_else(damaged)?;
        let value = key.open(&secret_name(name), &sealed.sealed).map_err(|_| damaged())?;
        Ok(value)
    }
}

impl From<SealError> for VaultError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Random => Self::Machine("this machine gives no randomness".into()),
            SealError::Wrong => Self::Backup("it does not open"),
        }
    }
}

fn unwrap_keys(record: &str, outer: &KeyList, place: &KeyPlace) -> Result<OpenKeys, VaultError> {
    let wrapped: WrappedKeys = serde_json::from_str(record)
        .map_err(|_| StoreError::Damaged("the record of the vault's keys cannot be read".into()))?;
    let wrong = || VaultError::Locked(wrong_key_advice(&wrapped.outer, outer, place));
    let key = outer.iter().find(|(id, _)| *id == wrapped.outer).ok_or_else(wrong)?;
    let open = |(id, sealed): (&String, &String)| {
        let opened = key.1.open(&wrap_name(id), sealed).map_err(|_| wrong())?;
        Ok((id.clone(), SealingKey::parse(&opened).ok_or_else(wrong)?))
    };
    let data = wrapped.keys.iter().map(open).collect::<Result<_, VaultError>>()?;
    Ok(OpenKeys { outer: key.clone(), data, current: wrapped.current.clone() })
}

fn lost_key_advice(place: &KeyPlace) -> String {
    match place {
        KeyPlace::File(path) => format!(
            "its key file {} is missing. Put the file back from a backup. Nothing was deleted; without it, remove the \
             connections and enter their secrets anew, or `airlock vault import` an export into a new data directory",
            path.display()
        ),
        KeyPlace::Memory => "its key was never stored".into(),
    }
}

fn wrong_key_advice(wanted: &str, found: &KeyList, place: &KeyPlace) -> String {
    let found: Vec<_> = found.iter().map(|(id, _)| id.as_str()).collect();
    let file = match place {
        KeyPlace::File(path) => path.display().to_string(),
        KeyPlace::Memory => "memory".into(),
    };
    format!(
        "{file} holds the key {}, and the secrets were sealed with {wanted}. Put the right file in its place. Nothing \
         was deleted",
        found.join(", ")
    )
}

/// The id of a key is short: people compare it with that in a file.
fn key_id() -> Result<String, SealError> {
    let bytes: [u8; 4] = random()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn wrap_name(id: &str) -> String {
    format!("airlock data key {id}")
}

fn secret_name(name: &str) -> String {
    format!("airlock secret {name}")
}

#[cfg(test)]
mod tests;
