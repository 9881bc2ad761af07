//! The interface for small values: of concurrent writers one wins, and the others receive a conflict.

use crate::StoreError;
use futures_util::future::BoxFuture;

/// Small values under a key, changed by compare-and-set.
pub trait RecordStore: Send + Sync {
    /// The value and its version.
    fn get(
        &self,
        kind: &'static str,
        key: &str,
    ) -> BoxFuture<'static, Result<Option<StoredRecord>, StoreError>>;
    /// Writes if the current version is `expected` (0: none); returns the new version. Synced.
    fn put(
        &self,
        kind: &'static str,
        key: &str,
        value: String,
        expected: u64,
    ) -> BoxFuture<'static, Result<u64, StoreError>>;
    /// Removes if the current version is `expected`. Synced.
    fn remove(
        &self,
        kind: &'static str,
        key: &str,
        expected: u64,
    ) -> BoxFuture<'static, Result<(), StoreError>>;
    /// All records of a kind, by key.
    fn all(&self, kind: &'static str) -> BoxFuture<'static, Result<Vec<StoredRecord>, StoreError>>;
}

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its key within the kind.
    pub key: String,
    /// JSON text.
    pub value: String,
    /// Incremented with each write.
    pub version: u64,
}
