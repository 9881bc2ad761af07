//! The contract for large values.

use crate::StoreError;
use futures_util::future::BoxFuture;

/// Large values under the hash of their content.
pub trait BlobStore: Send + Sync {
    /// Keeps `bytes`, synced, and returns their name: the SHA-256 in hex. Keeping the same bytes twice keeps them once.
    fn put_blob(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String, StoreError>>;
    /// The bytes of that name.
    fn fetch(&self, name: &str) -> BoxFuture<'static, Result<Option<Vec<u8>>, StoreError>>;
    /// Removes them; false when there were none.
    fn discard(&self, name: &str) -> BoxFuture<'static, Result<bool, StoreError>>;
}
