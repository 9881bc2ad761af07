//! Secrets at rest. Each is sealed with a data key; data keys are wrapped by a key in a file that only its owner can
//! read. Without that file nothing opens, nothing is destroyed, and whoever asks is told what to do.

mod backup;
mod key_file;
mod rotate;
mod seal;

pub use backup::{BACKUP_BYTES_MAX, Imported};
pub use key_file::KeyPlace;
pub(crate) use seal::random;

use key_file::Keys;
use seal::{Key, SealError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use store::{Records, StoreError};
use tokio::sync::Mutex;

/// Kinds of records: sealed values by their names, and the one record with the wrapped data keys.
const SECRET: &str = "secret";
const VAULT: &str = "vault";
const KEYS: &str = "keys";

/// Longest value that is sealed: certificates and grants are shorter.
pub const VALUE_BYTES_MAX: usize = 64 << 10;

/// A handle to sealed secrets. Clones share it.
#[derive(Clone)]
pub struct Vault(Arc<Inner>);

struct Inner {
    records: Arc<dyn Records>,
    place: KeyPlace,
    door: RwLock<Door>,
    /// One change of keys at a time.
    changing: Mutex<()>,
}

/// Whether secrets can be opened.
#[derive(Clone)]
enum Door {
    Open(Arc<Opened>),
    /// What to do about it.
    Locked(String),
}

struct Opened {
    /// What wraps the data keys, and its id.
    outer: (String, Key),
    /// Data keys by their ids: two while they are being changed.
    data: BTreeMap<String, Key>,
    /// The one that new secrets are sealed with.
    current: String,
}

/// Why a secret was not to be had or to be kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum VaultError {
    /// The key is lost or wrong. Nothing was changed.
    #[error("the vault is locked: {0}")]
    Locked(String),
    /// It does not open with the right key.
    #[error("the secret {0} is damaged; enter it anew")]
    Damaged(String),
    /// More than is kept.
    #[error("a secret has {VALUE_BYTES_MAX} bytes at most")]
    TooLong,
    /// A backup that does not open.
    #[error("{0}")]
    Backup(&'static str),
    /// The machine gives no randomness, or its disk no room.
    #[error("{0}")]
    Machine(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How the vault is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultStatus {
    /// Why it is locked, and what to do.
    pub trouble: Option<String>,
    /// Where its key is kept: a file's path, or nowhere.
    pub place: KeyPlace,
    /// Which key that is.
    pub key: Option<String>,
    /// How many secrets it holds.
    pub n_secrets: usize,
}

/// The record with the data keys, each wrapped.
#[derive(Serialize, Deserialize)]
struct Wrapped {
    /// Which key wraps them.
    outer: String,
    current: String,
    keys: BTreeMap<String, String>,
}

/// The record of a secret.
#[derive(Serialize, Deserialize)]
struct Sealed {
    key: String,
    sealed: String,
}

impl Vault {
    /// Opens the vault of a store; the first time makes its keys. One that stays locked is a vault nonetheless: it
    /// says why whenever something is wanted of it.
    pub async fn open(records: Arc<dyn Records>, place: KeyPlace) -> Result<Self, StoreError> {
        let locked = RwLock::new(Door::Locked(String::new()));
        let inner = Inner { records, place, door: locked, changing: Mutex::default() };
        let vault = Self(Arc::new(inner));
        vault.unlock().await?;
        Ok(vault)
    }

    /// Looks for the key again. Says whether the vault is open now.
    pub async fn unlock(&self) -> Result<bool, StoreError> {
        let _changing = self.0.changing.lock().await;
        let door = match self.opened().await {
            Ok(opened) => Door::Open(Arc::new(opened)),
            Err(VaultError::Store(error)) => return Err(error),
            Err(VaultError::Locked(why)) => Door::Locked(why),
            Err(other) => Door::Locked(other.to_string()),
        };
        let is_open = matches!(door, Door::Open(_));
        if let Door::Locked(why) = &door {
            tracing::error!("the vault is locked: {why}");
        }
        self.set(door);
        Ok(is_open)
    }

    async fn opened(&self) -> Result<Opened, VaultError> {
        let kept = self.0.records.get(VAULT, KEYS).await?;
        let outer = match &self.0.place {
            KeyPlace::Memory => None,
            KeyPlace::File(path) => key_file::read(path).map_err(VaultError::Locked)?,
        };
        match (kept, outer) {
            (Some(kept), Some(outer)) => {
                let opened = unwrapped(&kept.value, &outer, &self.0.place)?;
                // A change of keys was cut off after its last secret: the old key has nothing left to open.
                if outer.len() > 1 && opened.data.len() == 1 {
                    self.write_file(&vec![opened.outer.clone()])?;
                }
                Ok(opened)
            }
            (Some(_), None) => Err(VaultError::Locked(lost(&self.0.place))),
            (None, Some(outer)) => self.first(outer).await,
            (None, None) => {
                let outer = vec![(key_id()?, Key::random()?)];
                self.write_file(&outer)?;
                self.first(outer).await
            }
        }
    }

    /// The first data key.
    async fn first(&self, outer: Keys) -> Result<Opened, VaultError> {
        let outer = outer.into_iter().next_back().ok_or(VaultError::Backup("there is no key"))?;
        let current = key_id()?;
        let data = BTreeMap::from([(current.clone(), Key::random()?)]);
        let opened = Opened { outer, data, current };
        self.keep(&opened).await?;
        Ok(opened)
    }

    fn write_file(&self, keys: &Keys) -> Result<(), VaultError> {
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

    /// Wraps the data keys and writes them down.
    async fn keep(&self, opened: &Opened) -> Result<(), VaultError> {
        let (outer, key) = &opened.outer;
        let wrap = |(id, data): (&String, &Key)| {
            Ok((id.clone(), key.seal(&wrap_name(id), &data.reveal())?))
        };
        let keys = opened.data.iter().map(wrap).collect::<Result<_, SealError>>()?;
        let wrapped = Wrapped { outer: outer.clone(), current: opened.current.clone(), keys };
        Ok(crate::kept::put(&*self.0.records, VAULT, KEYS, &wrapped).await?)
    }

    /// Seals a value under a name; one of the same name gives way.
    pub async fn put(&self, name: &str, value: &str) -> Result<(), VaultError> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(VaultError::TooLong);
        }
        let opened = self.door()?;
        let sealed = opened.sealed(name, value)?;
        Ok(crate::kept::put(&*self.0.records, SECRET, name, &sealed).await?)
    }

    /// Opens a value.
    pub async fn get(&self, name: &str) -> Result<Option<String>, VaultError> {
        match self.0.records.get(SECRET, name).await? {
            Some(record) => self.door()?.open(name, &record.value).map(Some),
            None => Ok(None),
        }
    }

    /// Opens a value that can be had once: of those who come at the same time, one gets it.
    pub(crate) async fn take(&self, name: &str) -> Result<Option<String>, VaultError> {
        let Some(record) = self.0.records.get(SECRET, name).await? else { return Ok(None) };
        let value = self.door()?.open(name, &record.value)?;
        match self.0.records.remove(SECRET, name, record.version).await {
            Ok(()) => Ok(Some(value)),
            Err(StoreError::Conflict) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Forgets a value, locked or not.
    pub async fn remove(&self, name: &str) -> Result<(), VaultError> {
        Ok(crate::kept::remove(&*self.0.records, SECRET, name).await?)
    }

    /// Names of what is kept, those that begin so.
    pub(crate) async fn names(&self, beginning: &str) -> Result<Vec<String>, VaultError> {
        let all = self.0.records.all(SECRET).await?;
        let names = all.into_iter().map(|record| record.key);
        Ok(names.filter(|name| name.starts_with(beginning)).collect())
    }

    /// How it is.
    pub async fn status(&self) -> Result<VaultStatus, VaultError> {
        let n_secrets = self.0.records.all(SECRET).await?.len();
        let (key, trouble) = match self.door() {
            Ok(opened) => (Some(opened.outer.0.clone()), None),
            Err(VaultError::Locked(why)) => (None, Some(why)),
            Err(other) => (None, Some(other.to_string())),
        };
        Ok(VaultStatus { trouble, place: self.0.place.clone(), key, n_secrets })
    }

    fn door(&self) -> Result<Arc<Opened>, VaultError> {
        match &*self.0.door.read().unwrap_or_else(PoisonError::into_inner) {
            Door::Open(opened) => Ok(Arc::clone(opened)),
            Door::Locked(why) => Err(VaultError::Locked(why.clone())),
        }
    }

    fn set(&self, door: Door) {
        *self.0.door.write().unwrap_or_else(PoisonError::into_inner) = door;
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}

impl Opened {
    fn sealed(&self, name: &str, value: &str) -> Result<Sealed, VaultError> {
        let key = self.current.clone();
        let data = self.data.get(&key).ok_or_else(|| VaultError::Damaged(name.to_owned()))?;
        Ok(Sealed { sealed: data.seal(&secret_name(name), value)?, key })
    }

    fn open(&self, name: &str, record: &str) -> Result<String, VaultError> {
        let damaged = || VaultError::Damaged(name.to_owned());
        let sealed: Sealed = serde_json::from_str(record).map_err(|_| damaged())?;
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

fn unwrapped(record: &str, outer: &Keys, place: &KeyPlace) -> Result<Opened, VaultError> {
    let wrapped: Wrapped = serde_json::from_str(record)
        .map_err(|_| StoreError::Damaged("the record of the vault's keys cannot be read".into()))?;
    let wrong = || VaultError::Locked(other(&wrapped.outer, outer, place));
    let key = outer.iter().find(|(id, _)| *id == wrapped.outer).ok_or_else(wrong)?;
    let open = |(id, sealed): (&String, &String)| {
        let opened = key.1.open(&wrap_name(id), sealed).map_err(|_| wrong())?;
        Ok((id.clone(), Key::parse(&opened).ok_or_else(wrong)?))
    };
    let data = wrapped.keys.iter().map(open).collect::<Result<_, VaultError>>()?;
    Ok(Opened { outer: key.clone(), data, current: wrapped.current.clone() })
}

fn lost(place: &KeyPlace) -> String {
    match place {
        KeyPlace::File(path) => format!(
            "its key file {} is missing. Put the file back from a backup. Nothing was deleted; without it, remove the \
             connections and enter their secrets anew, or `airlock vault import` an export into a new data directory",
            path.display()
        ),
        KeyPlace::Memory => "its key was never kept".into(),
    }
}

fn other(wanted: &str, found: &Keys, place: &KeyPlace) -> String {
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

/// Names of keys are for people who compare files: short.
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
