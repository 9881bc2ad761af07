//! Why something was not done with a credential.

use crate::VaultError;

/// Why something was not done with a credential.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CredentialError {
    /// The request contradicts itself, or the other side refused it.
    #[error("{0}")]
    Invalid(String),
    /// The vault or its store failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
}
