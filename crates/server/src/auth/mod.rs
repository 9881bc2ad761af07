//! Who asks: the token names the caller, Host and Origin say whether a browser was led here.

mod first;
mod host;
pub mod permissions;
pub mod review;
mod rotate;
mod scope;
pub(crate) mod sessions;
mod sign_in_key;
mod tokens;

pub use first::{FirstTokensError, first_tokens, secret_file, write_secret};
pub(crate) use host::Hosts;
pub use rotate::{is_minted_secret, rotate_admin_tokens};
pub use scope::{BadScope, Scope, Scopes};
pub(crate) use scope::{Caller, CallerCredential, Denied};
pub(crate) use sign_in_key::{PeerAddress, presents_sign_in_key};
pub use sign_in_key::{SignInKey, sign_in_key_file};
pub use tokens::{Secret, Token, TokenError, TokenName, add, list, remove, set_answers};
pub(crate) use tokens::{Tokens, digest, same};

use crate::app::App;
use crate::error::Problem;
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::header::{AUTHORIZATION, UPGRADE};
use axum::http::request::Parts;
use lifecycle::CallerName;
use sessions::{SessionClaim, SessionRefusal};
use std::borrow::Cow;
use std::sync::Arc;

/// Who everybody is where no token is asked for.
const ANYBODY: &str = "anybody";

/// How callers are told apart.
pub(crate) enum Gate {
    /// By their tokens.
    Tokens,
    /// Not at all: everybody may do everything.
    Open,
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        if matches!(app.gate, Gate::Open) {
            let name = CallerName(ANYBODY.into());
            let scopes = Scopes::from([Scope::Admin].as_slice());
            let credential = CallerCredential::NotAsked;
            return Ok(Self { name, scopes, answers: app.answers.get(), credential });
        }
        let mut caller = match session_caller(parts, app).await? {
            Some(caller) => caller,
            None => {
                let secret = presented(parts).ok_or_else(Problem::unauthorized)?;
                let caller = app.tokens.caller(&secret).await.map_err(engine::Fault::from)?;
                caller.ok_or_else(Problem::unauthorized)?
            }
        };
        caller.answers = caller.answers.min(app.answers.get());
        Ok(caller)
    }
}

/// The caller of a browser session's request, or of one with a ticket; none where it claims to be neither.
async fn session_caller(parts: &Parts, app: &App) -> Result<Option<Caller>, Problem> {
    let ticket = ticket_in_url(parts);
    let claim = sessions::claim_in(&parts.headers);
    let Some(claim) = claim.or_else(|| ticket.as_deref().map(SessionClaim::Ticket)) else {
        return Ok(None);
    };
    let caller = app.sessions.caller(&app.tokens, claim, parts, app.clock.now()).await;
    caller.map(Some).map_err(|refusal| match refusal {
        SessionRefusal::Unknown => Problem::unauthorized(),
        SessionRefusal::TooMany => Problem::too_many_requests(),
        SessionRefusal::Store(error) => engine::Fault::from(error).into(),
    })
}

/// The ticket in the query of a request that opens a stream or a WebSocket without other credentials.
fn ticket_in_url(parts: &Parts) -> Option<Cow<'_, str>> {
    if parts.method != Method::GET || parts.headers.contains_key(AUTHORIZATION) {
        return None;
    }
    let query = form_urlencoded::parse(parts.uri.query()?.as_bytes());
    query.into_iter().find(|(name, _)| name == "ticket").map(|(_, value)| value)
}

/// The secret in the header, else in the query where a client may have nothing but a URL.
pub(crate) fn presented(parts: &Parts) -> Option<Cow<'_, str>> {
    if let Some(header) = parts.headers.get(AUTHORIZATION) {
        let (scheme, secret) = header.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim().into());
    }
    if !takes_token_in_url(parts) {
        return None;
    }
    let query = parts.uri.query()?;
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "token")
        .map(|(_, value)| value)
}

/// URLs are kept in histories and logs, so a token in one is taken only from clients that cannot send
/// headers: a browser that opens the page, an `EventSource`, a WebSocket, an MCP client with one setting.
fn takes_token_in_url(parts: &Parts) -> bool {
    let path = parts.uri.path();
    let is_stream = path.starts_with("/api/") && path.ends_with("/events");
    parts.headers.contains_key(UPGRADE) || matches!(path, "/" | "/mcp") || is_stream
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    #[test]
    fn a_secret_comes_by_header_or_query_and_the_header_counts() {
        let cases = [
            ("/", Some("Bearer alk_x"), Some("alk_x")),
            ("/", Some("bearer  alk_x"), Some("alk_x")),
            ("/", Some("Basic alk_x"), None),
            ("/?token=alk_x", Some("Basic alk_y"), None),
            ("/?a=1&token=alk%5Fx", None, Some("alk_x")),
            ("/?tokens=1", None, None),
            ("/mcp?token=alk_x", None, Some("alk_x")),
            ("/api/executions/run_1/events?token=alk_x", None, Some("alk_x")),
            ("/api/executions?token=alk_x", None, None),
            ("/api/tokens?token=alk_x", None, None),
            ("/metrics?token=alk_x", None, None),
            ("/execbox?token=alk_x", None, None),
            ("/", None, None),
        ];
        for (uri, header, expected) in cases {
            let mut request = Request::builder().uri(uri);
            if let Some(header) = header {
                request = request.header(AUTHORIZATION, header);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!((uri, presented(&parts).as_deref()), (uri, expected));
        }
        let upgrade = Request::builder().uri("/execbox?token=alk_x").header(UPGRADE, "websocket");
        let (parts, ()) = upgrade.body(()).unwrap().into_parts();
        assert_eq!(presented(&parts).as_deref(), Some("alk_x"));
    }
}
