//! Errors of operations on credentials.

use crate::VaultError;

/// Why an operation on a credential failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CredentialError {
    /// The request contradicts itself, or the other side refused it.
    #[error("{0}")]
    Invalid(String),
    /// The vault or its store failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
}
