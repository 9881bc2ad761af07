//! Internal errors: the log receives the cause, the caller a reference number.

use lifecycle::Rejection;
use std::fmt;

/// A number that links an error that a caller received to a line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultId(u32);

impl fmt::Display for FaultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// An internal error.
#[derive(Debug, Clone, thiserror::Error)]
#[error("internal error [{reference}]: {advice}")]
pub struct Fault {
    /// The reference number in the log.
    pub reference: FaultId,
    /// What the caller can do.
    pub advice: String,
}

impl Fault {
    /// Writes the cause to the log, and retains only a reference and the advice.
    pub fn new(cause: impl fmt::Display, advice: impl Into<String>) -> Self {
        let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
        #[expect(clippy::cast_possible_truncation, reason = "any 32 random bits will do")]
        let reference = FaultId(random as u32);
        tracing::error!(%reference, %cause, "fault");
        Self { reference, advice: advice.into() }
    }
}

impl From<store::StoreError> for Fault {
    fn from(error: store::StoreError) -> Self {
        use store::StoreError as E;
        let advice = match &error {
            E::Full => "the disk is full; free some space and try again",
            E::ReadOnly => "the data directory cannot be written to",
            E::Locked => "the database is locked by another process",
            E::Damaged(_) => "the journal is damaged; see the server's log",
            E::Conflict => "another server has taken over this execution",
            E::Other(_) | E::Closed => "the journal could not be used; try again",
        };
        Self::new(&error, advice)
    }
}

/// Why a request to the engine failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// It was rejected; nothing was recorded.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// An internal error.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<store::StoreError> for Error {
    fn from(error: store::StoreError) -> Self {
        Self::Fault(error.into())
    }
}
