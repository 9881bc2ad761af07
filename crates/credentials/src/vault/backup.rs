//! The export of a vault: one text, sealed with a passphrase.

use super::seal::{SealingKey, random};
use super::{SECRET, Vault, VaultError};
use crate::records;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::pbkdf2::{PBKDF2_HMAC_SHA256, derive};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Iterations of the key derivation: the recommendation for SHA-256.
const ROUNDS: NonZeroU32 = NonZeroU32::new(600_000).expect("it is not zero");

/// Maximum number of iterations: a forged export must not occupy a processor.
const ROUNDS_MAX: u32 = 10_000_000;

/// Shortest passphrase: shorter ones can be guessed.
const PASSPHRASE_CHARS_MIN: usize = 12;

/// Largest backup that is read.
pub const BACKUP_BYTES_MAX: usize = 32 << 20;

const NAME: &str = "airlock vault export";

/// The text of a backup.
#[derive(Serialize, Deserialize)]
struct VaultBackup {
    airlock_vault_export: u32,
    rounds: u32,
    salt: String,
    sealed: String,
}

/// The decrypted contents.
#[derive(Serialize, Deserialize)]
struct BackupContents {
    secrets: BTreeMap<String, String>,
    /// The records of connections and sources, which name the secrets.
    connections: BTreeMap<String, String>,
    sources: BTreeMap<String, String>,
    /// The parts of descriptions that are too large for the records of their sources.
    #[serde(default)]
    source_texts: BTreeMap<String, String>,
}

/// The result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VaultImport {
    /// Secrets that were added.
    pub n_added: usize,
    /// Secrets that existed already, and stay unchanged.
    pub n_kept: usize,
}

impl Vault {
    /// Exports everything, sealed with `passphrase`.
    pub async fn export(&self, passphrase: &str) -> Result<String, VaultError> {
        if passphrase.chars().count() < PASSPHRASE_CHARS_MIN {
            return Err(VaultError::Backup("a passphrase has 12 letters or more"));
        }
        let mut secrets = BTreeMap::new();
        for name in self.names("").await? {
            if let Some(value) = self.get(&name).await? {
                secrets.insert(name, value);
            }
        }
        let connections = self.record_values(records::CONNECTION).await?;
        let sources = self.record_values(records::SOURCE).await?;
        let source_texts = self.record_values(records::SOURCE_TEXT).await?;
        let contents = BackupContents { secrets, connections, sources, source_texts };
        let contents = serde_json::to_string(&contents);
        let contents = contents.map_err(|error| VaultError::Machine(error.to_string()))?;
        let salt: [u8; 16] = random()?;
        let sealed = derive_key(passphrase, &salt, ROUNDS).await?.seal(NAME, &contents)?;
        let backup = VaultBackup {
            airlock_vault_export: 1,
            rounds: ROUNDS.get(),
            salt: STANDARD.encode(salt),
            sealed,
        };
        serde_json::to_string(&backup).map_err(|error| VaultError::Machine(error.to_string()))
    }

    /// Imports what this vault does not have. What it has stays unchanged.
    pub async fn import(&self, passphrase: &str, text: &str) -> Result<VaultImport, VaultError> {
        const FOREIGN: VaultError = VaultError::Backup("that is no export of a vault");
        if text.len() > BACKUP_BYTES_MAX {
            return Err(VaultError::Backup("an export has 32 MiB at most"));
        }
        let backup: VaultBackup = serde_json::from_str(text).map_err(|_| FOREIGN)?;
        let rounds = NonZeroU32::new(backup.rounds.min(ROUNDS_MAX)).ok_or(FOREIGN)?;
        let salt = STANDARD.decode(&backup.salt).map_err(|_| FOREIGN)?;
        let key = derive_key(passphrase, &salt, rounds).await?;
        let wrong = VaultError::Backup(
            "the passphrase is wrong, or the export is damaged; nothing was changed",
        );
        let contents = key.open(NAME, &backup.sealed).map_err(|_| wrong)?;
        let contents: BackupContents = serde_json::from_str(&contents).map_err(|_| FOREIGN)?;
        let mut done = VaultImport::default();
        for (name, value) in &contents.secrets {
            match self.0.records.get(SECRET, name).await? {
                Some(_) => done.n_kept += 1,
                None => {
                    self.put(name, value).await?;
                    done.n_added += 1;
                }
            }
        }
        for (kind, records) in [
            (records::SOURCE_TEXT, &contents.source_texts),
            (records::SOURCE, &contents.sources),
            (records::CONNECTION, &contents.connections),
        ] {
            for (key, value) in records {
                if self.0.records.get(kind, key).await?.is_none() {
                    self.0.records.put(kind, key, value.clone(), 0).await?;
                }
            }
        }
        Ok(done)
    }

    async fn record_values(
        &self,
        kind: &'static str,
    ) -> Result<BTreeMap<String, String>, VaultError> {
        let all = self.0.records.all(kind).await?;
        Ok(all.into_iter().map(|record| (record.key, record.value)).collect())
    }
}

/// Derives the key of a passphrase, which is slow on purpose, on a blocking thread.
async fn derive_key(
    passphrase: &str,
    salt: &[u8],
    rounds: NonZeroU32,
) -> Result<SealingKey, VaultError> {
    let (passphrase, salt) = (passphrase.to_owned(), salt.to_owned());
    let stretch = move || {
        let mut key = [0; 32];
        derive(PBKDF2_HMAC_SHA256, rounds, &salt, passphrase.as_bytes(), &mut key);
        SealingKey::from_bytes(key)
    };
    tokio::task::spawn_blocking(stretch)
        .await
        .map_err(|error| VaultError::Machine(error.to_string()))
}
