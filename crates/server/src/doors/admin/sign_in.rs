//! `/api/sign-in`: how a person's browser starts a session. docs/console.md has the protocol.

use super::json_response;
use crate::app::AppState;
use crate::auth::sessions::{self, CodePurpose, CodeRefusal, NewSession, is_public_key};
use crate::auth::{AuthGate, Caller, CallerCredential, Scope, presents_sign_in_key};
use crate::body::{AnyBody, JsonBody};
use crate::error::RequestError;
use axum::extract::{FromRequest as _, FromRequestParts as _, Request, State};
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use protocols::executor::{member, members};
use serde_json::json;
use std::sync::Arc;

/// `GET /api/sign-in`: the nonce that signatures must cover in this run of the server, and the server's time.
pub(crate) async fn nonce(State(app): State<Arc<AppState>>) -> Result<Response, RequestError> {
    let body = json!({ "nonce": app.sessions.nonce()?, "time": app.clock.now().0 });
    Ok(json_response(StatusCode::OK, &body))
}

/// `POST /api/sign-in/codes {admin?}`: a code that signs a browser in, or raises a session for an hour.
pub(crate) async fn code(
    State(app): State<Arc<AppState>>,
    request: Request,
) -> Result<Response, RequestError> {
    let (mut parts, body) = request.into_parts();
    let caller = minting_caller(&app, &mut parts).await?;
    let AnyBody(body): AnyBody =
        AnyBody::from_request(Request::from_parts(parts, body), &app).await?;
    let is_admin = match body.is_empty() {
        true => None,
        false => member::<bool>(&members(&body)?, "admin", "true or false")?,
    };
    let purpose = match is_admin {
        Some(true) => CodePurpose::Elevation,
        Some(false) | None => CodePurpose::SignIn,
    };
    let CallerCredential::Token(token) = &caller.credential else {
        return Err(RequestError::forbidden(
            "A browser session cannot make codes; run `airlock sign-in` on the server's machine.",
        ));
    };
    may_mint(&caller, purpose)?;
    let minted = sessions::mint_code(app.tokens.records(), purpose, token, app.clock.now()).await?;
    let origin = app.admission.canonical_origin().as_str();
    let body = json!({ "code": minted.code, "expires": minted.expires.0, "origin": origin });
    Ok(json_response(StatusCode::CREATED, &body))
}

/// The holder of a token, or the operator where the request presents the sign-in key.
async fn minting_caller(app: &Arc<AppState>, parts: &mut Parts) -> Result<Caller, RequestError> {
    if matches!(app.gate, AuthGate::Tokens) && presents_sign_in_key(app, parts) {
        let operator = app.tokens.operator().await.map_err(engine::Fault::from)?;
        return operator.ok_or_else(|| {
            RequestError::conflict(
                "There is no admin token to sign in with; add one with `airlock token add`.",
            )
        });
    }
    Caller::from_request_parts(parts, app).await
}

/// An elevation is only useful with a session, which also requires `answer`.
fn may_mint(caller: &Caller, purpose: CodePurpose) -> Result<(), RequestError> {
    if !caller.scopes.has(Scope::Answer) {
        return Err(RequestError::needs(Scope::Answer));
    }
    match purpose {
        CodePurpose::SignIn => Ok(()),
        CodePurpose::Elevation if caller.scopes.has(Scope::Run) => Ok(()),
        CodePurpose::Elevation => Err(RequestError::needs(Scope::Run)),
    }
}

/// `POST /api/sign-in {code, key?}`: a session for a code.
pub(crate) async fn sign_in(
    State(app): State<Arc<AppState>>,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, RequestError> {
    let members = members(&body)?;
    let code = member::<String>(&members, "code", "a string")?.unwrap_or_default();
    let key: Option<String> = member(&members, "key", "a string")?;
    if key.as_deref().is_some_and(|key| !is_public_key(key)) {
        return Err(RequestError::bad_request(
            "The member \"key\" must be an uncompressed public key of P-256 in base64url.",
        ));
    }
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let new = NewSession { key: key.as_deref(), agent };
    let started = app.sessions.sign_in(&app.tokens, &code, new, app.clock.now()).await?;
    let (started, caller) = started.map_err(|refusal| refused_code("link", refusal))?;
    let mut body = json!({
        "session": started.id.to_string(),
        "name": caller.name.0,
        "expires": started.expires.0,
    });
    if let Some(bearer) = started.bearer {
        body["token"] = bearer.into();
    }
    Ok(json_response(StatusCode::OK, &body))
}

/// Why a code is refused, and how to get another.
pub(super) fn refused_code(what: &str, refusal: CodeRefusal) -> RequestError {
    let why = match refusal {
        CodeRefusal::Unknown => "is not one of this server's",
        CodeRefusal::Used => "has been used already: it counts once",
        CodeRefusal::Expired => "has expired",
        CodeRefusal::TokenRemoved => "belongs to a token that was removed",
    };
    let advice = match what {
        "link" => "`airlock open` or `airlock sign-in` on the server's machine prints another",
        _ => "`airlock sign-in --admin` on the server's machine prints another",
    };
    RequestError::forbidden(format!("This {what} {why}. {advice}."))
}
