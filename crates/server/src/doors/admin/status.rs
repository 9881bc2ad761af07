//! `GET /api/status`: the server's state, for administrators. Every known problem is listed in one answer.

use super::{json_response, require_admin};
use crate::app::AppState;
use crate::auth::Caller;
use crate::error::RequestError;
use crate::pages;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lifecycle::ExecutionPhase;
use serde_json::{Value, json};
use std::sync::Arc;

/// Executions of a phase are counted up to this number.
const COUNTED_MAX: usize = 10_000;

/// `GET /api/status`.
pub(crate) async fn status(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let (n_open, is_all) = pages::count_open_questions(&app, &caller).await?;
    let count = async |phase| app.engine.count(phase, COUNTED_MAX).await;
    let shown = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "time": app.clock.now(),
        "uptimeMs": u64::try_from(app.metrics.uptime().as_millis()).unwrap_or(u64::MAX),
        "stopping": app.stopping.is_cancelled(),
        "questions": { "open": n_open, "complete": is_all },
        "executions": {
            "running": count(ExecutionPhase::Running).await?,
            "paused": count(ExecutionPhase::Paused).await?,
            "parked": count(ExecutionPhase::Parked).await?,
        },
        "sources": sources(&app).await,
        "configuration": app.sources.as_ref().and_then(|sources| sources.trouble()),
        "store": store(&app).await,
    });
    Ok(json_response(StatusCode::OK, &shown))
}

/// The sources that are not ready, each with the known reason.
async fn sources(app: &AppState) -> Value {
    let Some(sources) = &app.sources else { return json!({ "loading": [], "unavailable": [] }) };
    let loading = sources.loading();
    let mut troubles = sources.troubles().await;
    let is_named = |name: &String, troubles: &[(String, String)]| {
        troubles.iter().any(|(named, _)| named == name)
    };
    for name in sources.undescribed() {
        if !is_named(&name, &troubles) {
            troubles.push((name, "it has not been read yet".into()));
        }
    }
    troubles.retain(|(name, _)| !loading.contains(name));
    let unavailable: Vec<_> =
        troubles.iter().map(|(name, why)| json!({ "name": name, "trouble": why })).collect();
    json!({ "loading": loading, "unavailable": unavailable })
}

/// Whether the store can be read, how much it holds, and what it lost.
async fn store(app: &AppState) -> Value {
    let (bytes, loss) = (app.engine.bytes_used().await, app.engine.data_loss().await);
    match (bytes, loss) {
        (Ok(bytes), Ok(None)) => json!({ "ok": true, "bytes": bytes }),
        (Ok(bytes), Ok(Some(loss))) => {
            json!({ "ok": false, "bytes": bytes, "problem": loss.cause.to_string() })
        }
        // The disk's error may contain paths; the log has it.
        (Err(_), _) | (_, Err(_)) => {
            json!({ "ok": false, "problem": "it cannot be read; the server's log says why" })
        }
    }
}
