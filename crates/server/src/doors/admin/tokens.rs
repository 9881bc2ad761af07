//! `/api/tokens`: for administrators, who cannot change tokens otherwise while a server owns the store.

use super::{json_response, require_admin};
use crate::app::AppState;
use crate::auth::{self, Caller, MintedSecret, TokenError, TokenInfo, TokenName, TokenScopes};
use crate::body::JsonBody;
use crate::error::RequestError;
use crate::query::PathId;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use lifecycle::AnswerRole;
use protocols::executor::{ObjectMembers, member, members};
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /api/tokens`.
pub(crate) async fn list_tokens(
    State(app): State<Arc<AppState>>,
    caller: Caller,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let tokens = auth::list_tokens(app.tokens.records()).await.map_err(engine::Fault::from)?;
    let tokens: Vec<_> = tokens.iter().map(token_json).collect();
    Ok(json_response(StatusCode::OK, &json!({ "tokens": tokens })))
}

/// `POST /api/tokens {name, scopes, answers, takeOver}`.
pub(crate) async fn add(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let members = members(&body)?;
    let name: Option<String> = member(&members, "name", "a string")?;
    let scopes: Option<Vec<String>> = member(&members, "scopes", "an array of strings")?;
    let name = TokenName::parse(&name.unwrap_or_default())?;
    let scopes = scopes.unwrap_or_default();
    let scopes = TokenScopes::parse(scopes.iter().map(String::as_str)).map_err(|bad| {
        RequestError::bad_request(format!("The member \"scopes\" is wrong: {bad}."))
    })?;
    let answers = answers(&members)?.unwrap_or_default();
    let take_over: Option<bool> = member(&members, "takeOver", "a boolean")?;
    auth::check_name(app.tokens.records(), &name).await?;
    if take_over != Some(true) && !app.engine.list_executions(name.retained()).await?.is_empty() {
        return Err(TokenError::Retained(name).into());
    }
    let secret = MintedSecret::new()?;
    let now = app.clock.now();
    let token = auth::add(app.tokens.records(), &name, (scopes, answers), &secret, now).await?;
    app.tokens.clear_cache();
    let mut shown = token_json(&token);
    shown["secret"] = secret.as_text().into();
    Ok(json_response(StatusCode::CREATED, &shown))
}

/// `PATCH /api/tokens/{name} {answers}`.
pub(crate) async fn change(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(name): PathId,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    let answers = answers(&members(&body)?)?.ok_or_else(|| {
        RequestError::bad_request(
            "The member \"answers\" is missing; it is person, client or model.",
        )
    })?;
    let token = auth::set_answers(app.tokens.records(), &TokenName::parse(&name)?, answers).await?;
    app.tokens.clear_cache();
    // Connections that were opened with more rights are closed.
    app.sessions.announce_endings();
    Ok(json_response(StatusCode::OK, &token_json(&token)))
}

/// `DELETE /api/tokens/{name}`.
pub(crate) async fn remove(
    State(app): State<Arc<AppState>>,
    caller: Caller,
    PathId(name): PathId,
) -> Result<Response, RequestError> {
    require_admin(&caller)?;
    auth::remove(app.tokens.records(), &TokenName::parse(&name)?).await?;
    app.tokens.clear_cache();
    // Its connections are closed, and the browser sessions that it signed in end.
    app.sessions.announce_endings();
    Ok(json_response(StatusCode::OK, &json!({ "removed": true })))
}

fn answers(members: &ObjectMembers<'_>) -> Result<Option<AnswerRole>, RequestError> {
    let text: Option<String> = member(members, "answers", "a string")?;
    text.map(|text| text.parse()).transpose().map_err(|bad| {
        RequestError::bad_request(format!("The member \"answers\" is wrong: {bad}."))
    })
}

fn token_json(token: &TokenInfo) -> Value {
    let scopes: Vec<_> = token.scopes.given().map(|scope| scope.name()).collect();
    json!({
        "name": token.name.as_str(),
        "caller": token.name.caller(),
        "scopes": scopes,
        "answers": token.answers,
        "created": token.created.0,
    })
}
