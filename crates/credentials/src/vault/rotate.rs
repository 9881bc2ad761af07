//! Key rotation. After a crash between two steps every secret is still readable, and the rotation can be repeated.

use super::seal::SealingKey;
use super::{OpenKeys, SECRET, SealedSecret, Vault, VaultError, VaultState, key_id};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::StoreError;

/// Attempts to update a record that is written concurrently.
const TRIES_MAX: usize = 8;

impl Vault {
    /// Creates a new outer key and a new data key, and seals every secret again. Returns the number of secrets.
    pub async fn rotate(&self) -> Result<usize, VaultError> {
        let _changing = self.0.key_change.lock().await;
        let before = self.open_keys()?;
        let outer = (key_id()?, SealingKey::random()?);
        // First write both keys to the file: until the record below is written, the old one is in use.
        self.write_file(&vec![before.outer.clone(), outer.clone()])?;
        let current = key_id()?;
        let mut data = before.data.clone();
        data.insert(current.clone(), SealingKey::random()?);
        let both = OpenKeys { outer: outer.clone(), data, current: current.clone() };
        self.save_keys(&both).await?;
        let both = Arc::new(both);
        self.set_state(VaultState::Open(Arc::clone(&both)));
        let mut n_secrets = 0;
        for record in self.0.records.all(SECRET).await? {
            n_secrets += 1;
            self.reseal(&both, &record.key).await?;
        }
        // Nothing needs the old keys any more.
        let new = BTreeMap::from_iter(
            both.data.get_key_value(&current).map(|(id, key)| (id.clone(), key.clone())),
        );
        let alone = OpenKeys { outer: outer.clone(), data: new, current };
        self.save_keys(&alone).await?;
        self.set_state(VaultState::Open(Arc::new(alone)));
        self.write_file(&vec![outer])?;
        Ok(n_secrets)
    }

    /// Seals one secret with the current key, unless it is sealed with it or was deleted.
    async fn reseal(&self, opened: &OpenKeys, name: &str) -> Result<(), VaultError> {
        for _ in 0..TRIES_MAX {
            let Some(record) = self.0.records.get(SECRET, name).await? else { return Ok(()) };
            let sealed: SealedSecret = serde_json::from_str(&record.value)
                .map_err(|_| VaultError::Damaged(name.to_owned()))?;
            if sealed.key == opened.current {
                return Ok(());
            }
            let value = opened.open(name, &record.value)?;
            let sealed = serde_json::to_string(&opened.sealed(name, &value)?)
                .map_err(|error| StoreError::Other(error.to_string()))?;
            match self.0.records.put(SECRET, name, sealed, record.version).await {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(VaultError::Machine(format!("the secret {name} changes all the time; try again")))
    }
}
