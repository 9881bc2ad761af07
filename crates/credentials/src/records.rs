//! Records of the store that name secrets: connections that were added while serving. The helpers read and write records
//! of any kind as JSON.

use crate::{ConnectionConfig, SecretText, Vault, VaultError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use store::{RecordStore, StoreError};
use tools::scrub;

/// The kind of a connection's record. Its key is `<source>/<owner>/<name>`; `<source>/<name>` in earlier versions.
pub const CONNECTION: &str = "connection";

/// The kind of a source's record. Its key is the name of the source.
pub const SOURCE: &str = "source";

/// The kind of a part of a description that was sent as text and is too large for the record of its source.
pub const SOURCE_TEXT: &str = "source-text";

/// The connections that were added while serving, by their keys.
pub async fn connections(
    records: &dyn RecordStore,
) -> Result<BTreeMap<String, ConnectionConfig>, StoreError> {
    all(records, CONNECTION).await
}

/// Seals every secret that a record of an earlier version holds in plain text, and adds the owner to the record's key. A
/// locked vault leaves the records as they are.
pub async fn seal_connections(records: &dyn RecordStore, vault: &Vault) -> Result<(), VaultError> {
    for (key, mut connection) in connections(records).await? {
        let names: Vec<_> = key.split('/').collect();
        let is_old = names.len() == 2;
        if !is_old && !connection.texts().any(|text| matches!(text, SecretText::Plain(_))) {
            continue;
        }
        let owner = connection.owner_name().to_owned();
        let (Some(source), Some(name)) = (names.first(), names.last()) else { continue };
        seal_connection(vault, &mut connection).await?;
        put(records, CONNECTION, &format!("{source}/{owner}/{name}"), &connection).await?;
        if is_old {
            remove(records, CONNECTION, &key).await?;
        }
        tracing::info!(source, name, "a connection's secrets are sealed now");
    }
    Ok(())
}

/// Moves every secret that a connection contains into the vault.
pub async fn seal_connection(
    vault: &Vault,
    connection: &mut ConnectionConfig,
) -> Result<(), VaultError> {
    for text in connection.texts() {
        if let SecretText::Plain(value) = text {
            scrub::learn(value);
            let name = format!("value/{}", uuid::Uuid::now_v7().simple());
            vault.put(&name, value).await?;
            *text = SecretText::Vault { vault: name };
        }
    }
    Ok(())
}

/// Writes a record in place of the one with the same key.
pub async fn put(
    records: &dyn RecordStore,
    kind: &'static str,
    key: &str,
    value: &impl Serialize,
) -> Result<(), StoreError> {
    let text =
        serde_json::to_string(value).map_err(|error| StoreError::Other(error.to_string()))?;
    let version = records.get(kind, key).await?.map_or(0, |record| record.version);
    records.put(kind, key, text, version).await.map(drop)
}

/// Deletes a record, if there is one.
pub async fn remove(
    records: &dyn RecordStore,
    kind: &'static str,
    key: &str,
) -> Result<(), StoreError> {
    match records.get(kind, key).await? {
        Some(record) => records.remove(kind, key, record.version).await,
        None => Ok(()),
    }
}

/// All records of a kind, by their keys. Unreadable records are skipped.
pub async fn all<T: DeserializeOwned>(
    records: &dyn RecordStore,
    kind: &'static str,
) -> Result<BTreeMap<String, T>, StoreError> {
    let mut values = BTreeMap::new();
    for record in records.all(kind).await? {
        match serde_json::from_str(&record.value) {
            Ok(value) => drop(values.insert(record.key, value)),
            // A record of a newer version must not hide the others.
            Err(_) => tracing::warn!(kind, key = record.key, "a record cannot be read"),
        }
    }
    Ok(values)
}
