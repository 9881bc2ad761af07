//! What can go wrong, sorted by what to do about it.

/// Why the store could not.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Somebody else appended, or an earlier append failed.
    #[error("the journal or record is not where it was expected to be")]
    Conflict,
    /// The disk is full. Nothing was written; free some space and try again.
    #[error("the disk is full")]
    Full,
    /// The directory or file cannot be written to.
    #[error("the data directory is read-only")]
    ReadOnly,
    /// Another process is in the way.
    #[error("the database is locked by another process")]
    Locked,
    /// The file is damaged or not ours. It was not touched.
    #[error("{0}")]
    Damaged(String),
    /// Something else; details are for the log.
    #[error("the store failed: {0}")]
    Other(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}
