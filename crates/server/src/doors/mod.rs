//! One folder per protocol, and the administrator's door.

pub(crate) mod catalogue;
pub(crate) mod changes;
pub(crate) mod connections;
pub(crate) mod enclave;
pub mod exec_server;
pub mod execbox;
pub(crate) mod executor;
pub(crate) mod hotrepl;
pub(crate) mod journal;
pub(crate) mod mcp;
pub(crate) mod oauth;
pub(crate) mod oauth_clients;
pub(crate) mod policies;
pub(crate) mod server_proof;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod sign_in;
pub(crate) mod status;
pub(crate) mod tokens;
pub(crate) mod vault;

use crate::auth::Caller;
use crate::error::Problem;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use lifecycle::Rejection;
use serde_json::Value;

/// Lets administrators pass.
fn administers(caller: &Caller) -> Result<(), Problem> {
    caller.may_administer().map_err(|denied| Problem::denied(denied, ""))
}

/// Whether an answer was the first. The first one stands, and so does what followed it: who comes later
/// is told the same.
fn first<T>(answered: Result<T, engine::Error>) -> Result<bool, Problem> {
    match answered {
        Ok(_) => Ok(true),
        Err(engine::Error::Rejected(
            Rejection::AlreadyAnswered(_) | Rejection::AlreadyFinished,
        )) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// JSON with a status.
fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
