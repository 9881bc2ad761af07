//! OAuth over HTTP: begins a visit to an authorization server, and takes the browser that comes back.

use super::{administers, answer, catalogue};
use crate::app::App;
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::error::Problem;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use protocols::executor::{Members, member, members};
use serde_json::json;
use sources::Returned;
use std::sync::Arc;
use tools::Slug;

/// `POST /api/oauth/start {integration, owner?, name}`: where a person agrees.
pub(crate) async fn start(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    administers(&caller)?;
    let (slug, owner, name) = place(&members(&body)?)?;
    let url = catalogue::sources(&app)?.authorize(&slug, &owner, &name).await?;
    Ok(answer(StatusCode::OK, &json!({ "url": url })))
}

/// `POST /api/oauth/cancel {integration, owner?, name}`: nobody needs to go there any more.
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    administers(&caller)?;
    let (slug, owner, name) = place(&members(&body)?)?;
    let cancelled = catalogue::sources(&app)?.call_off(&slug, &owner, &name).await?;
    Ok(answer(StatusCode::OK, &json!({ "cancelled": cancelled })))
}

/// `GET /api/oauth/callback`. No token: a browser comes here, led by the authorization server, and the secret in
/// `state` is good once.
pub(crate) async fn callback(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let query = query.unwrap_or_default();
    let query: Vec<(String, String)> =
        form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let (status, said) = match catalogue::sources(&app)?.returned(&query).await? {
        Returned::Done => (StatusCode::OK, "Done. You can close this page."),
        Returned::Declined => (StatusCode::OK, "You did not agree. You can close this page."),
        Returned::Unknown => return Err(Problem::no_callback()),
        Returned::Failed(_) => (
            StatusCode::BAD_REQUEST,
            "That did not work. Go back to the question and open its link again.",
        ),
    };
    let page =
        format!("<!doctype html><meta charset=\"utf-8\"><title>Airlock</title><p>{said}</p>");
    Ok((status, Html(page)).into_response())
}

fn place(members: &Members<'_>) -> Result<(Slug, String, String), Problem> {
    let text = |name: &str| member::<String>(members, name, "a string");
    let slug = catalogue::parse_slug(&text("integration")?.unwrap_or_default())?;
    let owner = text("owner")?.unwrap_or_else(|| "org".into());
    Ok((slug, owner, text("name")?.unwrap_or_else(|| "main".into())))
}
