//! The server's own routes, and those of its doors.

use crate::app::AppState;
use crate::auth::permissions::RoutePermission;
use crate::auth::permissions::access::{ADMIN, ANY, PUBLIC, route};
use crate::config::{Config, DoorSelection};
use crate::error::RequestError;
use crate::guard::guard;
use crate::{metrics, pages};
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::get;
use std::sync::Arc;

/// The OpenAPI 3.1 description of every route under `/api`, and of the routes for machines.
const DESCRIPTION: &str = include_str!("openapi.json");

/// The whole server without a socket.
pub fn router(config: Config) -> Router {
    build(&AppState::new(config))
}

pub(crate) fn build(app: &Arc<AppState>) -> Router {
    let own = match app.which {
        DoorSelection::All => full(),
        DoorSelection::Repl => health(),
    };
    let doors = app.doors.iter().map(|door| door.routes(app));
    doors
        .fold(own.with_state(Arc::clone(app)), Router::merge)
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            RequestError::not_allowed(method.as_str(), uri.path())
        })
        .layer(from_fn_with_state(Arc::clone(app), guard))
}

/// The routes that every server has.
fn health() -> Router<Arc<AppState>> {
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready))
        .route("/api/questions", get(pages::questions))
}

/// Adds pages, metrics and the description of the API.
fn full() -> Router<Arc<AppState>> {
    health()
        .route("/", get(pages::shell))
        .route("/resume/{id}", get(pages::shell))
        .route("/console/{name}", get(pages::asset))
        .route("/connect", get(pages::handoff))
        .route("/browsers", get(pages::shell))
        .route("/metrics", get(metrics::metrics))
        .route("/api/health", get(async || "ok"))
        .route("/api/openapi.json", get(openapi))
        .fallback(pages::missing)
}

/// The access requirement of each of the server's own routes. Each door has its own table.
pub(crate) const PERMISSIONS: &[RoutePermission] = &[
    // Pages and health.
    route("GET", "/", PUBLIC),
    route("GET", "/resume/{id}", PUBLIC),
    route("GET", "/console/{name}", PUBLIC),
    route("GET", "/connect", PUBLIC),
    route("GET", "/browsers", PUBLIC),
    route("GET", "/healthz", PUBLIC),
    route("GET", "/readyz", PUBLIC),
    route("GET", "/api/health", PUBLIC),
    route("GET", "/api/openapi.json", PUBLIC),
    route("GET", "/metrics", ADMIN),
    // Executions and their questions.
    route("GET", "/api/questions", ANY),
];

/// The description of the API, for programs. Needs no token: it reveals nothing that the documentation does not.
async fn openapi() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], DESCRIPTION)
}

/// Whether the server accepts work. What is still to be loaded about sources follows the first line, and delays
/// nothing.
async fn ready(State(app): State<Arc<AppState>>) -> (StatusCode, String) {
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

/// The methods, in capitals, and the paths of the routes that a source file registers.
#[cfg(test)]
pub(crate) fn served_routes(source: &str) -> std::collections::BTreeSet<(String, String)> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    // rustfmt puts a long route on the next line.
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

    /// The files with routes for programs that read descriptions. The other doors have their own protocols.
    const DESCRIBED: [&str; 3] = [
        include_str!("routes.rs"),
        include_str!("doors/admin/routes.rs"),
        include_str!("doors/executor/routes.rs"),
    ];

    /// Pages.
    const NOT_DESCRIBED: [&str; 5] =
        ["/", "/resume/{id}", "/browsers", "/console/{name}", "/connect"];

    #[test]
    fn every_route_is_described_and_everything_described_is_a_route() {
        let mut served: BTreeSet<_> = DESCRIBED.into_iter().flat_map(served_routes).collect();
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
