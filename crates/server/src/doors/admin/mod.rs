//! The administrator's door: tokens, sessions, settings, policies, sources, connections and their secrets, over HTTP.

mod catalogue;
mod changes;
mod connections;
mod journal;
mod oauth;
mod oauth_clients;
mod policies;
mod routes;
mod server_proof;
mod sessions;
mod settings;
mod sign_in;
mod status;
mod tokens;
mod vault;

pub(super) use routes::open_door;

use crate::auth::require_admin;
use crate::body::json_response;
