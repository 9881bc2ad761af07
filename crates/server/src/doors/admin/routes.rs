//! The administrator's routes: sessions, settings, policies, tools and their sources, connections and secrets.

use super::{
    catalogue, changes, connections, journal, oauth, oauth_clients, policies, server_proof,
    sessions, settings, sign_in, status, tokens, vault,
};
use crate::app::AppState;
use crate::auth::permissions::access::{ADMIN, ANSWER, ANY, PUBLIC, RUN, SECRET, SEE, route};
use crate::auth::permissions::{RouteAccess, RoutePermission};
use crate::config::DoorSelection;
use crate::door::Door;
use crate::doors::DoorSettings;
use axum::Router;
use axum::routing::{delete, get, patch, post};
use std::sync::Arc;

/// The administrator's door.
struct AdminDoor {
    /// Beside a REPL alone, the door only proves to clients that the server is theirs.
    which: DoorSelection,
}

/// Opens the door of a server with these settings.
pub(in crate::doors) fn open_door(settings: &DoorSettings) -> Option<Arc<dyn Door>> {
    Some(Arc::new(AdminDoor { which: settings.which }))
}

impl Door for AdminDoor {
    fn permissions(&self) -> &'static [RoutePermission] {
        PERMISSIONS
    }

    fn routes(&self, app: &Arc<AppState>) -> Router {
        let routes = match self.which {
            DoorSelection::All => callers().merge(tools()).merge(source_kinds()).merge(secrets()),
            DoorSelection::Repl => {
                Router::new().route("/api/prove", post(server_proof::prove_token))
            }
        };
        routes.with_state(Arc::clone(app))
    }
}

/// The caller's identity and rights, and the server's settings.
fn callers() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/status", get(status::status))
        .route("/api/session", get(sessions::session).delete(sessions::sign_out))
        .route("/api/session/elevation", post(sessions::elevate))
        .route("/api/sessions", get(sessions::list_sessions))
        .route("/api/sessions/{id}", delete(sessions::end_session))
        .route("/api/tickets", post(sessions::ticket))
        .route("/api/sign-in", get(sign_in::nonce).post(sign_in::sign_in))
        .route("/api/prove", post(server_proof::prove_token))
        .route("/api/sign-in/codes", post(sign_in::code))
        .route("/api/tokens", get(tokens::list_tokens).post(tokens::add))
        .route("/api/tokens/{name}", delete(tokens::remove).patch(tokens::change))
        .route("/api/settings", get(settings::list_settings).post(settings::set))
        .route("/api/settings/history", get(settings::history))
        .route("/api/executions/{id}/journal", get(journal::journal))
        .route("/api/policies", get(policies::list_policies).post(policies::add))
        .route("/api/policies/test", get(policies::test))
        .route("/api/policies/{id}/confirm", post(policies::confirm))
        .route("/api/policies/{id}", patch(policies::change).delete(policies::remove))
}

/// What programs can call, and where it comes from.
fn tools() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/tools", get(catalogue::tools))
        .route("/api/tools/schema", get(catalogue::schema))
        .route("/api/sources", post(catalogue::add_source))
        .route("/api/integrations", get(catalogue::integrations))
        .route("/api/integrations/detect", post(catalogue::detect))
        .route(
            "/api/integrations/{slug}",
            get(catalogue::show_integration).delete(catalogue::remove),
        )
        .route("/api/integrations/{slug}", patch(changes::integration))
        .route("/api/integrations/{slug}/refresh", post(catalogue::refresh))
}

/// The routes that Executor has for each kind of source.
fn source_kinds() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/openapi/preview", post(catalogue::preview))
        .route("/api/openapi/specs", post(catalogue::add_spec))
        .route(
            "/api/openapi/integrations/{slug}",
            get(catalogue::show_integration).delete(catalogue::remove),
        )
        .route("/api/openapi/integrations/{slug}/spec", post(catalogue::refresh))
        .route("/api/openapi/integrations/{slug}/config", get(changes::config))
        .route("/api/openapi/integrations/{slug}/config", post(changes::configure))
        .route("/api/graphql/integrations", post(catalogue::add_graphql))
        .route(
            "/api/graphql/integrations/{slug}",
            get(catalogue::show_integration).delete(catalogue::remove),
        )
        .route("/api/graphql/integrations/{slug}/config", get(changes::config))
        .route("/api/graphql/integrations/{slug}/config", post(changes::configure))
        .route("/api/mcp/probe", post(catalogue::detect))
        .route("/api/mcp/servers", post(catalogue::add_server))
        .route(
            "/api/mcp/servers/{slug}",
            get(catalogue::show_integration).delete(catalogue::remove),
        )
        .route("/api/mcp/servers/{slug}/config", get(changes::config))
        .route("/api/mcp/servers/{slug}/config", post(changes::configure))
}

/// Connections and their secrets.
fn secrets() -> Router<Arc<AppState>> {
    Router::new()
        .route("/api/connections", get(connections::list_connections).post(connections::create))
        .route("/api/connections/{owner}/{slug}/{name}", get(connections::show_connection))
        .route("/api/connections/{owner}/{slug}/{name}", patch(connections::change))
        .route("/api/connections/{owner}/{slug}/{name}", delete(connections::remove))
        .route("/api/connections/{owner}/{slug}/{name}/refresh", post(connections::refresh))
        .route("/api/connections/{owner}/{slug}/{name}/health", post(connections::health))
        .route("/api/connections/{owner}/{slug}/{name}/handoff", post(connections::hand_off))
        .route(
            "/api/handoffs/{state}",
            get(connections::handed_off).post(connections::enter_secret),
        )
        .route("/api/providers", get(connections::providers))
        .route("/api/providers/{key}/items", get(connections::items))
        .route(
            "/api/oauth/clients",
            get(oauth_clients::list_oauth_clients).post(oauth_clients::add),
        )
        .route("/api/oauth/clients/register-dynamic", post(oauth_clients::introduce))
        .route("/api/oauth/clients/{slug}", delete(oauth_clients::remove))
        .route("/api/oauth/client-id-metadata.json", get(oauth_clients::document))
        .route("/api/oauth/probe", post(oauth_clients::probe))
        .route("/api/oauth/start", post(oauth::start))
        .route("/api/oauth/complete", post(oauth::complete))
        .route("/api/oauth/await/{state}", get(oauth::ended))
        .route("/api/oauth/cancel", post(oauth::cancel))
        .route("/api/oauth/callback", get(oauth::callback))
        .route("/api/vault", get(vault::status))
        .route("/api/vault/rotate", post(vault::rotate))
        .route("/api/vault/export", post(vault::export))
        .route("/api/vault/import", post(vault::import))
}

/// The access requirement of each of these routes.
const PERMISSIONS: &[RoutePermission] = &[
    // Pages and health.
    route("GET", "/api/status", ADMIN),
    // The caller's identity.
    route("GET", "/api/session", ANY),
    route("DELETE", "/api/session", ANY),
    route("POST", "/api/session/elevation", ANY),
    route("GET", "/api/sessions", ANSWER),
    route("DELETE", "/api/sessions/{id}", ANSWER),
    route("POST", "/api/tickets", ANY),
    route("POST", "/api/prove", SECRET),
    route("GET", "/api/sign-in", PUBLIC),
    route("POST", "/api/sign-in", SECRET),
    route("POST", "/api/sign-in/codes", RouteAccess::AnswerToken),
    route("GET", "/api/tokens", ADMIN),
    route("POST", "/api/tokens", ADMIN),
    route("PATCH", "/api/tokens/{name}", ADMIN),
    route("DELETE", "/api/tokens/{name}", ADMIN),
    route("GET", "/api/settings", ADMIN),
    route("POST", "/api/settings", ADMIN),
    route("GET", "/api/settings/history", ADMIN),
    // Executions and their questions.
    route("GET", "/api/executions/{id}/journal", SEE),
    // Which calls are permitted.
    route("GET", "/api/policies", ADMIN),
    route("POST", "/api/policies", ADMIN),
    route("GET", "/api/policies/test", ADMIN),
    route("PATCH", "/api/policies/{id}", ADMIN),
    route("DELETE", "/api/policies/{id}", ADMIN),
    route("POST", "/api/policies/{id}/confirm", ADMIN),
    // Tools and their sources.
    route("GET", "/api/tools", RUN),
    route("GET", "/api/tools/schema", RUN),
    route("POST", "/api/sources", ADMIN),
    route("GET", "/api/integrations", RUN),
    route("POST", "/api/integrations/detect", ADMIN),
    route("GET", "/api/integrations/{slug}", RUN),
    route("DELETE", "/api/integrations/{slug}", ADMIN),
    route("PATCH", "/api/integrations/{slug}", ADMIN),
    route("POST", "/api/integrations/{slug}/refresh", ADMIN),
    route("POST", "/api/openapi/preview", ADMIN),
    route("POST", "/api/openapi/specs", ADMIN),
    route("GET", "/api/openapi/integrations/{slug}", RUN),
    route("DELETE", "/api/openapi/integrations/{slug}", ADMIN),
    route("POST", "/api/openapi/integrations/{slug}/spec", ADMIN),
    route("GET", "/api/openapi/integrations/{slug}/config", ADMIN),
    route("POST", "/api/openapi/integrations/{slug}/config", ADMIN),
    route("POST", "/api/graphql/integrations", ADMIN),
    route("GET", "/api/graphql/integrations/{slug}", RUN),
    route("DELETE", "/api/graphql/integrations/{slug}", ADMIN),
    route("GET", "/api/graphql/integrations/{slug}/config", ADMIN),
    route("POST", "/api/graphql/integrations/{slug}/config", ADMIN),
    route("POST", "/api/mcp/probe", ADMIN),
    route("POST", "/api/mcp/servers", ADMIN),
    route("GET", "/api/mcp/servers/{slug}", RUN),
    route("DELETE", "/api/mcp/servers/{slug}", ADMIN),
    route("GET", "/api/mcp/servers/{slug}/config", ADMIN),
    route("POST", "/api/mcp/servers/{slug}/config", ADMIN),
    // Connections and their secrets.
    route("GET", "/api/connections", RUN),
    route("POST", "/api/connections", ADMIN),
    route("GET", "/api/connections/{owner}/{slug}/{name}", RUN),
    route("PATCH", "/api/connections/{owner}/{slug}/{name}", ADMIN),
    route("DELETE", "/api/connections/{owner}/{slug}/{name}", ADMIN),
    route("POST", "/api/connections/{owner}/{slug}/{name}/refresh", ADMIN),
    route("POST", "/api/connections/{owner}/{slug}/{name}/health", ADMIN),
    route("POST", "/api/connections/{owner}/{slug}/{name}/handoff", ADMIN),
    route("GET", "/api/handoffs/{state}", SECRET),
    route("POST", "/api/handoffs/{state}", SECRET),
    route("GET", "/api/providers", RUN),
    route("GET", "/api/providers/{key}/items", ADMIN),
    route("GET", "/api/oauth/clients", ADMIN),
    route("POST", "/api/oauth/clients", ADMIN),
    route("POST", "/api/oauth/clients/register-dynamic", ADMIN),
    route("DELETE", "/api/oauth/clients/{slug}", ADMIN),
    route("GET", "/api/oauth/client-id-metadata.json", PUBLIC),
    route("POST", "/api/oauth/probe", ADMIN),
    route("POST", "/api/oauth/start", ADMIN),
    route("POST", "/api/oauth/complete", ADMIN),
    route("GET", "/api/oauth/await/{state}", ADMIN),
    route("POST", "/api/oauth/cancel", ADMIN),
    route("GET", "/api/oauth/callback", SECRET),
    route("GET", "/api/vault", ADMIN),
    route("POST", "/api/vault/rotate", ADMIN),
    route("POST", "/api/vault/export", ADMIN),
    route("POST", "/api/vault/import", ADMIN),
];
