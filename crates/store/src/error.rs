//! Errors of the store, classified by what the caller can do about them.

/// Why an operation of the store failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Another writer appended, or an earlier append failed.
    #[error("the journal or record is not where it was expected to be")]
    Conflict,
    /// The disk is full. Nothing was written; free some space and try again.
    #[error("the disk is full")]
    Full,
    /// The directory or file cannot be written to.
    #[error("the data directory is read-only")]
    ReadOnly,
    /// Another process has locked the file.
    #[error("the database is locked by another process")]
    Locked,
    /// The file is damaged or belongs to another program. It was not changed.
    #[error("{0}")]
    Damaged(String),
    /// Any other error; the details are for the log.
    #[error("the store failed: {0}")]
    Other(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}
