//! The contract for large values.

use crate::StoreError;
use futures_util::future::BoxFuture;

/// Large values under the hash of their content.
pub trait BlobStore: Send + Sync {
    /// Stores `bytes`, synced, and returns their name: the SHA-256 in hex. Equal bytes are stored once.
    fn put_blob(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String, StoreError>>;
    /// The bytes of that name.
    fn fetch(&self, name: &str) -> BoxFuture<'static, Result<Option<Vec<u8>>, StoreError>>;
    /// Removes them; false if there were none.
    fn discard(&self, name: &str) -> BoxFuture<'static, Result<bool, StoreError>>;
}
