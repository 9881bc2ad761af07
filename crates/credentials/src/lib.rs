//! The secrets of connections: the vault that seals them, the credentials that authenticate calls, and the OAuth client.
//! Knows the tools that need a credential, and neither executions nor protocols: [`CredentialHost`] is its only
//! interface to the surrounding server.

mod auth_template;
mod config;
mod connection_proof;
mod credentials;
mod error;
mod handoff;
mod note_expiry;
mod oauth;
mod oauth_flows;
pub mod records;
mod secret_values;
mod vault;

pub use auth_template::{CredentialOffer, connection_from_offer};
pub use config::{BasicConfig, CommandWords, ConnectionConfig, OAuthConfig, OAuthFlow, SecretText};
pub use connection_proof::ConnectionProof;
pub use credentials::{ConnectionKey, CredentialHost, CredentialSetup, Credentials};
pub use error::CredentialError;
pub use handoff::HandoffForm;
pub use oauth::{CallbackOutcome, ClientOrigin, FlowStart, RegisteredClient, ServerProbe};
pub use oauth_flows::BrowserFlow;
pub use vault::{
    BACKUP_BYTES_MAX, KeyPlace, VALUE_BYTES_MAX, Vault, VaultError, VaultImport, VaultStatus,
};
