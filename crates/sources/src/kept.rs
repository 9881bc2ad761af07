//! Sources and connections that were added while serving: records in the store.

use crate::config::{Connection, Source, Text};
use crate::vault::{Vault, VaultError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use store::{Records, StoreError};
use tools::scrub;

pub(crate) const SOURCE: &str = "source";
pub(crate) const CONNECTION: &str = "connection";

pub(crate) async fn sources(records: &dyn Records) -> Result<BTreeMap<String, Source>, StoreError> {
    all(records, SOURCE).await
}

/// By `<source>/<owner>/<name>`; those of earlier days by `<source>/<name>`.
pub(crate) async fn connections(
    records: &dyn Records,
) -> Result<BTreeMap<String, Connection>, StoreError> {
    all(records, CONNECTION).await
}

/// Seals every secret that a record of earlier days holds in plain text, and gives the record its owner's name. A
/// vault that is locked leaves them as they are.
pub(crate) async fn seal(records: &dyn Records, vault: &Vault) -> Result<(), VaultError> {
    for (key, mut connection) in connections(records).await? {
        let names: Vec<_> = key.split('/').collect();
        let is_old = names.len() == 2;
        if !is_old && !connection.texts().any(|text| matches!(text, Text::Plain(_))) {
            continue;
        }
        let owner = connection.owner_name().to_owned();
        let (Some(source), Some(name)) = (names.first(), names.last()) else { continue };
        sealed(vault, &mut connection).await?;
        put(records, CONNECTION, &format!("{source}/{owner}/{name}"), &connection).await?;
        if is_old {
            remove(records, CONNECTION, &key).await?;
        }
        tracing::info!(source, name, "a connection's secrets are sealed now");
    }
    Ok(())
}

/// Puts every secret that stands in a connection itself into the vault.
pub(crate) async fn sealed(vault: &Vault, connection: &mut Connection) -> Result<(), VaultError> {
    for text in connection.texts() {
        if let Text::Plain(value) = text {
            scrub::learn(value);
            let name = format!("value/{}", uuid::Uuid::now_v7().simple());
            vault.put(&name, value).await?;
            *text = Text::Vault { vault: name };
        }
    }
    Ok(())
}

/// Writes over what was there.
pub(crate) async fn put(
    records: &dyn Records,
    kind: &'static str,
    key: &str,
    value: &impl Serialize,
) -> Result<(), StoreError> {
    let text =
        serde_json::to_string(value).map_err(|error| StoreError::Other(error.to_string()))?;
    let version = records.get(kind, key).await?.map_or(0, |record| record.version);
    records.put(kind, key, text, version).await.map(drop)
}

pub(crate) async fn remove(
    records: &dyn Records,
    kind: &'static str,
    key: &str,
) -> Result<(), StoreError> {
    match records.get(kind, key).await? {
        Some(record) => records.remove(kind, key, record.version).await,
        None => Ok(()),
    }
}

async fn all<T: DeserializeOwned>(
    records: &dyn Records,
    kind: &'static str,
) -> Result<BTreeMap<String, T>, StoreError> {
    let mut kept = BTreeMap::new();
    for record in records.all(kind).await? {
        match serde_json::from_str(&record.value) {
            Ok(value) => drop(kept.insert(record.key, value)),
            // One that a newer version wrote must not keep the others away.
            Err(_) => tracing::warn!(kind, key = record.key, "a record cannot be read"),
        }
    }
    Ok(kept)
}
