//! `/api/session`, `/api/sessions` and `/api/tickets`: shows, ends and elevates browser sessions, and issues tickets.

use super::json_response;
use super::sign_in::refused_code;
use crate::answering::PageOrigin;
use crate::app::AppState;
use crate::auth::sessions::{
    BrowserSessionId, ListedSession, SessionCredential, TICKET_PATH_BYTES_MAX,
};
use crate::auth::{Caller, CallerCredential, Scope};
use crate::body::JsonBody;
use crate::error::RequestError;
use crate::query::PathId;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use protocols::executor::{member, members};
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /api/session`: the caller's identity, and the address of the pages.
pub(crate) async fn session(caller: Caller, PageOrigin(origin): PageOrigin) -> Response {
    let scopes: Vec<_> = caller.scopes.given().map(Scope::name).collect();
    let may_answer = caller.scopes.has(Scope::Answer);
    let mut body = json!({ "name": caller.name.0, "scopes": scopes, "mayAnswer": may_answer, "origin": origin });
    if let CallerCredential::Session(session) = &caller.credential {
        body["session"] = session.id.to_string().into();
        body["expires"] = session.expires.0.into();
        body["elevated"] = session.is_elevated().into();
    }
    json_response(StatusCode::OK, &body)
}

/// `DELETE /api/session`: signs this browser out.
pub(crate) async fn sign_out(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    let session = own_session(&caller)?;
    app.sessions.end_session(&app.tokens, &session.id).await.map_err(engine::Fault::from)?;
    Ok(json_response(StatusCode::OK, &json!({ "ended": true })))
}

/// `GET /api/sessions`: the sessions of the caller's token, or an administrator's view of all.
pub(crate) async fn list_sessions(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    let sessions: Vec<_> = visible(&app, &caller).await?;
    let current = match &caller.credential {
        CallerCredential::Session(session) => Some(&session.id),
        CallerCredential::Token(_) | CallerCredential::NotAsked => None,
    };
    let sessions: Vec<_> = sessions
        .iter()
        .map(|(session, name)| session_json(session, name, current == Some(&session.id)))
        .collect();
    Ok(json_response(StatusCode::OK, &json!({ "sessions": sessions })))
}

/// `DELETE /api/sessions/{id}`.
pub(crate) async fn end_session(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(id): PathId,
) -> Result<Response, RequestError> {
    let sessions = visible(&app, &caller).await?;
    let found = sessions.iter().find(|(session, _)| session.id.to_string() == id);
    let Some((session, _)) = found else {
        return Err(RequestError::not_found(
            "BrowserSessionNotFoundError",
            "There is no such browser session, or it belongs to another token.",
        ));
    };
    app.sessions.end_session(&app.tokens, &session.id).await.map_err(engine::Fault::from)?;
    Ok(json_response(StatusCode::OK, &json!({ "ended": true })))
}

/// `POST /api/session/elevation {code}`: raises this session, in one tab, for an hour.
pub(crate) async fn elevate(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    let session: &BrowserSessionId = &own_session(&caller)?.id;
    let code = member::<String>(&members(&body)?, "code", "a string")?.unwrap_or_default();
    let granted = app.sessions.elevate(&app.tokens, session, code.trim(), app.clock.now()).await?;
    let granted = granted.map_err(|refusal| refused_code("code", refusal))?;
    let body = json!({ "elevation": granted.elevation, "expires": granted.expires.0 });
    Ok(json_response(StatusCode::OK, &body))
}

/// `POST /api/tickets {path}`: opens one stream or WebSocket.
pub(crate) async fn ticket(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    let path = member::<String>(&members(&body)?, "path", "a string")?.unwrap_or_default();
    let is_path = path.starts_with('/') && !path.contains(['?', '#']);
    if !is_path || path.len() > TICKET_PATH_BYTES_MAX {
        return Err(RequestError::bad_request(format!(
            "The member \"path\" must be a path of this server without a query, of \
             {TICKET_PATH_BYTES_MAX} bytes at most."
        )));
    }
    let issued = app.sessions.issue_ticket(&app.tokens, &caller, &path, app.clock.now()).await?;
    let body = match issued {
        Some(issued) => json!({ "ticket": issued.ticket, "expires": issued.expires.0 }),
        None => json!({ "ticket": null, "expires": null }),
    };
    Ok(json_response(StatusCode::CREATED, &body))
}

fn own_session(caller: &Caller) -> Result<&SessionCredential, RequestError> {
    match &caller.credential {
        CallerCredential::Session(session) => Ok(session),
        CallerCredential::Token(_) | CallerCredential::NotAsked => Err(RequestError::conflict(
            "This is for browser sessions; this request came with a token or with nothing.",
        )),
    }
}

async fn visible(
    app: &AppState,
    caller: &Caller,
) -> Result<Vec<(ListedSession, String)>, RequestError> {
    if !caller.scopes.has(Scope::Answer) {
        return Err(RequestError::needs(Scope::Answer));
    }
    let own = match &caller.credential {
        CallerCredential::Token(token) => Some(token),
        CallerCredential::Session(session) => Some(&session.token),
        CallerCredential::NotAsked => None,
    };
    let own = own.filter(|_| !caller.scopes.has(Scope::Admin));
    let listed = app.sessions.list_sessions(&app.tokens, own, app.clock.now()).await;
    Ok(listed.map_err(engine::Fault::from)?)
}

fn session_json(session: &ListedSession, name: &str, is_current: bool) -> Value {
    json!({
        "id": session.id.to_string(),
        "name": name,
        "created": session.created.0,
        "expires": session.expires.0,
        "kind": if session.has_key { "browser" } else { "tab" },
        "agent": session.agent,
        "current": is_current,
    })
}
