//! OAuth over HTTP: starts an authorization flow, and handles the browser's return from it.

use super::oauth_clients::said;
use super::{catalogue, json_response, require_admin};
use crate::app::AppState;
use crate::auth::Caller;
use crate::body::JsonBody;
use crate::error::RequestError;
use crate::query::PathId;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use credentials::{CallbackOutcome, CredentialOffer, FlowStart, OAuthConfig};
use protocols::executor::{ObjectMembers, member, members};
use serde_json::json;
use sources::ConnectionView;
use std::sync::Arc;
use tools::IntegrationSlug;

/// The error tag that clients know.
const START: &str = "OAuthStartError";
const COMPLETE: &str = "OAuthCompleteError";

/// The type of the message that reports the end of a flow.
const RESULT: &str = "executor:oauth-result";

/// `POST /api/oauth/start {integration, owner?, name?, client?, clientOwner?, template?, scopes?}`: returns the URL
/// where a person consents, or that no consent is needed. With `client` the connection uses that client, and is
/// created if it does not exist.
pub(crate) async fn start(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let sources = catalogue::sources(&app)?;
    let (slug, owner, name) = place(&members)?;
    let text = |name: &str| member::<String>(&members, name, "a string");
    let begun = if let Some(client) = text("client")? {
        let client = Some(format!("{}/{client}", catalogue::owner(&members, "clientOwner")?));
        let scopes: Option<Vec<String>> = member(&members, "scopes", "a list of strings")?;
        let scopes = scopes.unwrap_or_default();
        let oauth = Some(OAuthConfig { client, scopes, ..OAuthConfig::default() });
        let offer =
            CredentialOffer { template: text("template")?, oauth, ..CredentialOffer::default() };
        let mut made =
            sources.offered(&slug, offer).map_err(|why| RequestError::tagged(START, why))?;
        made.owner = Some(owner.clone());
        let authorized =
            async |view: &ConnectionView| sources.authorize(&slug, &view.owner, &view.name).await;
        let done = sources.connect_and(&slug, &name, made, authorized).await;
        done.map(|(_, begun)| begun)
    } else {
        sources.authorize(&slug, &owner, &name).await
    };
    let begun = begun.map_err(|error| said(error, START))?;
    let told = match begun {
        FlowStart::Visit { url, state } => {
            json!({ "status": "redirect", "url": url, "authorizationUrl": url, "state": state })
        }
        FlowStart::Connected => {
            let view = sources.connection_view(&slug, &owner, &name).await;
            json!({ "status": "connected", "connection": view.as_ref().map(sources::ConnectionView::row) })
        }
    };
    Ok(json_response(StatusCode::OK, &told))
}

/// `POST /api/oauth/complete {state, code, iss?}`: completes a flow whose browser was redirected to another address.
pub(crate) async fn complete(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let text = |name: &str| member::<String>(&members, name, "a string");
    let state = text("state")?.unwrap_or_default();
    let mut query = vec![("state".to_owned(), state.clone())];
    for name in ["code", "iss"] {
        query.extend(text(name)?.map(|value| (name.to_owned(), value)));
    }
    let sources = catalogue::sources(&app)?;
    let view = sources.awaited(&state).await?;
    match (sources.complete_callback(&query).await?, view) {
        (CallbackOutcome::Done, Some(view)) => Ok(json_response(StatusCode::OK, &view.row())),
        (CallbackOutcome::Unknown, _) | (_, None) => {
            let message = "Nobody is expected with that state.";
            Err(RequestError::not_found("OAuthSessionNotFoundError", message))
        }
        (CallbackOutcome::Declined, _) => {
            Err(RequestError::tagged(COMPLETE, "The person did not agree."))
        }
        (CallbackOutcome::Failed(why), _) => Err(RequestError::tagged(COMPLETE, why)),
    }
}

/// `GET /api/oauth/await/{state}`: the result of a flow, once and within ten minutes; null while it is in progress.
pub(crate) async fn ended(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(state): PathId,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let told = match catalogue::sources(&app)?.credentials().take_flow_end(&state).await? {
        None => json!(null),
        Some(Ok(())) => json!({ "type": RESULT, "ok": true, "sessionId": state }),
        Some(Err(why)) => json!({ "type": RESULT, "ok": false, "sessionId": state, "error": why }),
    };
    Ok(json_response(StatusCode::OK, &told))
}

/// `POST /api/oauth/cancel {state}` or `{integration, owner?, name?}`: cancels the flow.
pub(crate) async fn cancel(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let sources = catalogue::sources(&app)?;
    let cancelled = match member::<String>(&members, "state", "a string")? {
        Some(state) => sources.credentials().give_up_flow(&state).await?,
        None => {
            let (slug, owner, name) = place(&members)?;
            sources.cancel_flow(&slug, &owner, &name).await?
        }
    };
    Ok(json_response(StatusCode::OK, &json!({ "cancelled": cancelled })))
}

/// `GET /api/oauth/callback`. Needs no token: the authorization server redirects a browser here, and the secret in
/// `state` is valid once.
pub(crate) async fn callback(
    State(app): State<Arc<AppState>>,
    RawQuery(query): RawQuery,
) -> Result<Response, RequestError> {
    let query = query.unwrap_or_default();
    let query: Vec<(String, String)> =
        form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let (status, said) = match catalogue::sources(&app)?.complete_callback(&query).await? {
        CallbackOutcome::Done => (StatusCode::OK, "Done. You can close this page."),
        CallbackOutcome::Declined => {
            (StatusCode::OK, "You did not agree. You can close this page.")
        }
        CallbackOutcome::Unknown => return Err(RequestError::no_callback()),
        CallbackOutcome::Failed(_) => (
            StatusCode::BAD_REQUEST,
            "That did not work. Go back to the question and open its link again.",
        ),
    };
    let page =
        format!("<!doctype html><meta charset=\"utf-8\"><title>Airlock</title><p>{said}</p>");
    Ok((status, Html(page)).into_response())
}

fn place(members: &ObjectMembers<'_>) -> Result<(IntegrationSlug, String, String), RequestError> {
    let text = |name: &str| member::<String>(members, name, "a string");
    let slug = catalogue::parse_slug(&text("integration")?.unwrap_or_default())?;
    Ok((slug, catalogue::owner(members, "owner")?, text("name")?.unwrap_or_else(|| "main".into())))
}
