//! Sources and connections that were added while serving: records in the store.

use crate::config::{Connection, Source};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use store::{Records, StoreError};

pub(crate) const SOURCE: &str = "source";
pub(crate) const CONNECTION: &str = "connection";

pub(crate) async fn sources(records: &dyn Records) -> Result<BTreeMap<String, Source>, StoreError> {
    all(records, SOURCE).await
}

/// By `<source>/<name>`.
pub(crate) async fn connections(
    records: &dyn Records,
) -> Result<BTreeMap<String, Connection>, StoreError> {
    all(records, CONNECTION).await
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
