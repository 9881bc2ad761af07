//! The vault over HTTP, for administrators: its status, key rotation, and a backup that is encrypted with a
//! passphrase.

use super::{catalogue, json_response, require_admin};
use crate::app::AppState;
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::error::RequestError;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use credentials::{CredentialError, KeyPlace, VaultError, VaultStatus};
use protocols::executor::{member, members};
use serde_json::{Value, json};
use std::sync::Arc;
use tools::scrub;

/// `GET /api/vault`.
pub(crate) async fn status(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let vault = catalogue::sources(&app)?.vault();
    // A restored key is found without a restart.
    if vault.status().await?.trouble.is_some() {
        vault.unlock().await.map_err(engine::Fault::from)?;
    }
    Ok(json_response(StatusCode::OK, &status_json(&vault.status().await?)))
}

/// `POST /api/vault/rotate`.
pub(crate) async fn rotate(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let n_secrets = catalogue::sources(&app)?.vault().rotate().await?;
    Ok(json_response(StatusCode::OK, &json!({ "resealed": n_secrets })))
}

/// `POST /api/vault/export {passphrase}`.
pub(crate) async fn export(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let passphrase = passphrase(&body)?;
    let backup = catalogue::sources(&app)?.vault().export(&passphrase).await?;
    Ok(json_response(StatusCode::OK, &json!({ "export": backup })))
}

/// `POST /api/vault/import {passphrase, export}`. The imported values take effect at the next start.
pub(crate) async fn import(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let passphrase = passphrase(&body)?;
    let text: Option<String> = member(&members(&body)?, "export", "a string")?;
    let done = catalogue::sources(&app)?.import(&passphrase, &text.unwrap_or_default()).await?;
    Ok(json_response(StatusCode::OK, &json!({ "added": done.n_added, "kept": done.n_kept })))
}

fn passphrase(body: &[u8]) -> Result<String, RequestError> {
    let passphrase: Option<String> = member(&members(body)?, "passphrase", "a string")?;
    let passphrase = passphrase.unwrap_or_default();
    scrub::learn(&passphrase);
    Ok(passphrase)
}

fn status_json(status: &VaultStatus) -> Value {
    let place = match &status.place {
        KeyPlace::File(path) => path.display().to_string(),
        KeyPlace::Memory => "memory".into(),
    };
    json!({
        "status": if status.trouble.is_some() { "locked" } else { "open" },
        "trouble": status.trouble,
        "keyFile": place,
        "key": status.key,
        "secrets": status.n_secrets,
    })
}

impl From<CredentialError> for RequestError {
    fn from(error: CredentialError) -> Self {
        sources::SourceError::from(error).into()
    }
}

impl From<VaultError> for RequestError {
    fn from(error: VaultError) -> Self {
        let message = format!("Not done: {error}.");
        match error {
            VaultError::Store(error) => engine::Fault::from(error).into(),
            VaultError::Locked(_) => Self::tagged_conflict("VaultLockedError", message),
            VaultError::Damaged(_) | VaultError::Machine(_) => Self::conflict(message),
            VaultError::TooLong | VaultError::Backup(_) => Self::bad_request(message),
        }
    }
}
