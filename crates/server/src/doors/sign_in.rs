//! `/api/sign-in`: how a person's browser gets a bearer, and what anybody's token is good for.

use super::answer;
use crate::app::App;
use crate::auth::{self, Caller, Scope};
use crate::body::JsonBody;
use crate::error::Problem;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use protocols::executor::{member, members};
use serde_json::json;
use std::sync::Arc;

/// `GET /api/session`: who I am.
pub(crate) async fn session(caller: Caller) -> Response {
    let scopes: Vec<_> = caller.scopes.given().map(Scope::name).collect();
    let may_answer = caller.scopes.has(Scope::Answer);
    let body = json!({ "name": caller.name.0, "scopes": scopes, "mayAnswer": may_answer });
    answer(StatusCode::OK, &body)
}

/// `POST /api/sign-in/codes`: a code for the browser of whoever holds this token.
pub(crate) async fn code(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    if !caller.scopes.has(Scope::Answer) {
        return Err(Problem::needs(Scope::Answer));
    }
    let code = auth::code(app.tokens.records(), &caller.name, app.clock.now()).await?;
    Ok(answer(StatusCode::CREATED, &json!({ "code": code })))
}

/// `POST /api/sign-in {code}`: a bearer for a code.
pub(crate) async fn sign_in(
    State(app): State<Arc<App>>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let members = members(&body)?;
    let code: Option<String> = member(&members, "code", "a string")?;
    let admitted =
        auth::exchange(app.tokens.records(), &code.unwrap_or_default(), app.clock.now()).await?;
    let Some(admitted) = admitted else {
        return Err(Problem::forbidden(
            "This link has been used or is too old; `airlock open` makes a new one.",
        ));
    };
    let body = json!({
        "token": admitted.bearer,
        "name": admitted.name,
        "expires": admitted.expires.0,
    });
    Ok(answer(StatusCode::OK, &body))
}
