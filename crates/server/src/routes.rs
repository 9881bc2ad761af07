//! What is where.

use crate::app::App;
use crate::body::BODY_BYTES_MAX;
use crate::config::Config;
use crate::doors::{execbox, executor, journal, policies, tokens};
use crate::error::Problem;
use crate::guard::guard;
use crate::{metrics, pages};
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, patch, post};
use std::sync::Arc;

/// The whole server without a socket.
pub fn router(config: Config) -> Router {
    build(&App::new(config))
}

pub(crate) fn build(app: &Arc<App>) -> Router {
    Router::new()
        .route("/", get(pages::root))
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics::metrics))
        .route("/api/health", get(async || "ok"))
        .route("/api/executions", get(executor::list).post(executor::execute))
        .route("/api/executions/{id}", get(executor::show).delete(executor::remove))
        .route("/api/executions/{id}/resume", post(executor::resume))
        .route("/api/executions/{id}/questions", get(executor::questions))
        .route("/api/executions/{id}/answers", post(executor::answers))
        .route("/api/executions/{id}/result", get(executor::result))
        .route("/api/executions/{id}/cancel", post(executor::cancel))
        .route("/api/executions/{id}/events", get(executor::events))
        .route("/api/callback", get(executor::callback))
        .route("/execbox", get(execbox::open))
        .route("/api/executions/{id}/journal", get(journal::journal))
        .route("/api/policies", get(policies::list).post(policies::add))
        .route("/api/policies/test", get(policies::test))
        .route("/api/policies/{id}", patch(policies::change).delete(policies::remove))
        .route("/api/tokens", get(tokens::list).post(tokens::add))
        .route("/api/tokens/{name}", delete(tokens::remove))
        .fallback(async |uri: Uri| Problem::no_route(uri.path()))
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            Problem::not_allowed(method.as_str(), uri.path())
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(app), guard))
        .with_state(Arc::clone(app))
}

/// Whether work is taken.
async fn ready(State(app): State<Arc<App>>) -> (StatusCode, &'static str) {
    match app.stopping.is_cancelled() {
        false => (StatusCode::OK, "ok"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
    }
}
