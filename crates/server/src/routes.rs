//! What is where.

use crate::app::App;
use crate::config::{Config, Doors};
use crate::doors::mcp::mcp;
use crate::doors::{
    catalogue, changes, connections, enclave, exec_server, execbox, executor, hotrepl, journal,
    oauth, oauth_clients, policies, server_proof, sessions, settings, sign_in, status, tokens,
    vault,
};
use crate::error::Problem;
use crate::guard::guard;
use crate::{metrics, pages};
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::{delete, get, patch, post};
use std::sync::Arc;

/// Every route under `/api`, and those for machines, in OpenAPI 3.1.
const DESCRIPTION: &str = include_str!("openapi.json");

/// The whole server without a socket.
pub fn router(config: Config) -> Router {
    build(&App::new(config))
}

pub(crate) fn build(app: &Arc<App>) -> Router {
    let doors = match app.doors {
        Doors::All => all_doors(),
        Doors::Repl => repl_alone(),
    };
    doors
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            Problem::not_allowed(method.as_str(), uri.path())
        })
        .layer(from_fn_with_state(Arc::clone(app), guard))
        .with_state(Arc::clone(app))
}

/// A REPL for clients that know an address and no path, and what people need to answer its questions.
fn repl_alone() -> Router<Arc<App>> {
    Router::new()
        .merge(hotrepl::routes())
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready))
        .route("/api/prove", post(server_proof::prove_token))
        .route("/api/questions", get(pages::questions))
        .route("/api/executions", get(executor::list))
        .route("/api/executions/{id}", get(executor::show))
        .route("/api/executions/{id}/resume", post(executor::resume))
        .route("/api/executions/{id}/cancel", post(executor::cancel))
        .fallback(get(hotrepl::open))
}

fn all_doors() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(pages::shell))
        .route("/resume/{id}", get(pages::shell))
        .route("/console/{name}", get(pages::asset))
        .route("/connect", get(pages::handoff))
        .route("/browsers", get(pages::shell))
        .route("/api/session", get(sessions::session).delete(sessions::sign_out))
        .route("/api/session/elevation", post(sessions::elevate))
        .route("/api/sessions", get(sessions::list))
        .route("/api/sessions/{id}", delete(sessions::end))
        .route("/api/tickets", post(sessions::ticket))
        .route("/api/sign-in", get(sign_in::nonce).post(sign_in::sign_in))
        .route("/api/prove", post(server_proof::prove_token))
        .route("/api/sign-in/codes", post(sign_in::code))
        .route("/api/questions", get(pages::questions))
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics::metrics))
        .route("/api/health", get(async || "ok"))
        .route("/api/status", get(status::status))
        .route("/api/executions", get(executor::list).post(executor::execute))
        .route("/api/executions/{id}", get(executor::show).delete(executor::remove))
        .route("/api/executions/{id}/resume", post(executor::resume))
        .route("/api/executions/{id}/questions", get(executor::questions))
        .route("/api/executions/{id}/answers", post(executor::answers))
        .route("/api/executions/{id}/result", get(executor::result))
        .route("/api/executions/{id}/cancel", post(executor::cancel))
        .route("/api/executions/{id}/continue", post(executor::continue_one))
        .route("/api/executions/continue", post(executor::continue_all))
        .route("/api/executions/{id}/events", get(executor::events))
        .route("/api/openapi.json", get(openapi))
        .route("/api/callback", get(executor::callback))
        .route("/exec", get(exec_server::open))
        .route("/execbox", get(execbox::open))
        .route("/api/executions/{id}/journal", get(journal::journal))
        .route("/api/policies", get(policies::list).post(policies::add))
        .route("/api/policies/test", get(policies::test))
        .route("/api/policies/{id}/confirm", post(policies::confirm))
        .route("/api/policies/{id}", patch(policies::change).delete(policies::remove))
        .route("/mcp", get(mcp).post(mcp).delete(mcp))
        .route("/api/tools", get(catalogue::tools))
        .route("/api/tools/schema", get(catalogue::schema))
        .route("/api/sources", post(catalogue::add_source))
        .route("/api/integrations", get(catalogue::integrations))
        .route("/api/integrations/detect", post(catalogue::detect))
        .route("/api/integrations/{slug}", get(catalogue::show).delete(catalogue::remove))
        .route("/api/integrations/{slug}", patch(changes::integration))
        .route("/api/integrations/{slug}/refresh", post(catalogue::refresh))
        .route("/api/tokens", get(tokens::list).post(tokens::add))
        .route("/api/tokens/{name}", delete(tokens::remove).patch(tokens::change))
        .route("/api/settings", get(settings::list).post(settings::set))
        .route("/api/settings/history", get(settings::history))
        .merge(secrets())
        .merge(session_aliases())
        .merge(source_kinds())
        .merge(enclave::routes())
        .merge(hotrepl::routes())
        .fallback(pages::missing)
}

/// The addresses by which Executor's pages read and answer an execution of an MCP session.
fn session_aliases() -> Router<Arc<App>> {
    Router::new()
        .route("/api/mcp-sessions/{session}/executions/{id}", get(executor::show_in_session))
        .route(
            "/api/mcp-sessions/{session}/executions/{id}/resume",
            post(executor::resume_in_session),
        )
}

/// The routes that Executor has for each kind of source.
fn source_kinds() -> Router<Arc<App>> {
    Router::new()
        .route("/api/openapi/preview", post(catalogue::preview))
        .route("/api/openapi/specs", post(catalogue::add_spec))
        .route("/api/openapi/integrations/{slug}", get(catalogue::show).delete(catalogue::remove))
        .route("/api/openapi/integrations/{slug}/spec", post(catalogue::refresh))
        .route("/api/openapi/integrations/{slug}/config", get(changes::config))
        .route("/api/openapi/integrations/{slug}/config", post(changes::configure))
        .route("/api/graphql/integrations", post(catalogue::add_graphql))
        .route("/api/graphql/integrations/{slug}", get(catalogue::show).delete(catalogue::remove))
        .route("/api/graphql/integrations/{slug}/config", get(changes::config))
        .route("/api/graphql/integrations/{slug}/config", post(changes::configure))
        .route("/api/mcp/probe", post(catalogue::detect))
        .route("/api/mcp/servers", post(catalogue::add_server))
        .route("/api/mcp/servers/{slug}", get(catalogue::show).delete(catalogue::remove))
        .route("/api/mcp/servers/{slug}/config", get(changes::config))
        .route("/api/mcp/servers/{slug}/config", post(changes::configure))
}

/// Connections, and what is secret about them.
fn secrets() -> Router<Arc<App>> {
    Router::new()
        .route("/api/connections", get(connections::list).post(connections::create))
        .route("/api/connections/{owner}/{slug}/{name}", get(connections::show))
        .route("/api/connections/{owner}/{slug}/{name}", patch(connections::change))
        .route("/api/connections/{owner}/{slug}/{name}", delete(connections::remove))
        .route("/api/connections/{owner}/{slug}/{name}/refresh", post(connections::refresh))
        .route("/api/connections/{owner}/{slug}/{name}/health", post(connections::health))
        .route("/api/connections/{owner}/{slug}/{name}/handoff", post(connections::hand_off))
        .route("/api/handoffs/{state}", get(connections::handed_off).post(connections::enter))
        .route("/api/providers", get(connections::providers))
        .route("/api/providers/{key}/items", get(connections::items))
        .route("/api/oauth/clients", get(oauth_clients::list).post(oauth_clients::add))
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

/// What all this is, for programs. No token: it tells nothing that the documents do not.
async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION)
}

/// Whether work is taken. What is still to be read about sources follows the first line, and holds nothing up.
async fn ready(State(app): State<Arc<App>>) -> (StatusCode, String) {
    if app.stopping.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping".into());
    }
    let mut text = "ok".to_owned();
    if let Some(sources) = &app.sources {
        let loading = sources.loading();
        let mut unavailable = sources.undescribed();
        unavailable.retain(|name| !loading.contains(name));
        for (word, names) in [("loading", loading), ("unavailable", unavailable)] {
            if !names.is_empty() {
                text.push_str(&format!("\n{word}: {}", names.join(" ")));
            }
        }
    }
    (StatusCode::OK, text)
}

/// The methods, in capitals, and paths of the routes that a source file adds.
#[cfg(test)]
pub(crate) fn served_routes(source: &str) -> std::collections::BTreeSet<(String, String)> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    // A long route begins on the next line.
    let source = source.replace(".route(\n            \"", ".route(\"");
    let routes = source.split(".route(\"").skip(1);
    let served = routes.flat_map(|route| {
        let (path, rest) = route.split_once('"').expect("a path is a string literal");
        let handlers = rest.split("\n        .").next().unwrap_or_default();
        let is_served = move |method: &&str| {
            let is_called = |before| handlers.contains(&format!("{before}{method}("));
            [' ', '.'].into_iter().any(is_called)
        };
        let methods = ["get", "post", "put", "patch", "delete"].into_iter().filter(is_served);
        methods.map(|method| (method.to_uppercase(), path.to_owned()))
    });
    served.collect()
}

#[cfg(test)]
mod tests {
    use super::{DESCRIPTION, served_routes};
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// What is not for programs that read descriptions: pages, and channels after an upgrade.
    const NOT_DESCRIBED: [&str; 8] = [
        "/",
        "/resume/{id}",
        "/browsers",
        "/console/{name}",
        "/connect",
        "/exec",
        "/execbox",
        "/mcp",
    ];

    #[test]
    fn every_route_is_described_and_everything_described_is_a_route() {
        let mut served = served_routes(include_str!("routes.rs"));
        served.retain(|(_, path)| !NOT_DESCRIBED.contains(&path.as_str()));
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let paths = description["paths"].as_object().unwrap();
        let described = paths.iter().flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().keys();
            methods.map(|method| (method.to_uppercase(), path.clone()))
        });
        assert_eq!(described.collect::<BTreeSet<_>>(), served);
    }
}
